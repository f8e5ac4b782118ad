"""Rendering backend and checks for the MuJoCo environments of gym, gymnasium and dm_control.

Imports none of these packages.
"""

from __future__ import annotations

import importlib.util
import os
import re
from typing import Any

from seed_acme import types
from seed_acme.checks import extras

BACKEND_VARIABLE = 'MUJOCO_GL'
BACKEND = 'egl'  # draws without a display, on a GPU or in software
_OLD_LEVEL = re.compile(r'-v[23]$')  # these need mujoco_py, which nobody maintains


def choose_backend() -> None:
  """Chooses EGL for rendering, unless the environment variable is set.

  By default the packages try to open a window first, which a server does not have.
  """
  os.environ.setdefault(BACKEND_VARIABLE, BACKEND)


def no_pictures(name: str, error: Exception) -> types.UserError:
  """Returns the error for a rendering backend that is missing or does not work here."""
  backend = os.environ.get(BACKEND_VARIABLE, '')
  return types.UserError(
    f'{name} cannot show its screen with {BACKEND_VARIABLE}={backend}: {error}. Set '
    f'{BACKEND_VARIABLE} to egl (Debian: apt-get install libegl1) or osmesa (libosmesa6), or '
    'do without pictures of it'
  )


def check_level(package: str, level: str, entry_point: Any) -> None:
  """Raises `types.UserError` for a MuJoCo level of gym or gymnasium that cannot be built.

  entry_point: the one of its registration, a dotted path or a function.
  """
  path = _dotted_path(entry_point)
  if not (path.startswith(f'{package}.envs.') and 'mujoco' in path):
    return
  if _OLD_LEVEL.search(level) and not (package == 'gym' and importlib.util.find_spec('mujoco_py')):
    raise types.UserError(
      f'{package} environment {level!r} needs mujoco_py, which is no longer maintained: take '
      f'{_OLD_LEVEL.sub("-v4", level)!r}'
    )
  if not importlib.util.find_spec('mujoco'):
    raise types.UserError(
      f'{package} environment {level!r} needs mujoco: {extras.install_command("mujoco")}'
    )


def _dotted_path(entry_point: Any) -> str:
  if isinstance(entry_point, str):
    return entry_point
  # gymnasium registers a function, `_raise_mujoco_py_error`, in place of the old levels.
  return f'{entry_point.__module__}.{getattr(entry_point, "__name__", "")}'


def is_mujoco(environment: Any) -> bool:
  """Whether an environment of gym or gymnasium is one of their MuJoCo ones."""
  return any(cls.__name__ in ('MujocoEnv', 'BaseMujocoEnv') for cls in type(environment).__mro__)
