"""Names of variables in a checkpoint, and restoring variables from one."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from seed_acme import core
from seed_acme import types

ACTING, LEARNING, OPTIMIZER = 'acting', 'learning', 'optimizer'  # parts of a checkpoint
# Statistics that a network keeps for the value loss alone (`running_statistics.ValueNormalizer`).
_FOR_VALUE_CLIPPING = ('/values/previous_mean:0', '/values/previous_std:0')


def acting(network: core.RecurrentNetwork) -> dict[str, tf.Variable]:
  """Returns the variables of a network that acts, by their names in a checkpoint."""
  return {f'{ACTING}/{variable.name}': variable for variable in network.variables}


def is_for_learning(name: str) -> bool:
  """Whether only learning reads a variable, by its name in a checkpoint; an optimiser's are not
  counted."""
  return name.startswith(f'{LEARNING}/') or name.endswith(_FOR_VALUE_CLIPPING)


def assign(variables: dict[str, tf.Variable], arrays: dict[str, np.ndarray]) -> None:
  """Sets every variable from the array of its name; sets all of them or none.

  Raises `types.UserError` naming the first that is missing or has another shape, or the first
  array that another network acted with and none of these variables takes.
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
  for name in arrays:
    is_acting = name.startswith(f'{ACTING}/') and not is_for_learning(name)
    if is_acting and name not in variables:
      raise types.UserError(
        f'the checkpoint has {name}, which the network here lacks: it was made by another network; '
        'use the configuration it was made with'
      )
  for name, variable in variables.items():
    variable.assign(arrays[name])
