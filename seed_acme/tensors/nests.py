"""Fast maps over small nests of arrays.

`tree.map_structure` has an overhead of tens of microseconds per call, more than the work on a
small batch. Inference uses nests of a few named tuples: these are handled directly, and all other
nests by `tree`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tree

from seed_acme import types


def map_arrays(function: Callable[..., Any], nest: types.Nest, *others: types.Nest) -> types.Nest:
  """Applies `function` to corresponding arrays of nests with the same structure."""
  if isinstance(nest, np.ndarray):
    return function(nest, *others)
  if isinstance(nest, tuple):
    parts = [map_arrays(function, *part) for part in zip(nest, *others, strict=True)]
    return type(nest)(*parts) if hasattr(nest, '_fields') else tuple(parts)
  return tree.map_structure(function, nest, *others)


def unflattener(structure: types.Nest) -> Callable[[Iterator[Any]], types.Nest]:
  """Returns a function that builds a nest of this structure from an iterator over its leaves."""
  if isinstance(structure, tuple):
    parts = [unflattener(part) for part in structure]
    if hasattr(structure, '_fields'):
      kind: Any = type(structure)
      return lambda leaves: kind(*[part(leaves) for part in parts])
    return lambda leaves: tuple([part(leaves) for part in parts])
  if tree.is_nested(structure):
    num_leaves = len(tree.flatten(structure))
    return lambda leaves: tree.unflatten_as(structure, [next(leaves) for _ in range(num_leaves)])
  return next
