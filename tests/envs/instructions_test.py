"""Words as ids: the same in every process, padded, cut."""

import numpy as np

from seed_acme.envs import instructions


def test_ids_are_fixed_numbers():
  """A hash that differs between processes would make actors and learner disagree."""
  np.testing.assert_array_equal(
    instructions.encode('Get the red hat', 6), [161, 79, 456, 538, 0, 0]
  )


def test_case_and_spaces_do_not_matter_and_order_does():
  encode = instructions.encode
  np.testing.assert_array_equal(encode(' Red\n hat ', 4), encode('red hat', 4))
  assert (encode('red hat', 4) != encode('hat red', 4)).any()


def test_nothing_is_all_padding_and_what_is_too_long_is_cut():
  np.testing.assert_array_equal(instructions.encode('', 3), [0, 0, 0])
  np.testing.assert_array_equal(
    instructions.encode('a b c d', 3), instructions.encode('a b c d', 4)[:3]
  )


def test_what_is_encoded_is_within_the_specification():
  spec = instructions.spec(5)
  assert (spec.shape, spec.dtype) == ((5,), np.int32)
  for number in range(3000):
    encoded = instructions.encode(f'word{number}', 5)
    spec.validate(encoded)
    assert 1 <= encoded[0] <= instructions.NUM_BUCKETS
