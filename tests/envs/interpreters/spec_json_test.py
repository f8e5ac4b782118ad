"""Specifications come back as they were."""

import collections
import json

from dm_env import specs as dm_specs
import numpy as np
import pytest
import tree

from seed_acme import types
from seed_acme.envs.interpreters import spec_json

_Pair = collections.namedtuple('_Pair', 'left right')
_IMAGE = dm_specs.BoundedArray((8, 6, 3), np.uint8, 0, 255, 'image')


def _round_trip(observation, action=_IMAGE, frames_per_step=1):
  spec = types.EnvironmentSpec(observation, action, frames_per_step)
  return spec_json.decode(json.loads(json.dumps(spec_json.encode(spec))))


@pytest.mark.parametrize(
  'leaf',
  [
    dm_specs.Array((3,), np.float32, 'plain'),
    dm_specs.Array((), np.bool_),
    dm_specs.DiscreteArray(7, np.int32, 'choice'),
    _IMAGE,
    dm_specs.BoundedArray((2,), np.float32, [-np.inf, 0.1], [np.inf, 0.2]),
    dm_specs.BoundedArray((2, 2), np.float64, [[0, 1], [2, 3]], 1e30),
    dm_specs.BoundedArray((3,), np.int64, [0, 0, 0], [1, 2, 2**62]),
  ],
)
def test_an_array_comes_back(leaf):
  back = _round_trip(leaf).observation
  assert type(back) is type(leaf) and back == leaf and back.name == leaf.name
  assert back.dtype == leaf.dtype
  if isinstance(leaf, dm_specs.BoundedArray):
    np.testing.assert_array_equal(back.minimum, leaf.minimum)
    assert back.minimum.shape == leaf.minimum.shape and back.maximum.shape == leaf.maximum.shape


@pytest.mark.parametrize(
  'nest',
  [
    {'b': _IMAGE, 'a': (_IMAGE, [_IMAGE])},
    (_IMAGE,),
    [_IMAGE, {'x': _IMAGE}],
    _Pair(_IMAGE, {'deep': _Pair(_IMAGE, _IMAGE)}),
    (),
  ],
)
def test_a_nest_has_the_same_paths(nest):
  back = _round_trip(nest, frames_per_step=4)
  paths = [path for path, _ in tree.flatten_with_path(nest)]
  assert [path for path, _ in tree.flatten_with_path(back.observation)] == paths
  assert back.frames_per_step == 4


def test_equal_named_tuples_have_one_type():
  first, second = (_round_trip(_Pair(_IMAGE, _IMAGE)).observation for _ in range(2))
  assert type(first) is type(second)
  assert first._fields == ('left', 'right')


def test_bounds_of_a_screen_take_no_room():
  ones = np.ones((84, 84, 4), np.uint8)
  spec = dm_specs.BoundedArray((84, 84, 4), np.uint8, 0 * ones, 255 * ones)
  text = json.dumps(spec_json.encode(types.EnvironmentSpec(spec, spec)))
  assert len(text) < 1000
