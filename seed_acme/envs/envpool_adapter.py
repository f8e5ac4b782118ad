"""envpool: many suites in C++, stepped together. Runs under Python 3.11 and later.

The package is imported when needed. Its versions for Python 3.10 lack most environments and are not
supported.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, get_args
import warnings

from dm_env import specs as dm_specs
import numpy as np
import tree

from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.checks import near_names
from seed_acme.envs import action_scaling
from seed_acme.envs import atari_lives
from seed_acme.envs import float_specs
from seed_acme.envs import gym_spaces
from seed_acme.envs import lockstep
from seed_acme.envs import settings as settings_lib
from seed_acme.envs import vector

# Fields of envpool's configuration that are not settings, because this adapter sets them.
_NOT_SETTINGS = frozenset(
  {
    'num_envs',
    'batch_size',
    'max_num_players',
    'thread_affinity_offset',
    'base_path',
    'seed',
    'env_seed',
    'env_name',
    'task',
    'gym_reset_return_info',
  }
)
# Defaults for Atari that make `envpool:Pong-v5` the same as `atari:Pong`. envpool's would stack 4
# screens, press the button at the start and leave out actions.
_ATARI_DEFAULTS = {'stack_num': 1, 'use_fire_reset': False, 'full_action_space': True}
# Settings for Atari that envpool does not have; they are those of `atari.Settings`.
_LIVES_DEFAULTS = {'life_loss': 'ignore', 'fire_at_start': False}
# Settings that envpool does not check: it crashes, divides by 0, or shows the same screen for ever.
_BOUNDS = {
  'frame_skip': bounds.at_least(1),
  'img_height': bounds.at_least(1),
  'img_width': bounds.at_least(1),
  'max_episode_steps': bounds.at_least(1),
  'noop_max': bounds.at_least(1),
  'num_threads': bounds.at_least(0),  # 0 = envpool's choice
  'repeat_action_probability': bounds.Bound(0, 1, is_open_above=True),
  'stack_num': bounds.at_least(1),
}
_ALL_ACTIONS, _FIRE = 18, 1  # in a full set each action is its own code
_SEEDS = 2**31  # envpool takes seeds as C++ ints


class Envpool:
  """A `core.VectorEnvironment`. Called from one thread; has `num_threads` threads of its own.

  envpool starts an episode by itself: the step after an end ignores the action and returns the
  first observation, with reward 0, which is dm_env's LAST -> FIRST. Terminated is LAST with
  discount 0; truncated is LAST with discount 1. If both hold, envpool tells of the truncation.
  Pictures have their channels last. Float64 becomes float32. Lost lives of Atari games may
  have discount 0, and FIRE may be played after them, as `atari.Settings` explains.
  """

  def __init__(self, level: str, seeds: list[int], settings: dict[str, Any], renders: bool = False):
    """level, settings: must have passed `check`. seeds: one per environment."""
    self._level = level
    self.num_environments = len(seeds)
    self._all_ids = np.arange(len(seeds), dtype=np.int32)
    lives = {name: settings.get(name, value) for name, value in _LIVES_DEFAULTS.items()}
    self._lives = atari_lives.Lives(len(seeds), **lives) if is_atari(level) else None
    own = {name: value for name, value in settings.items() if name not in _LIVES_DEFAULTS}
    config = {'num_threads': 1, **_defaults(level), **own}
    chosen = {**_settings(level), **config}
    if renders:
      config['render_mode'] = 'rgb_array'
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')  # gymnasium warns about the precision of bounds
      try:
        self._pool = _import().make_gymnasium(
          level, num_envs=len(seeds), seed=[seed % _SEEDS for seed in seeds], **config
        )
      except (ImportError, TypeError, ValueError, RuntimeError) as error:
        first_line = str(error).partition('\n')[0]
        raise types.UserError(f"environment 'envpool:{level}' with {settings}: {first_line}") from (
          error
        )
      observation, action = _spaces(self._pool, level)
    self._observation = vector.Structure(
      gym_spaces.make_converter(observation, level, 'observation').spec
    )
    self._leaves = self._observation.flatten(gym_spaces.leaves(observation))
    action = gym_spaces.make_converter(action, level, 'action').spec
    self._has_channels_first = _has_channels_first(chosen)
    # In other suites, screens and colours have the order that envpool gives them.
    self._num_screens: int = chosen['stack_num'] if is_atari(level) else 1
    self._action_dtypes = [spec.dtype for spec in vector.Structure(action).leaves]
    self.spec = types.EnvironmentSpec(
      observation=self._observation.unflatten(
        [
          float_specs.narrow_spec(_shown(spec, self._has_channels_first))
          for spec in self._observation.leaves
        ]
      ),
      action=tree.map_structure(float_specs.narrow_inwards, action),
      frames_per_step=chosen['frame_skip'] if _has_screens(chosen) else 1,
    )
    self._action = vector.Structure(self.spec.action)
    self._dtypes = [spec.dtype for spec in vector.Structure(self.spec.observation).leaves]
    self._has_ended = np.zeros(len(seeds), bool)
    self._begun = False
    if renders:
      self.render_check()

  def reset(self) -> types.VectorTimeStep:
    """Abandons the episodes and starts new ones; the random streams continue."""
    observation, info = self._pool.reset(self._all_ids)
    self._begun = True
    zeros = np.zeros(self.num_environments)
    everyone = np.ones(self.num_environments, bool)
    return self._timestep(everyone, zeros, ~everyone, ~everyone, observation, info)

  def step(self, actions: types.Nest) -> types.VectorTimeStep:
    """actions: nest of `[E, ...]` that matches `spec.action`; ignored where the row was LAST.

    ValueError for another shape, or choices that do not exist.
    """
    if not self._begun:
      return self.reset()
    given = [
      _checked(leaf, spec, dtype, self.num_environments)
      for leaf, spec, dtype in zip(
        self._action.flatten(actions), self._action.leaves, self._action_dtypes
      )
    ]
    if self._lives is not None:
      given = [np.where(self._lives.fires, _FIRE, given[0]).astype(given[0].dtype)]
    is_first = self._has_ended
    observation, reward, terminated, truncated, info = self._pool.step(
      self._action.unflatten(given), self._all_ids
    )
    return self._timestep(is_first, reward, terminated, truncated, observation, info)

  def _timestep(
    self,
    is_first: np.ndarray,
    reward: np.ndarray,
    terminated: np.ndarray,
    truncated: np.ndarray,
    observation: Any,
    info: dict[str, Any],
  ) -> types.VectorTimeStep:
    if (info['env_id'] != self._all_ids).any():
      raise RuntimeError(f'envpool returned environments {info["env_id"]}, not all in order')
    discount = 1.0 if self._lives is None else self._lives.read(info['lives'], is_first)
    leaves = [
      self._read(number, leaf) for number, leaf in enumerate(self._observation.flatten(observation))
    ]
    row = self._observation.unflatten(leaves)
    timestep = lockstep.time_step(is_first, reward, terminated, truncated, row, discount)
    self._has_ended = timestep.step_type == types.LAST
    return timestep

  def _read(self, number: int, leaf: np.ndarray) -> np.ndarray:
    """Returns a copy, because envpool reuses its buffers."""
    dtype = self._dtypes[number]
    leaf = self._leaves[number].from_zero(leaf)
    if not self._has_channels_first:
      return np.array(leaf, dtype, order='C')
    # [E, screens, colours, H, W]: envpool has the newest screen last, we have it first.
    screens = leaf.reshape(len(leaf), self._num_screens, -1, *leaf.shape[2:])[:, ::-1]
    picture = np.array(screens.transpose(0, 3, 4, 1, 2), dtype, order='C')
    return picture.reshape(*picture.shape[:3], -1)

  def render(self) -> np.ndarray:
    """Returns a picture of environment 0, `[H, W, 3]` uint8. `types.UserError` if it cannot."""
    try:
      frames = self._pool.render(self._all_ids[:1])
    except (RuntimeError, NotImplementedError, ValueError, AttributeError) as error:
      raise types.UserError(
        f"environment 'envpool:{self._level}' cannot show its screen: {error}"
      ) from error
    return np.array(np.asarray(frames)[0], np.uint8)

  def render_check(self) -> None:
    """Raises `types.UserError` now if `render` would raise it later."""
    self.reset()
    self._begun = False
    self.render()

  def close(self) -> None:
    """Ends the threads."""
    self._pool.close()
    self._pool = None


def _checked(leaf: Any, spec: dm_specs.Array, dtype: np.dtype, num_environments: int) -> np.ndarray:
  """Checks one array of actions, because envpool checks nothing and reads beyond an array's end."""
  if isinstance(spec, dm_specs.DiscreteArray):
    return lockstep.check_actions(leaf, num_environments, spec.num_values).astype(dtype)
  leaf = np.asarray(leaf)
  lockstep.check_shape(leaf, (num_environments, *spec.shape))
  return leaf.astype(dtype)


