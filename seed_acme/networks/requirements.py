"""What a network's configuration asks of an observation. Loads no TensorFlow.

It is asked before a run is started, and again where the network is built.
"""

from __future__ import annotations

from collections.abc import Sequence

from dm_env import specs as dm_specs
import tree

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import near_names
from seed_acme.envs import choices
from seed_acme.envs import packed_planes

TORSOS = (
  'mlp',
  'nature_cnn',
  'impala_shallow',
  'impala_resnet',
  'impala_resnet_instruction',
  'football_resnet',
  'rllib_42',
)
CORES = ('none', 'lstm', 'gru')
# Channels, size and stride of convolutions without padding.
CONVOLUTIONS: dict[str, tuple[tuple[int, int, int], ...]] = {
  'nature_cnn': ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
  'impala_shallow': ((16, 8, 4), (32, 4, 2)),
}
# Height and width of the only images that a torso takes.
_EXACT_SIZES = {'rllib_42': 42}


def is_own(config: config_lib.NetworkConfig) -> bool:
  """Whether a part of it is a module of the user's, which only TensorFlow can look at."""
  return bool(config.module) or ':' in config.torso


def check(config: config_lib.NetworkConfig, spec: types.EnvironmentSpec) -> None:
  """Raises `types.UserError` for names that are not known, and for an observation that the torso
  cannot take. Of the user's own modules it knows only which settings they do not see.
  """
  _check_torso_initializer(config)
  if config.module:
    return
  if ':' not in config.torso:
    _check_name(config.torso, TORSOS, 'network.torso')
  _check_name(config.core, CORES, 'network.core')
  if config.frame_stack > 1:
    _require_unpacked(spec.observation, config.frame_stack)
    image_to_stack(spec.observation, config.frame_stack)
  if config.torso == 'impala_resnet_instruction':
    num_word_ids(spec.observation)
    check_image([spec.observation['image'].shape], config.torso)
  elif config.torso != 'mlp' and ':' not in config.torso:
    check_image([leaf.shape for leaf in tree.flatten(spec.observation)], config.torso)


def _check_torso_initializer(config: config_lib.NetworkConfig) -> None:
  if config.torso_initializer == 'default':
    return
  ignored_by = ''
  if is_own(config):
    name = 'module' if config.module else 'torso'
    ignored_by = f"network.{name} ('{getattr(config, name)}'), which draws its weights by itself"
  elif config.torso == 'mlp':
    ignored_by = "network.torso 'mlp', whose weights network.initializer draws"
  if ignored_by:
    convolutional = ', '.join(name for name in TORSOS if name != 'mlp')
    raise types.UserError(
      f"network.torso_initializer ('{config.torso_initializer}') has no effect with {ignored_by}: "
      f"set it to 'default', or choose a torso that it is for ({convolutional})"
    )


def _require_unpacked(observation_spec: types.Nest, num_frames: int) -> None:
  if any(packed_planes.num_planes(leaf) for leaf in tree.flatten(observation_spec)):
    raise types.UserError(
      f'network.frame_stack ({num_frames}) cannot stack packed planes: set network.frame_stack to '
      "1, and have the environment stack them (football's setting stack)"
    )


def check_image(shapes: Sequence[Sequence[int]], torso: str) -> None:
  """shapes: of the observation's arrays, of which there must be one, large enough an image."""
  shown = [tuple(shape) for shape in shapes]
  if len(shown) != 1 or len(shown[0]) not in (2, 3):
    raise types.UserError(
      f"network.torso '{torso}' needs one image [height, width(, channels)], but the "
      f'observation holds arrays of shapes {shown}: choose mlp, or your own torso'
    )
  exact = _EXACT_SIZES.get(torso)
  if exact and set(shown[0][:2]) != {exact}:
    raise types.UserError(
      f"network.torso '{torso}' needs an image of {exact} x {exact}, but the observation has shape "
      f'{shown[0]}: choose another torso, or return such images (Atari: environment.settings '
      f'image_size {exact})'
    )
  least = smallest_image(torso)
  if min(shown[0][:2]) < least:
    raise types.UserError(
      f"network.torso '{torso}' needs an image of {least} x {least} or more, but the observation "
      f'has shape {shown[0]}: choose impala_resnet or mlp, or return larger images'
    )


def num_word_ids(observation_spec: types.Nest) -> int:
  """How many ids of words there are in `{'image', 'instruction'}`; `types.UserError` for another
  observation.
  """
  is_pair = isinstance(observation_spec, dict) and set(observation_spec) == {'image', 'instruction'}
  sizes = choices.num_values(observation_spec['instruction']) if is_pair else None
  if sizes is None:
    raise types.UserError(
      "network.torso 'impala_resnet_instruction' needs the observation {'image', 'instruction'}, "
      f'the latter ids of words, but it is {observation_spec}: choose impala_resnet, or make the '
      'environment give instructions (dmlab: environment.settings instructions True)'
    )
  return int(sizes.max())


def smallest_image(torso: str) -> int:
  """Height and width that leave one number after the convolutions."""
  least = 1
  for _, size, stride in reversed(CONVOLUTIONS.get(torso, ())):
    least = (least - 1) * stride + size
  return least


def image_to_stack(observation_spec: types.Nest, num_frames: int) -> dm_specs.Array:
  """The only array of the observation, an image of one channel."""
  leaves = tree.flatten(observation_spec)
  shapes = [tuple(leaf.shape) for leaf in leaves]
  if len(shapes) == 1 and (len(shapes[0]) == 2 or (len(shapes[0]) == 3 and shapes[0][2] == 1)):
    return leaves[0]
  raise types.UserError(
    f'network.frame_stack ({num_frames}) stacks one image [height, width] or '
    f'[height, width, 1], but the observation holds arrays of shapes {shapes}: set '
    'network.frame_stack to 1, or make the environment return one grey image'
  )


def _check_name(name: str, known: Sequence[str], field: str) -> None:
  if name not in known:
    raise types.UserError(
      f"{field} ('{name}') is not known{near_names.hint(name, list(known))}. Choose one of "
      f'{", ".join(known)}, or package.module:Class of your own'
    )
