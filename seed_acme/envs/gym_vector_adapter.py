"""Adapts vectors of gymnasium 1.1 and later (`gymnasium.make_vec`) to `core.VectorEnvironment`.

The adapter uses only attributes and class names; `make` imports gymnasium.
"""

from __future__ import annotations

from typing import Any
import warnings

from dm_env import specs as dm_specs
import numpy as np
import tree

from seed_acme import types
from seed_acme.envs import choices
from seed_acme.envs import float_specs
from seed_acme.envs import gym_adapter
from seed_acme.envs import gym_levels
from seed_acme.envs import gym_spaces
from seed_acme.envs import lockstep
from seed_acme.envs import time_steps
from seed_acme.envs import vector

_NEXT_STEP, _SAME_STEP, _DISABLED = 'NextStep', 'SameStep', 'Disabled'  # as gymnasium has them
_SEEDS_ONE_BY_ONE = {'SyncVectorEnv', 'AsyncVectorEnv'}
_SEEDS = 2**31  # some environments pass their seed to C++


class GymVector:
  """A vector of gymnasium; the adapter owns it and closes it. Called from one thread.

  Terminated is LAST with discount 0, truncated is LAST with discount 1, and termination wins if
  both hold. Both rows show the last observation of their episode, in every autoreset mode:

  * NEXT_STEP: the step after an end begins the next episode, which is dm_env's LAST -> FIRST.
  * SAME_STEP: the step that ends an episode returns the first observation of the next one, and the
    last one is taken from the info (`final_obs`). The next step cannot return the first one,
    because a vector steps all its environments. So environments that had ended take a step that
    nobody sees, and are then reset alone, by `reset(options={'reset_mask': ...})`.
  * DISABLED: like SAME_STEP, with another such reset before that step.

  The first reset is seeded. Vectors that gymnasium makes of single environments get one seed per
  environment, others one for all. Spaces are converted as in `gym_adapter.GymEnvironment`.
  """

  def __init__(self, environment: Any, num_environments: int, seeds: list[int], name: str):
    """num_environments: required number in the vector. seeds: one for each. name: for messages.

    Raises `types.UserError` for another number, unsupported spaces, and a vector that does not
    say how it resets.
    """
    if environment.num_envs != num_environments:
      raise types.UserError(
        f'{name}: the vector has {environment.num_envs} environments instead of '
        f'{num_environments}: make it with num_envs=num_environments'
      )
    self._environment = environment
    self._name = name
    self._mode = _autoreset_mode(environment, name)
    self.num_environments = num_environments
    inside = getattr(environment, 'unwrapped', environment)
    has_own_seeds = _SEEDS_ONE_BY_ONE & gym_spaces.class_names(inside)
    self._seed: Any = list(seeds) if has_own_seeds else seeds[0] % _SEEDS
    space, actions = environment.single_observation_space, environment.single_action_space
    observation = gym_spaces.make_converter(space, f'{name}: observation space', 'observation').spec
    action = gym_spaces.make_converter(actions, f'{name}: action space', 'action').spec
    self._observation = vector.Structure(observation)
    self._observation_structure = gym_spaces.leaves(space)
    self._observation_leaves = tree.flatten(self._observation_structure)
    self._action_leaves = tree.flatten(gym_spaces.leaves(actions))
    self.spec = types.EnvironmentSpec(
      observation=tree.map_structure(float_specs.narrow_spec, observation),
      action=tree.map_structure(float_specs.narrow_inwards, action),
      frames_per_step=int(getattr(environment, 'frames_per_step', 1)),
    )
    self._action = vector.Structure(self.spec.action)
    self._clips = [float_specs.clip_bounds(spec) for spec in vector.Structure(action).leaves]
    self._dtypes = [spec.dtype for spec in vector.Structure(self.spec.observation).leaves]
    self._has_ended = np.zeros(num_environments, bool)
    self._begun = False

  def reset(self) -> types.VectorTimeStep:
    """Abandons the episodes and starts new ones; the random streams continue."""
    seed, self._seed = self._seed, None
    observation, _ = self._environment.reset(seed=seed)
    self._begun = True
    self._has_ended = np.zeros(self.num_environments, bool)
    everyone, zeros = np.ones(self.num_environments, bool), np.zeros(self.num_environments)
    first = self._observation.unflatten(self._read(observation))
    return lockstep.time_step(everyone, zeros, ~everyone, ~everyone, first)

  def step(self, actions: types.Nest) -> types.VectorTimeStep:
    """actions: nest of `[E, ...]` that matches `spec.action`; ignored where the row was LAST.

    ValueError for another shape, or choices that do not exist.
    """
    if not self._begun:
      return self.reset()
    is_first = self._has_ended
    given = self._action.unflatten(
      [
        self._written(leaf, spec, of_space, clip, is_first)
        for leaf, spec, of_space, clip in zip(
          self._action.flatten(actions), self._action.leaves, self._action_leaves, self._clips
        )
      ]
    )
    if self._mode == _DISABLED and is_first.any():
      self._environment.reset(options={'reset_mask': is_first.copy()})
    result = self._environment.step(given)
    if not isinstance(result, (tuple, list)) or len(result) != 5:
      expected = 'observation, reward, terminated, truncated, info'
      raise self._error('what step() returns', expected, time_steps.shown(result))
    observation, reward, terminated, truncated, info = result
    for field, values in (('reward', reward), ('terminated', terminated), ('truncated', truncated)):
      if np.shape(values) not in ((), (self.num_environments,)):  # it would be broadcast
        raise self._error(field, f'shape ({self.num_environments},)', f'{np.shape(values)}')
    leaves = self._read(observation)
    self._has_ended = np.logical_or(terminated, truncated) & ~is_first
    if self._mode == _SAME_STEP:
      self._put_last_observations(leaves, info)
    if self._mode != _NEXT_STEP and is_first.any():
      leaves = self._restarted(is_first, leaves)
    row = self._observation.unflatten(leaves)
    return lockstep.time_step(is_first, reward, terminated, truncated, row)

  def _put_last_observations(self, leaves: list[np.ndarray], info: dict[str, Any]) -> None:
    """Puts last observations in the place of the next episodes' first ones."""
    for index in np.flatnonzero(self._has_ended):
      final = gym_adapter.last_observation(info, None)
      if final is None:
        found = "has no 'final_obs'" if isinstance(info, dict) else f'is a {type(info).__name__}'
        raise types.UserError(
          f'{self._name} begins the next episode in the step that ends one ({_SAME_STEP}), and its '
          f"info {found}: give a dict with the last observation as 'final_obs', or make the vector "
          f'with autoreset_mode={_NEXT_STEP}'
        )
      last = self._arrays(_picked(final, index, self._observation_structure))
      for leaf, value, of_space in zip(leaves, last, self._observation_leaves):
        leaf[index] = of_space.from_zero(np.asarray(value))

  def _restarted(self, is_first: np.ndarray, leaves: list[np.ndarray]) -> list[np.ndarray]:
    """Resets the environments `is_first` and no others, and returns the observations of all.

    leaves: observations that the step returned, which the other environments keep.
    """
    observation, _ = self._environment.reset(options={'reset_mask': is_first.copy()})
    fresh = self._read(observation)
    # With SAME_STEP, environments that have just ended show the next episode's first observation.
    others = ~is_first & ~self._has_ended
    for before, after in zip(leaves, fresh):
      if before[others].tobytes() != after[others].tobytes():
        raise types.UserError(
          f"{self._name} does not heed the reset_mask of reset(options={{'reset_mask': ...}}), "
          f'which it needs with autoreset_mode={self._mode}: make the vector with '
          f'autoreset_mode={_NEXT_STEP}'
        )
      before[is_first] = after[is_first]
    return leaves

  def _read(self, observation: Any) -> list[np.ndarray]:
    """Returns copies `[E, ...]`, because a vector may reuse its buffers."""
    read = []
    for leaf, of_space, dtype in zip(
      self._arrays(observation), self._observation_leaves, self._dtypes
    ):
      leaf = of_space.from_zero(np.asarray(leaf))
      # Another kind of dtype is left as it is, for `checked.CheckedEnvironment` to report.
      fits = np.can_cast(leaf.dtype, of_space.dtype, 'same_kind')
      copy = np.array(leaf, dtype if fits else leaf.dtype, order='C')
      if copy.dtype != leaf.dtype and dtype.kind in 'iu' and (copy != leaf).any():
        copy = np.array(leaf)  # it would wrap around
      read.append(copy)
    return read

  def _arrays(self, observation: Any) -> list[Any]:
    """Returns the arrays of an observation in the order of the specification."""
    try:
      structured = gym_spaces.in_structure(observation, self._observation_structure)
      return self._observation.flatten(structured)
    except (KeyError, TypeError, ValueError) as error:
      expected = f'the structure of the space, {self._observation}'
      found = time_steps.shown(observation)
      raise self._error('observation', expected, found) from error

  def _error(self, field: str, expected: str, found: str) -> types.UserError:
    return types.UserError(f'{self._name}: {field}: expected {expected}, got {found}')

  def _written(
    self,
    leaf: Any,
    spec: dm_specs.Array,
    of_space: gym_spaces.Leaf,
    clip: tuple[np.ndarray, np.ndarray] | None,
    is_unused: np.ndarray,
  ) -> np.ndarray:
    """Converts one array of actions; unused ones become the valid action nearest to 0."""
    if isinstance(spec, dm_specs.DiscreteArray):
      leaf = lockstep.check_actions(leaf, self.num_environments, spec.num_values, ~is_unused)
    else:
      leaf = np.array(leaf)
      lockstep.check_shape(leaf, (self.num_environments, *spec.shape))
      is_bounded = isinstance(spec, dm_specs.BoundedArray)
      leaf[is_unused] = np.clip(0, spec.minimum, spec.maximum) if is_bounded else 0
      is_choice = isinstance(spec, choices.ChoicesArray)
      if is_choice and ((leaf < 0) | (leaf > spec.maximum)).any():
        raise ValueError(f'actions {leaf.tolist()}: expected 0 ... {spec.maximum.tolist()}')
    leaf = leaf.astype(of_space.dtype)
    return of_space.from_start(leaf if clip is None else np.clip(leaf, *clip))

  @property
  def can_render(self) -> bool:
    return getattr(self._environment, 'render_mode', None) == 'rgb_array'

  def render(self) -> np.ndarray:
    """Returns a picture of environment 0, `[H, W, 3]` uint8. `types.UserError` if it cannot."""
    frames = self._environment.render() if self.can_render else None
    if frames is None:
      raise types.UserError(
        f"{self._name} cannot show its screen: make the vector with render_mode='rgb_array'"
      )
    return np.array(np.asarray(frames[0]), np.uint8)

  def close(self) -> None:
    self._environment.close()


