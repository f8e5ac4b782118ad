"""Tasks of dm_control's suite, such as `cheetah/run`. The package is imported when needed."""

from __future__ import annotations

import importlib
import os
from typing import Any

import dm_env
from dm_env import specs as dm_specs
import numpy as np

from seed_acme import types
from seed_acme.checks import near_names
from seed_acme.envs import action_scaling
from seed_acme.envs import lockstep
from seed_acme.envs import mujoco_setup
from seed_acme.envs import settings as settings_lib

# MuJoCo's largest number (mjMAXVAL) stands for "no bound" in specifications.
_NO_BOUND = 1e10
# Settings by where they are passed; _OF_TASK is joined by the parameters of a task's function.
_OF_ENVIRONMENT = ('control_timestep', 'n_sub_steps', 'flat_observation', 'legacy_step')
_OF_SUITE = ('visualize_reward',)
_OF_SCREEN = {'screen_height': 240, 'screen_width': 320, 'camera': 0}  # pixels, pixels, number
# -1 is a free camera
_LEAST = {'screen_height': 1, 'screen_width': 1, 'camera': -1, 'n_sub_steps': 1}
_ABOVE_0 = ('time_limit', 'control_timestep')  # seconds
_OF_TASK = ('time_limit',)
_NOT_SETTINGS = ('random', 'environment_kwargs')
# Settings of every task; some have more.
SETTINGS = (*_OF_TASK, *_OF_ENVIRONMENT, *_OF_SUITE, *_OF_SCREEN)


class DmControl(dm_env.Environment):
  """One task of the suite, which is a dm_env environment except for its pictures and its end.

  Observations stay a dict of float64 arrays (one array with `flat_observation`). The time
  limit ends an episode with LAST and discount 1, a truncation; most tasks have no other end. If a
  task ends in the very step of the limit, its end counts.
  Actions without bounds are specified as `Array`.
  """

  def __init__(self, environment: Any, name: str, screen: dict[str, Any]):
    """environment: owned by the adapter. name: for messages. screen: size and camera."""
    self._environment = environment
    self._name = name
    self._screen = {
      'height': screen['screen_height'],
      'width': screen['screen_width'],
      'camera_id': screen['camera'],
    }

  def reset(self) -> dm_env.TimeStep:
    return self._environment.reset()

  def step(self, action: types.Nest) -> dm_env.TimeStep:
    timestep = self._environment.step(action)
    if timestep.last() and timestep.discount == 1.0:  # at the limit, the task was not asked
      discount = self._environment.task.get_termination(self._environment.physics)
      if discount is not None:
        return timestep._replace(discount=discount)
    return timestep

  def observation_spec(self) -> types.Nest:
    return self._environment.observation_spec()

  def action_spec(self) -> types.Nest:
    spec = self._environment.action_spec()
    if (np.abs([spec.minimum, spec.maximum]) < _NO_BOUND).all():
      return spec
    return dm_specs.Array(spec.shape, spec.dtype, spec.name)

  def render(self) -> np.ndarray:
    """Returns a picture `[H, W, 3]` uint8. `types.UserError` if nothing can be drawn here."""
    try:
      return self._environment.physics.render(**self._screen)
    except (RuntimeError, ImportError, AttributeError) as error:  # no backend, or a broken one
      raise mujoco_setup.no_pictures(self._name, error) from error
    except ValueError as error:  # no such camera, too large a picture
      first_line = str(error).partition('\n')[0]
      raise types.UserError(f'{self._name} cannot show its screen: {first_line}') from error

  def close(self) -> None:
    self._environment.physics.free()


def make(level: str, seed: int, settings: dict[str, Any], renders: bool = False) -> DmControl:
  """Makes one environment from a `level` and `settings` that have passed `check`.

  renders: draws a picture immediately, so that a missing backend is noticed before an episode.
  """
  suite = _suite()
  domain, _, task = level.partition('/')
  of_environment = {name: settings[name] for name in _OF_ENVIRONMENT if name in settings}
  of_suite = {name: settings[name] for name in _OF_SUITE if name in settings}
  screen = {name: settings.get(name, default) for name, default in _OF_SCREEN.items()}
  of_task = {
    name: value
    for name, value in settings.items()
    if name not in (*of_environment, *of_suite, *screen)
  }
  try:
    inside = suite.load(
      domain,
      task,
      task_kwargs={'random': seed, **of_task},
      environment_kwargs=of_environment,
      **of_suite,
    )
  except (TypeError, ValueError) as error:
    if not settings:
      raise
    raise types.UserError(f"environment 'dm_control:{level}' with {settings}: {error}") from error
  environment = DmControl(inside, f'dm_control:{level}', screen)
  if renders:
    environment.render()
  return environment


def check(level: str, settings: dict[str, Any]) -> None:
  """Raises `types.UserError` for an unknown domain, task or setting; builds nothing."""
  suite = _suite()
  domain, _, task = level.partition('/')
  if (domain, task) not in suite.ALL_TASKS:
    tasks = suite.TASKS_BY_DOMAIN
    known = f'domains: {", ".join(tasks)}'
    if domain in tasks:
      known = f'tasks of {domain}: {", ".join(tasks[domain])}'
    raise types.UserError(
      f"unknown environment 'dm_control:{level}'"
      f'{near_names.near(level, known_levels(), "dm_control:")}: expected '
      f'dm_control:domain/task; {known}'
    )
  # Only the domain's own table has the functions of its tasks.
  function = importlib.import_module(f'dm_control.suite.{domain}').SUITE[task]
  accepted = [
    *settings_lib.names(function, _NOT_SETTINGS),
    *_OF_ENVIRONMENT,
    *_OF_SUITE,
    *_OF_SCREEN,
    *action_scaling.NAMES,
  ]
  settings_lib.check_names(f"environment 'dm_control:{level}'", settings, accepted)
  for name, least in _LEAST.items():
    if name in settings:
      lockstep.check_integers(f'dm_control:{level}', least, **{name: settings[name]})
  for name in _ABOVE_0:
    value = settings.get(name, 1.0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
      raise types.UserError(f'dm_control:{level}: {name} ({value!r}) must be a number > 0')


def known_levels() -> list[str]:
  """Returns each `domain/task` of the installed suite."""
  return ['/'.join(level) for level in _suite().ALL_TASKS]


def _suite() -> Any:
  """Imports the suite, with a working rendering backend, which it chooses when first imported."""
  variable = mujoco_setup.BACKEND_VARIABLE
  if variable in os.environ:
    try:
      return importlib.import_module('dm_control.suite')
    except (ImportError, RuntimeError, AttributeError) as error:
      raise types.UserError(
        f'dm_control cannot be imported with {variable}={os.environ[variable]}: {error}. Set '
        f'{variable} to egl, or to disabled for runs without pictures'
      ) from error
  mujoco_setup.choose_backend()
  try:
    return importlib.import_module('dm_control.suite')
  except (ImportError, RuntimeError, AttributeError):
    os.environ[variable] = 'disabled'  # state observations need no rendering
    return importlib.import_module('dm_control.suite')
