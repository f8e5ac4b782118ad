"""Loads experiments by name (a module of this folder) or by path: a user's Python file, or the
config.json of a run.
"""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import pkgutil
import sys

from seed_acme import config as config_lib
from seed_acme import configs
from seed_acme import types
from seed_acme.checks import field_types
from seed_acme.checks import near_names
from seed_acme.storage import saved_config


def names() -> list[str]:
  """Returns the names of all configurations that come with seed_acme."""
  return sorted(
    module.name for module in pkgutil.iter_modules(configs.__path__) if module.name != 'registry'
  )


def load(name_or_path: str) -> config_lib.ExperimentConfig:
  """Loads the experiment of that name, of a Python file that defines `experiment()`, or of the JSON
  file that a run has saved."""
  if name_or_path.endswith('.json'):
    return saved_config.load(name_or_path)
  if name_or_path.endswith('.py') or '/' in name_or_path:
    return _load_file(pathlib.Path(name_or_path))
  if name_or_path not in names():
    raise types.UserError(
      f'unknown config {name_or_path!r}'
      f'{near_names.hint(name_or_path, names())}\n'
      f'known: {", ".join(names())}; or give the path of a .py file'
    )
  return importlib.import_module(f'seed_acme.configs.{name_or_path}').experiment()


def _load_file(path: pathlib.Path) -> config_lib.ExperimentConfig:
  if path.is_dir():
    raise types.UserError(
      f'config file {path} is a folder: give a .py file, or the config.json of a run'
    )
  if not path.is_file():
    raise types.UserError(f'config file {path} does not exist')
  if path.suffix != '.py':
    raise types.UserError(f'config file {path} must end in .py or .json')
  spec = importlib.util.spec_from_file_location(path.stem, path)
  assert spec is not None and spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  sys.modules.setdefault(path.stem, module)  # dataclasses look there for their own module
  try:
    spec.loader.exec_module(module)
    experiment = module.experiment()
  except Exception as error:  # from the user's own code, reported in one line
    reason = ' '.join(str(error).split())
    raise types.UserError(f'config file {path}: {type(error).__name__}: {reason}') from error
  if not isinstance(experiment, config_lib.ExperimentConfig):
    raise types.UserError(
      f'config file {path}: experiment() returned '
      f'{type(experiment).__name__}, not an ExperimentConfig'
    )
  try:  # here already, because a value of another type would confuse the command line
    field_types.check(experiment)
  except types.UserError as error:
    raise types.UserError(f'config file {path}: {error}') from error
  return experiment