def _has_channels_first(settings: dict[str, Any]) -> bool:
  """Whether the observation is a uint8 picture `[channels, height, width]`.

  It is in Atari and VizDoom, the suites that have a setting for its height, and in Procgen if its
  own setting says so. All other suites have their channels last.
  """
  return _has_screens(settings) or settings.get('channel_first', False)


def _has_screens(settings: dict[str, Any]) -> bool:
  """Whether the suite is Atari or VizDoom, which have a setting for the height of a screen."""
  return 'img_height' in settings


def _spaces(pool: Any, level: str) -> tuple[Any, Any]:
  """Returns gymnasium's spaces of observations and actions."""
  try:
    return pool.observation_space, pool.action_space
  except (TypeError, ValueError) as error:  # the spaces of some tasks of dm_control
    raise types.UserError(
      f"environment 'envpool:{level}': envpool cannot describe its observations ({error}); take "
      'the same task of another suite, such as dm_control:walker/run'
    ) from error


def _shown(spec: dm_specs.Array, has_channels_first: bool) -> dm_specs.Array:
  """Returns the specification with the channels last."""
  if not has_channels_first:
    return float_specs.without_limits(spec)
  channels, height, width = spec.shape
  return dm_specs.BoundedArray((height, width, channels), np.uint8, 0, 255, spec.name)


