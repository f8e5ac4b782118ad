"""Adapts environments of `gym` (old and 0.26) or `gymnasium` to dm_env.

The adapter uses only attributes and class names, so it imports neither package; `gym_levels`, which
builds environments from their ids, imports the one that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import functools
import inspect
from typing import Any

import dm_env
import numpy as np

from seed_acme import types
from seed_acme.checks import extras
from seed_acme.envs import gym_spaces
from seed_acme.envs import mujoco_setup
from seed_acme.envs import time_steps

_MID = dm_env.StepType.MID
# Keys of an info, where a wrapper that has already reset the environment puts an episode's last
# observation; the second is that of gym and of gymnasium before 1.1.
LAST_OBSERVATION = ('final_obs', 'final_observation')


class GymEnvironment(dm_env.Environment):
  """One gym or gymnasium environment; the adapter owns it and closes it.

  Terminated is LAST with discount 0. Truncated (`TimeLimit.truncated` in the info of the
  4-tuple interface) is LAST with discount 1; termination wins if both hold.
  An episode's last observation is taken from the info if a wrapper has already reset the
  environment (`final_obs`).
  The first reset is seeded, by `reset(seed=...)` or else by `seed(...)`; later resets
  continue the environment's own random stream. The innermost environment gets the seed also where
  a wrapper does not pass it on; an environment with neither of the two is not seeded.

  A Discrete space is counted from 0 here, whatever its `start`; its specification is
  int32. Observations are cast to the dtype of their space if it is of the same or a wider
  kind (float64 to float32, int to float), because many environments are careless about it.
  """

  def __init__(self, environment: Any, seed: int, name: str):
    """name: the environment's, for messages. `types.UserError` for unsupported spaces."""
    self._environment = environment
    self._seed: int | None = seed
    self._observation = gym_spaces.make_converter(
      environment.observation_space, f'{name}: observation space', 'observation'
    )
    self._action = gym_spaces.make_converter(
      environment.action_space, f'{name}: action space', 'action'
    )
    self._name = name
    self._has_ended = True
    self.frames_per_step = int(getattr(environment, 'frames_per_step', 1))

  def reset(self) -> dm_env.TimeStep:
    """Starts a new episode."""
    result = self._seeded_reset()
    # (observation, info) since gym 0.26; before, only the observation, which may be a tuple, too.
    if (
      isinstance(result, tuple)
      and len(result) == 2
      and isinstance(result[1], dict)
      and not (
        'Tuple' in gym_spaces.class_names(self._environment.observation_space)
        and self._environment.observation_space.contains(result)
      )
    ):
      result = result[0]
    self._has_ended = False
    return dm_env.restart(self._observation.read(result))

  def step(self, action: types.Nest) -> dm_env.TimeStep:
    """action: matches `action_spec`. It is ignored after LAST, where a new episode starts."""
    if self._has_ended:
      return self.reset()
    result = self._environment.step(self._action.write(action))
    observation, reward, terminated, truncated, info = self._of_either_api(result)
    self._has_ended = terminated or truncated
    if self._has_ended:
      observation = last_observation(info, observation)
    observation = self._observation.read(observation)
    if not self._has_ended:
      return dm_env.TimeStep(_MID, reward, 1.0, observation)
    if terminated:
      return dm_env.termination(reward, observation)
    return dm_env.truncation(reward, observation)

  def _of_either_api(self, result: Any) -> tuple[Any, Any, bool, bool, Any]:
    """Returns observation, reward, terminated, truncated, info from the result of either API."""
    size = len(result) if isinstance(result, (tuple, list)) else 0
    if size == 5:
      observation, reward, *ends, info = result
      terminated, truncated = map(_as_bool, ends)
    elif size == 4:
      observation, reward, end, info = result
      done = _as_bool(end)
      truncated = done and bool(info.get('TimeLimit.truncated', False))
      terminated = done and not truncated
    else:
      raise time_steps.WrongValue(
        'what step() returns',
        'observation, reward, terminated, truncated, info (or observation, reward, done, info)',
        f'{size} values' if size else type(result).__name__,
      )
    return observation, reward, terminated, truncated, info

  def observation_spec(self) -> types.Nest:
    return self._observation.spec

  def action_spec(self) -> types.Nest:
    return self._action.spec

  def render(self) -> np.ndarray:
    """Returns a picture `[H, W, 3]` uint8. `types.UserError` if it cannot, or lacks a package."""
    screen = self._rendered()
    if isinstance(screen, np.ndarray):
      return screen
    raise types.UserError(
      f'{self._name} cannot show its screen, render() returned '
      f"{type(screen).__name__}: build it with render_mode='rgb_array'"
    )

  def _rendered(self) -> Any:
    """Returns the result of the environment's own `render`."""
    inside = getattr(self._environment, 'unwrapped', self._environment)
    # Before gym 0.26 the mode was an argument of every call.
    is_old = _accepts(getattr(inside, 'render', lambda: None), 'mode')
    is_mujoco = mujoco_setup.is_mujoco(inside)
    if is_mujoco:
      mujoco_setup.choose_backend()
    try:
      return self._environment.render(**({'mode': 'rgb_array'} if is_old else {}))
    except Exception as error:
      if is_mujoco:
        raise mujoco_setup.no_pictures(self._name, error) from error
      if not {'DependencyNotInstalled', 'NotImplementedError'} & gym_spaces.class_names(error):
        raise
      needs = str(error) or 'its method render() is not implemented'
      if 'pygame' in needs:  # gym would name one of its own extras
        needs = f'it needs pygame: {extras.install_command("video")}'
      raise types.UserError(f'{self._name} cannot show its screen: {needs}') from error

  def close(self) -> None:
    self._environment.close()

  def _seeded_reset(self) -> Any:
    seed, self._seed = self._seed, None
    if seed is None:
      return self._environment.reset()
    inside = getattr(self._environment, 'unwrapped', self._environment)
    takes_seed = _accepts(self._environment.reset, 'seed')
    has_method = callable(getattr(self._environment, 'seed', None))
    if _accepts(inside.reset, 'seed') and (takes_seed or not has_method):
      with _seeding(inside, seed):
        return self._environment.reset(**({'seed': seed} if takes_seed else {}))
    if has_method:
      self._environment.seed(seed)
    elif callable(getattr(inside, 'seed', None)):
      inside.seed(seed)
    return self._environment.reset()


