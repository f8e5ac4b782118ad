"""The quick map gives the same results as `tree`, and refuses nests that differ."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import tree

from seed_acme.tensors import nests


class _Pair(NamedTuple):
  first: Any
  second: Any


_NESTS = [
  np.arange(3),
  (),
  (np.arange(3), np.ones(2)),
  _Pair(np.arange(3), (np.ones(2), ())),
  {'a': np.arange(3), 'b': _Pair(np.ones(1), np.zeros(1))},
  [np.arange(2), np.arange(3)],
]


@pytest.mark.parametrize('nest', _NESTS)
def test_map_and_unflatten_agree_with_tree(nest):
  expected = tree.map_structure(lambda x: x * 2, nest)
  got = nests.map_arrays(lambda x, y: x + y, nest, nest)
  tree.assert_same_structure(got, expected)
  assert all(map(np.array_equal, tree.flatten(got), tree.flatten(expected)))
  again = nests.unflattener(nest)(iter(tree.flatten(nest)))
  tree.assert_same_structure(again, nest)
  assert all(map(np.array_equal, tree.flatten(again), tree.flatten(nest)))


def test_nests_of_different_length_are_refused():
  one = np.ones(1)
  with pytest.raises(ValueError):
    nests.map_arrays(lambda x, y: x, (one, one), (one,))