def is_vector(environment: Any) -> bool:
  """Whether the environment has the interface of gymnasium's vectors."""
  return hasattr(environment, 'num_envs') and hasattr(environment, 'single_observation_space')


def _autoreset_mode(environment: Any, name: str) -> str:
  mode = (getattr(environment, 'metadata', None) or {}).get('autoreset_mode')
  mode = getattr(mode, 'value', mode)
  if mode not in (_NEXT_STEP, _SAME_STEP, _DISABLED):
    raise types.UserError(
      f"{name}: metadata['autoreset_mode'] of the vector ({mode!r}) must be one of "
      "gymnasium.vector.AutoresetMode, which says what follows an episode's end; vectors have it "
      'since gymnasium 1.1'
    )
  return mode


def _picked(values: Any, index: int, structure: types.Nest) -> Any:
  """Returns one environment's part of an info that holds values for all.

  structure: of the space, see `gym_spaces.leaves`.
  """
  if isinstance(values, dict) and isinstance(structure, dict):
    return {key: _picked(values[key], index, inner) for key, inner in structure.items()}
  return values[index]


def make(
  level: str, num_environments: int, seeds: list[int], settings: dict[str, Any]
) -> GymVector:
  """Calls `gymnasium.make_vec` with a `level` and `settings` that have passed `gym_levels.check`.

  settings: include `vectorization_mode`. The processes of `async` are spawned, because forks of a
  process with threads may hang.
  """
  settings = dict(settings)
  mode = settings.pop(gym_levels.VECTORIZATION_MODE)
  if mode != gym_levels.OF_THEIR_OWN:
    settings = {'disable_env_checker': True, **settings}
  with warnings.catch_warnings():
    warnings.filterwarnings('ignore', message='.*Box bound precision lowered')
    environment = gym_levels.build(
      'gymnasium',
      'make_vec',
      level,
      num_envs=num_environments,
      vectorization_mode=mode,
      vector_kwargs={'context': 'spawn'} if mode == 'async' else {},
      **settings,
    )
  return GymVector(environment, num_environments, seeds, level)