def check(level: str, settings: dict[str, Any]) -> None:
  """Raises `types.UserError` for an unknown level or setting, or a value that cannot be."""
  if level not in known_levels():
    near = near_names.near(level, known_levels(), 'envpool:')
    raise types.UserError(f"unknown environment 'envpool:{level}'{near}")
  players = _config_fields(level).get('max_num_players', 1)
  if players != 1:
    raise types.UserError(
      f"environment 'envpool:{level}' is for up to {players} players, and an agent plays one: take "
      'an environment for one player'
    )
  accepted = _settings(level)
  settings_lib.check_names(
    f"environment 'envpool:{level}'", settings, [*accepted, *action_scaling.NAMES]
  )
  for name, value in settings.items():
    kind = type(accepted[name])
    if type(value) is not kind and not (kind is float and type(value) is int):
      raise types.UserError(
        f"environment 'envpool:{level}': {name} ({value!r}) must be of type {kind.__name__}"
      )
    # A level's own default is right there: BabyAI's max_episode_steps is 0.
    if name in _BOUNDS and value != accepted[name]:
      _BOUNDS[name].check(f"environment 'envpool:{level}': {name}", value)
  if 'life_loss' in accepted:
    _check_lives(level, {**accepted, **settings})


def _check_lives(level: str, settings: dict[str, Any]) -> None:
  """Checks the settings for lost lives. envpool does not say which actions a set contains, so only
  the full set is known to contain FIRE."""
  if settings['zero_discount_on_life_loss']:  # it changes envpool's dm_env interface alone
    raise types.UserError(
      f"environment 'envpool:{level}': zero_discount_on_life_loss (True) has no effect here: set "
      'life_loss cut, which does the same'
    )
  choices = get_args(atari_lives.LifeLoss)
  if settings['life_loss'] not in choices:
    raise types.UserError(
      f"environment 'envpool:{level}': life_loss ({settings['life_loss']!r}) must be one of "
      f'{", ".join(choices)}'
    )
  if settings['fire_at_start']:
    spec = _import().make_spec(level, full_action_space=settings['full_action_space'])
    if spec.gymnasium_action_space.n != _ALL_ACTIONS:
      raise types.UserError(
        f"environment 'envpool:{level}': fire_at_start needs the full set of {_ALL_ACTIONS} "
        f'actions, and there are {spec.gymnasium_action_space.n}: set full_action_space=True, or '
        'fire_at_start=False for a game without a button'
      )


def is_atari(level: str) -> bool:
  """Whether the level is one of ale-py's games."""
  return 'full_action_space' in _config_fields(level)


def known_levels() -> list[str]:
  """Returns all levels of the installed envpool."""
  return list(_import().list_all_envs())


def _defaults(level: str) -> dict[str, Any]:
  return _ATARI_DEFAULTS if is_atari(level) else {}


def _settings(level: str) -> dict[str, Any]:
  """Returns the names and defaults of a level's settings."""
  lives = _LIVES_DEFAULTS if is_atari(level) else {}
  fields = {**_config_fields(level), **_defaults(level), **lives, 'num_threads': 1}
  return {
    name: value
    for name, value in fields.items()
    if name not in _NOT_SETTINGS and isinstance(value, (bool, int, float, str))
  }


@functools.cache
def _config_fields(level: str) -> dict[str, Any]:
  try:
    return _import().make_spec(level).config._asdict()
  except ImportError as error:  # a library of the system that some suites need
    raise types.UserError(f"environment 'envpool:{level}': {error}") from error


def _import() -> Any:
  return importlib.import_module('envpool')
