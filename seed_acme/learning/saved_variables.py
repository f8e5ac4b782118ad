"""Names of variables in a checkpoint, and restoring variables from one."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from seed_acme import core
from seed_acme import types

ACTING, LEARNING, OPTIMIZER = 'acting', 'learning', 'optimizer'  # parts of a checkpoint


def acting(network: core.RecurrentNetwork) -> dict[str, tf.Variable]:
  """Returns the variables of a network that acts, by their names in a checkpoint."""
  return {f'{ACTING}/{variable.name}': variable for variable in network.variables}


def is_learning(name: str) -> bool:
  """Whether a variable, by its name in a checkpoint, is neither of the acting network nor of an
  optimiser."""
  return name.startswith(f'{LEARNING}/')


def assign(variables: dict[str, tf.Variable], arrays: dict[str, np.ndarray]) -> None:
  """Sets every variable from the array of its name; sets all of them or none.

  Raises `types.UserError` naming the first that is missing or has another shape.
  """
  for name, variable in variables.items():
    if name not in arrays:
      raise types.UserError(
        f'the checkpoint has no {name}: it was made by another network; '
        'use the configuration it was made with'
      )
    if arrays[name].shape != tuple(variable.shape):
      raise types.UserError(
        f'{name} has shape {list(arrays[name].shape)} in the checkpoint and '
        f'{variable.shape.as_list()} here: use the network it was made with'
      )
  for name, variable in variables.items():
    variable.assign(arrays[name])
