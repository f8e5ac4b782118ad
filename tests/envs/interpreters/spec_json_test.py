"""Specifications survive a round trip through JSON."""

import collections
import json

from dm_env import specs as dm_specs
import numpy as np
import pytest
import tree

from seed_acme import types
from seed_acme.envs import choices
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
    choices.ChoicesArray([3, 4], np.int64, 'choices'),
    choices.ChoicesArray([[3], [3]], np.uint8),
    choices.ChoicesArray(5),
  ],
)
def test_an_array_comes_back(leaf):
  back = _round_trip(leaf).observation
  assert type(back) is type(leaf) and back == leaf and back.name == leaf.name
  assert back.dtype == leaf.dtype
  np.testing.assert_array_equal(choices.num_values(back), choices.num_values(leaf))
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


def test_choices_that_were_saved_as_mere_bounds_are_the_same_environment():
  sizes = np.array([3, 4])
  before = types.EnvironmentSpec(dm_specs.BoundedArray((2,), np.int64, 0, sizes - 1), _IMAGE)
  now = types.EnvironmentSpec(choices.ChoicesArray(sizes, np.int64), _IMAGE)
  other = types.EnvironmentSpec(choices.ChoicesArray(sizes + 1, np.int64), _IMAGE)
  before, now, other = map(spec_json.encode, (before, now, other))
  assert spec_json.difference(before, now) == spec_json.difference(now, before) == ''
  assert spec_json.difference(now, other).startswith('observation: int64[2] from 0 to ')


@pytest.mark.parametrize('num_values', [[0, 3], 'two', [[1, 2, 3]], [2**70, 1], None])
def test_choices_of_a_stranger_are_no_specification(num_values):
  leaf = spec_json.encode(types.EnvironmentSpec(choices.ChoicesArray([3, 4]), _IMAGE))
  leaf['observation']['array']['num_values'] = num_values
  with pytest.raises(ValueError, match='no specification'):
    spec_json.decode_untrusted(leaf)
