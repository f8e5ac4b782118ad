"""Loads experiments by name (a module of this folder) or by path: a user's Python file, or the
config.json of a run.
"""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import pkgutil
import sys
import types as python_types

from seed_acme import config as config_lib
from seed_acme import configs
from seed_acme import types
from seed_acme.checks import edited_modules
from seed_acme.checks import field_types
from seed_acme.checks import near_names
from seed_acme.envs import registry as environments
from seed_acme.storage import saved_config
from seed_acme.storage import trust


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
  edited_modules.forget_edited()
  before = sys.modules.get(path.stem)
  has_name = before is None or _is_of(before, path)
  try:
    with edited_modules.restoring(path.stem):
      experiment = _experiment(path, has_name)
      if before is not None and not has_name:
        _refuse_code_of(before, experiment, path)
      # Here already, because a value of another type would confuse the command line.
      field_types.check(experiment)
  except types.UserError as error:
    raise types.UserError(f'config file {path}: {error}') from error
  return experiment


def _experiment(path: pathlib.Path, has_name: bool) -> config_lib.ExperimentConfig:
  """Returns the experiment of a user's file. has_name: whether it may be the module of its name."""
  spec = importlib.util.spec_from_file_location(path.stem, path)
  assert spec is not None and spec.loader is not None
  loader = spec.loader

  def execute() -> python_types.ModuleType:
    module = importlib.util.module_from_spec(spec)
    if has_name:
      sys.modules[path.stem] = module  # dataclasses look there for their own module, and runs, too
    loader.exec_module(module)
    return module

  try:
    module = edited_modules.current(execute)
    if not hasattr(module, 'experiment'):
      raise types.UserError(
        'it has no function experiment(), which must return a seed_acme.config.ExperimentConfig'
      )
    with edited_modules.remembering():
      experiment = module.experiment()
  except types.UserError:
    raise
  except Exception as error:  # from the user's own code, reported in one line
    reason = ' '.join(str(error).split())
    raise types.UserError(f'{type(error).__name__}: {reason}') from error
  if not isinstance(experiment, config_lib.ExperimentConfig):
    raise types.UserError(
      f'experiment() returned {type(experiment).__name__}, not an ExperimentConfig'
    )
  return experiment


def _is_of(module: python_types.ModuleType, path: pathlib.Path) -> bool:
  file = getattr(module, '__file__', None)
  return file is not None and pathlib.Path(file).resolve() == path.resolve()


def _module(code: str) -> str:
  """Returns the module of what `trust.named_code` finds."""
  return environments.named_module(code) or code.partition(':')[0]


def _refuse_code_of(
  other: python_types.ModuleType, experiment: config_lib.ExperimentConfig, path: pathlib.Path
) -> None:
  """Raises `types.UserError` if the experiment names code of a module that is called like the file,
  which would be that of another module."""
  try:
    code = trust.named_code(saved_config.to_json(experiment))
  except types.UserError:  # about values that cannot be saved, which the types of fields explain
    return
  named = [found for _, found in code if _module(found) == path.stem]
  if named:
    raise types.UserError(
      f'{named[0]} would be looked for in another module {path.stem}, '
      f'{getattr(other, "__file__", None) or "of Python itself"}: rename one of the two'
    )