@contextlib.contextmanager
def _seeding(inside: Any, seed: int) -> Iterator[None]:
  """Gives the first call of an environment's `reset` the seed, if it has none.

  A wrapper around it may take no seed, or take one, by name or within **kwargs, and not pass it on.
  Another reset before that of the wrapper could fail where the wrapper prepares the environment.
  """
  own_reset, seeds = inside.reset, [seed]

  @functools.wraps(own_reset)
  def reset(*arguments: Any, **named: Any) -> Any:
    if seeds and named.get('seed') is None:
      named['seed'] = seeds.pop()
    seeds.clear()
    return own_reset(*arguments, **named)

  was_set = 'reset' in getattr(inside, '__dict__', {})
  with contextlib.suppress(AttributeError):  # it may have __slots__
    inside.reset = reset
  try:
    yield
  finally:
    if was_set:
      inside.reset = own_reset
    elif 'reset' in getattr(inside, '__dict__', {}):
      del inside.reset


def _as_bool(end: Any) -> bool:
  try:
    return bool(end)
  except ValueError:  # an array of several values
    raise time_steps.WrongValue(
      "an episode's end (terminated, truncated or done)", 'a bool', time_steps.shown(end)
    ) from None


def last_observation(info: Any, otherwise: Any) -> Any:
  """Returns the last observations that an info has, see `LAST_OBSERVATION`."""
  known = info if isinstance(info, dict) else {}
  return next((known[key] for key in LAST_OBSERVATION if known.get(key) is not None), otherwise)


def _accepts(function: Callable[..., Any], name: str) -> bool:
  try:
    parameters = inspect.signature(function).parameters.values()
  except ValueError:  # a compiled function without a signature
    return False
  return any(p.name == name or p.kind == p.VAR_KEYWORD for p in parameters)
