"""ChoicesArray: the description of its elements, also in copies."""

import pickle

from dm_env import specs
import numpy as np
import pytest

from seed_acme.envs import choices


def test_it_is_a_bounded_array_that_knows_its_numbers_of_values():
  spec = choices.ChoicesArray([[2, 5]], np.int8, 'board')
  assert (spec.shape, spec.dtype, spec.name) == ((1, 2), np.int8, 'board')
  assert spec == specs.BoundedArray((1, 2), np.int8, 0, [[1, 4]])
  spec.validate(np.array([[1, 4]], np.int8))
  with pytest.raises(ValueError):
    spec.validate(np.array([[2, 4]], np.int8))
  for same in (spec, pickle.loads(pickle.dumps(spec)), spec.replace(name='other')):
    np.testing.assert_array_equal(choices.num_values(same), [2, 5])


@pytest.mark.parametrize(
  'dtype, highest', [(np.uint8, 255), (np.int8, 127), (np.int16, 32767), (np.uint8, [1, 255])]
)
def test_an_integer_action_may_reach_the_end_of_its_dtype(dtype, highest):
  spec = choices.as_choices(specs.BoundedArray((2,), dtype, 0, highest))
  np.testing.assert_array_equal(choices.num_values(spec), np.ones(2, np.int64) + highest)
  assert spec == specs.BoundedArray((2,), dtype, 0, highest)


def test_only_choices_have_numbers_of_values():
  assert choices.num_values(specs.DiscreteArray(3)).tolist() == [3]
  for spec in (specs.BoundedArray((2,), np.uint8, 0, 255), specs.Array((), np.int32)):
    assert choices.num_values(spec) is None
  with pytest.raises(ValueError, match=r'num_values \(\[2, 0\]\) must be >= 1'):
    choices.ChoicesArray([2, 0])
