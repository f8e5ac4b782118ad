"""Makes the logger that `learner.logger` names, ours or the user's own. Imports no TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
import importlib.util

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.checks import dotted_path
from seed_acme.checks import extras
from seed_acme.checks import near_names
from seed_acme.checks import signatures
from seed_acme.storage import run_directory

_FIELD = 'learner.logger'
_METHODS = ('write', 'close')
# Our loggers. Each has the name of the package that it needs, and of the extra that installs it.
NAMED = {
  'wandb': 'seed_acme.loggers.wandb_logger:WandbLogger',
  'mlflow': 'seed_acme.loggers.mlflow_logger:MlflowLogger',
}


def check(config: config_lib.ExperimentConfig) -> None:
  """Raises `types.UserError` if the factory cannot be imported or called; does not call it."""
  path = config.learner.logger
  if path in NAMED and importlib.util.find_spec(path) is None:  # importing it takes seconds
    raise types.UserError(
      f'{_FIELD}={path} needs the package {path}: {extras.install_command(path)}'
    )
  if path:
    _factory(path)


def make(config: config_lib.ExperimentConfig, run: run_directory.RunDirectory) -> list[core.Logger]:
  """Makes the logger, in the learner's process; [] if none is configured."""
  path = config.learner.logger
  if not path:
    return []
  logger = _factory(path)(config, run.path)
  missing = [name for name in _METHODS if not callable(getattr(logger, name, None))]
  if missing:
    raise types.UserError(
      f"{_FIELD} ('{path}') returned {type(logger).__name__}, which has no {missing[0]}(): "
      'return a seed_acme.core.Logger, with write(agent_steps, metrics) and close()'
    )
  return [logger]


def _factory(path: str) -> Callable[..., core.Logger]:
  if ':' not in path and path not in NAMED:
    raise types.UserError(
      f"{_FIELD} ('{path}') must be written package.module:Name, or be one of "
      f'{", ".join(NAMED)}{near_names.hint(path, list(NAMED))}'
    )
  factory = dotted_path.load_object(NAMED.get(path, path), _FIELD)
  try:
    signatures.of(factory).bind('config', 'run_dir')
  except TypeError as error:
    raise types.UserError(
      f"{_FIELD} ('{path}') cannot be called as factory(config, run_dir): {error}"
    ) from None
  except ValueError:  # a compiled function without a signature
    pass
  return factory
