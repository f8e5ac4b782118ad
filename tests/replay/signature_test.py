"""Signatures of Reverb items."""

import numpy as np
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.replay import signature


def _example(state=()):
  rows = lambda dtype, *shape: np.zeros((5, *shape), dtype)
  return types.Unroll(
    state,
    types.AgentInput(
      rows(np.uint8),
      rows(np.float32),
      rows(np.float32),
      rows(np.int32),
      {'image': rows(np.uint8, 8, 8), 'speed': rows(np.float32)},
    ),
    types.AgentOutput(
      rows(np.int32), types.ActorCriticOutput(rows(np.float32, 3), rows(np.float32))
    ),
    rows(np.int64),
  )


def test_shapes_and_dtypes_are_the_examples_with_an_axis_of_unrolls():
  example = _example(state=(np.zeros(7, np.float32), np.zeros(7, np.float32)))
  specs = signature.item_signature(example, 4)
  tree.assert_same_structure(example, specs)
  for array, spec in zip(tree.flatten(example), tree.flatten(specs)):
    assert spec.shape == (4, *array.shape)
    assert spec.dtype == tf.as_dtype(array.dtype)


def test_a_network_without_memory_has_no_state_in_the_signature():
  assert signature.item_signature(_example(), 1).initial_state == ()


def test_names_say_where_a_leaf_stands_and_differ():
  specs = signature.item_signature(_example(state=(np.zeros(7), np.zeros(7))), 1)
  names = [spec.name for spec in tree.flatten(specs)]
  assert len(set(names)) == len(names)
  assert specs.inputs.observation['image'].name == 'inputs/observation/image'
