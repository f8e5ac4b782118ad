"""Checks that a network's configuration fits an observation. Imports no TensorFlow.

The checks are made before a run is started, and again when the network is built.
"""

from __future__ import annotations

from collections.abc import Sequence

from dm_env import specs as dm_specs
import numpy as np
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
  'auto',
)
CORES = ('none', 'lstm', 'gru')
# Channels, size and stride of convolutions without padding.
CONVOLUTIONS: dict[str, tuple[tuple[int, int, int], ...]] = {
  'nature_cnn': ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
  'impala_shallow': ((16, 8, 4), (32, 4, 2)),
}
# From this height and width on an array counts as a picture, for which convolutions pay off.
_SMALLEST_PICTURE = 8
# Height and width of the images of torsos that accept only one size.
_EXACT_SIZES = {'rllib_42': 42}


def is_own(config: config_lib.NetworkConfig) -> bool:
  """Whether part of the network is a user's module, which cannot be checked without TensorFlow."""
  return bool(config.module) or ':' in config.torso


def check(config: config_lib.NetworkConfig, spec: types.EnvironmentSpec) -> None:
  """Raises `types.UserError` for unknown names, and for an observation that does not fit the torso.
  Of a user's own modules it checks only settings that have no effect on them.
  """
  _check_torso_initializer(config, spec.observation)
  if config.module:
    return
  if ':' not in config.torso:
    _check_name(config.torso, TORSOS, 'network.torso')
    _check_no_torso_settings(config)
  _check_name(config.core, CORES, 'network.core')
  if config.frame_stack > 1:
    _require_unpacked(spec.observation, config.frame_stack)
    image_to_stack(spec.observation, config.frame_stack)
  if config.torso == 'impala_resnet_instruction':
    num_word_ids(spec.observation)
    check_image([spec.observation['image'].shape], config.torso)
  elif config.torso not in ('auto', 'mlp') and ':' not in config.torso:
    check_image([leaf.shape for leaf in tree.flatten(spec.observation)], config.torso)


def notices(
  config: config_lib.NetworkConfig, spec: types.EnvironmentSpec, xla: bool = False
) -> tuple[str, ...]:
  """Returns notices to show when a run with such observations starts; none about a user's own
  modules. xla: whether updates are compiled."""
  if is_own(config):
    return ()
  found = []
  if xla and resolved_torso(config.torso, spec.observation) != 'mlp':
    found.append(
      'learner.xla makes updates with convolutions many times slower on a CPU, the first one too: '
      'set learner.xla=False, unless a GPU trains'
    )
  for path, leaf in tree.flatten_with_path(spec.observation):
    shown = f'observation{"".join(f"[{key!r}]" for key in path)} {tuple(leaf.shape)}'
    if config.torso == 'mlp' and is_picture(leaf):
      found.append(
        f'network.torso (mlp) flattens the picture {shown} into {int(np.prod(leaf.shape)):,} '
        'numbers, so it does not know which pixels are neighbours: auto takes a CNN for pictures '
        'and an MLP for the rest'
      )
    elif config.torso in ('auto', 'mlp') and _has_channels_first(leaf.shape):
      found.append(
        f'network.torso ({config.torso}) flattens {shown}, which looks like a picture with its '
        'channels first: return [height, width, channels], and auto takes a CNN for it'
      )
  return tuple(found)


def resolved_torso(torso: str, observation_spec: types.Nest) -> str:
  """Resolves `auto`: to the picture's torso if the observation is a single picture, to `mlp` if it
  has no picture; otherwise it remains `auto`. Any other torso is returned as it is."""
  leaves = tree.flatten(observation_spec)
  if torso != 'auto':
    return torso
  if not any(map(is_picture, leaves)):
    return 'mlp'
  return picture_torso(leaves[0]) if len(leaves) == 1 else 'auto'


def is_picture(leaf: dm_specs.Array) -> bool:
  """Whether an array is `[height, width, channels]`, or `[height, width]` of bytes, at least 8 x 8,
  and does not hold choices."""
  if choices.num_values(leaf) is not None:
    return False
  has_form = len(leaf.shape) == 3 or (len(leaf.shape) == 2 and leaf.dtype == np.uint8)
  return has_form and min(leaf.shape[:2]) >= _SMALLEST_PICTURE


def picture_torso(leaf: dm_specs.Array) -> str:
  """Returns the CNN that `auto` uses: Nature's, or the residual one if a picture is too small."""
  is_large = min(leaf.shape[:2]) >= smallest_image('nature_cnn')
  return 'nature_cnn' if is_large else 'impala_resnet'


def _has_channels_first(shape: Sequence[int]) -> bool:
  return len(shape) == 3 and shape[0] <= 4 and min(shape[1:]) >= _SMALLEST_PICTURE


def _check_torso_initializer(
  config: config_lib.NetworkConfig, observation_spec: types.Nest
) -> None:
  if config.torso_initializer == 'default':
    return
  ignored_by = ''
  if is_own(config):
    name = 'module' if config.module else 'torso'
    ignored_by = f"network.{name} ('{getattr(config, name)}'), which draws its weights by itself"
  elif resolved_torso(config.torso, observation_spec) == 'mlp':
    ignored_by = f"network.torso '{config.torso}', whose MLP's weights network.initializer draws"
  if ignored_by:
    convolutional = ', '.join(name for name in TORSOS if name != 'mlp')
    raise types.UserError(
      f"network.torso_initializer ('{config.torso_initializer}') has no effect with {ignored_by}: "
      f"set it to 'default', or choose a torso that it is for ({convolutional})"
    )


def _check_no_torso_settings(config: config_lib.NetworkConfig) -> None:
  if config.torso_settings:
    raise types.UserError(
      f'network.torso_settings ({config.torso_settings}) have no effect with network.torso '
      f"'{config.torso}': they are for a torso of your own, package.module:name; leave them out"
    )


def _require_unpacked(observation_spec: types.Nest, num_frames: int) -> None:
  if any(packed_planes.num_planes(leaf) for leaf in tree.flatten(observation_spec)):
    raise types.UserError(
      f'network.frame_stack ({num_frames}) cannot stack packed planes: set network.frame_stack to '
      "1, and have the environment stack them (football's setting stack)"
    )


def check_image(shapes: Sequence[Sequence[int]], torso: str) -> None:
  """Raises `types.UserError` unless the observation is one array, a large enough image. shapes:
  shapes of the observation's arrays."""
  shown = [tuple(shape) for shape in shapes]
  if len(shown) != 1 or len(shown[0]) not in (2, 3):
    raise types.UserError(
      f"network.torso '{torso}' needs one image [height, width(, channels)], but the "
      f'observation holds arrays of shapes {shown}: choose auto, mlp, or your own torso'
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
    if _has_channels_first(shown[0]):
      fix = 'it seems to have its channels first: return [height, width, channels]'
    else:
      fix = 'choose impala_resnet or mlp, or return larger images'
    raise types.UserError(
      f"network.torso '{torso}' needs an image of {least} x {least} or more, but the observation "
      f'has shape {shown[0]}: {fix}'
    )


def num_word_ids(observation_spec: types.Nest) -> int:
  """Returns the number of word ids in `{'image', 'instruction'}`; `types.UserError` for any other
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
  """Returns the height and width that leave one number after the convolutions."""
  least = 1
  for _, size, stride in reversed(CONVOLUTIONS.get(torso, ())):
    least = (least - 1) * stride + size
  return least


def image_to_stack(observation_spec: types.Nest, num_frames: int) -> dm_specs.Array:
  """Returns the observation's only array, an image with one channel; else `types.UserError`."""
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
