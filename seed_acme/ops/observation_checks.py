"""Checks what normalisation applies to, before a run starts. Imports no TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import tree

from seed_acme import types


def notices(field: str, value: Any, off: Any, spec: types.EnvironmentSpec) -> tuple[str, ...]:
  """Returns a notice if a field that normalises observations has no effect, as none is a float.

  off: the field's value that turns normalisation off.
  """
  leaves = tree.flatten(spec.observation)
  if value == off or any(np.issubdtype(leaf.dtype, np.floating) for leaf in leaves):
    return ()
  found = ', '.join(sorted({np.dtype(leaf.dtype).name for leaf in leaves}))
  text = (
    f'{field} ({value}) does nothing: it normalises float observations, and there are none '
    f'({found}); set it to {off}, or give floats'
  )
  return (text,)
