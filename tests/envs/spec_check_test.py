"""Specifications that no run can work with are refused, by field."""

from dm_env import specs
import numpy as np
import pytest

from seed_acme import types
from seed_acme.envs import choices
from seed_acme.envs import spec_check

_SEEN = specs.Array((2,), np.float32)
_CHOICE = specs.DiscreteArray(2)


@pytest.mark.parametrize(
  'observation, action, words',
  [
    (specs.Array((0,), np.float32), _CHOICE, 'observation: expected one number at least, got Arr'),
    ({}, _CHOICE, 'observation: expected one number at least, got {}'),
    ((), _CHOICE, 'observation: expected one number at least, got ()'),
    (
      {'a': specs.Array((0, 3), np.float32), 'b': specs.BoundedArray((0,), np.uint8, 0, 1)},
      _CHOICE,
      'observation: expected one number at least',
    ),
    (
      {'said': specs.StringArray(()), 'seen': _SEEN},
      _CHOICE,
      'observation/said: expected a dm_env.specs.Array of numbers, got StringArray(',
    ),
    ({'at': specs.Array((), 'M8[s]')}, _CHOICE, 'observation/at: expected a dm_env.specs.Array of'),
    ({'z': specs.Array((), np.complex64)}, _CHOICE, 'observation/z: expected a dm_env.specs.Array'),
    ('Box', _CHOICE, 'observation: expected a dm_env.specs.Array of numbers, got Box'),
    (
      specs.DiscreteArray(2**40, np.int32),
      _CHOICE,
      'observation: expected choices that int32 holds, got 1099511627776 values',
    ),
    (_SEEN, {}, 'action: expected one at least, got {}'),
    (
      _SEEN,
      {'push': specs.BoundedArray((0,), np.float32, -2, 5)},
      'action/push: expected one number at least, got shape (0,): leave it out',
    ),
    (
      _SEEN,
      specs.DiscreteArray(2**40, np.int64),
      'action: expected 16777216 choices at most, got 1099511627776',
    ),
    (_SEEN, specs.DiscreteArray(2**40), 'action: expected choices that int32 holds'),
    (
      _SEEN,
      {'move': choices.ChoicesArray([2, 2**25])},
      'action/move: expected 16777216 choices at most, got 33554432',
    ),
    (
      _SEEN,
      specs.BoundedArray((1,), np.int32, 0, 2**27),
      'action: expected 16777216 choices at most, got 134217729',
    ),
    (
      _SEEN,
      specs.BoundedArray((2,), np.uint64, 0, [3, 2**64 - 1]),
      'action: expected 16777216 choices at most, got 18446744073709551616',
    ),
    (_SEEN, specs.StringArray(()), 'action: expected a dm_env.specs.Array of numbers, got String'),
  ],
)
def test_each_is_named(observation, action, words):
  with pytest.raises(types.UserError) as error:
    spec_check.check(types.EnvironmentSpec(observation, action), 'maze')
  assert str(error.value).startswith(f'environment maze: {words}')


@pytest.mark.parametrize(
  'observation, action',
  [
    (_SEEN, _CHOICE),
    ({'none': specs.Array((0,), np.float32), 'seen': _SEEN}, {'a': _CHOICE, 'b': _CHOICE}),
    (specs.Array((), np.bool_), specs.DiscreteArray(2**24)),
    (_SEEN, specs.BoundedArray((2,), np.int64, 0, 2**24 - 1)),
    (specs.DiscreteArray(2**40, np.int64), specs.BoundedArray((2,), np.float64, -1, 1)),
    (specs.DiscreteArray(256, np.uint8), _CHOICE),
  ],
)
def test_others_pass(observation, action):
  spec_check.check(types.EnvironmentSpec(observation, action), 'maze')


@pytest.mark.parametrize(
  'frames, words', [(0, '0 (int)'), (4.0, '4.0 (float)'), (np.int64(4), '(int64)'), (True, 'True')]
)
def test_frames_per_step_that_cannot_be_counted_are_refused(frames, words):
  with pytest.raises(types.UserError) as error:
    spec_check.check(types.EnvironmentSpec(_SEEN, _CHOICE, frames), 'maze')
  start = 'environment maze: frames_per_step: expected an int of 1 or more, got '
  assert str(error.value).startswith(start) and words in str(error.value)
