"""UnrollQuota: which environments have contributed to the current update."""

import numpy as np
import pytest

from seed_acme.inference import unroll_quota


def _ids(*env_ids):
  return np.array(env_ids, np.int32)


def test_one_unroll_each():
  quota = unroll_quota.UnrollQuota(4, unrolls_per_update=1)
  quota.renew(0)
  assert quota.is_last(_ids(0, 1)) and not quota.is_used_up(_ids(0, 1, 2, 3))
  quota.add(_ids(0, 1))
  assert quota.is_used_up(_ids(0, 1)) and not quota.is_last(_ids(0, 1))
  assert quota.is_last(_ids(2, 3)) and not quota.is_used_up(_ids(2, 3))


def test_three_unrolls_each():
  quota = unroll_quota.UnrollQuota(2, unrolls_per_update=3)
  quota.renew(5)
  found = []
  for _ in range(4):
    found.append((quota.is_last(_ids(0, 1)), quota.is_used_up(_ids(0, 1))))
    quota.add(_ids(0, 1))
  assert found == [(False, False), (False, False), (True, False), (False, True)]


def test_new_weights_begin_a_new_quota_and_the_same_ones_do_not():
  quota = unroll_quota.UnrollQuota(2, unrolls_per_update=1)
  quota.renew(7)
  quota.add(_ids(0))
  quota.renew(7)
  assert quota.is_used_up(_ids(0)) and not quota.is_used_up(_ids(1))
  quota.renew(8)
  assert not quota.is_used_up(_ids(0, 1)) and quota.is_last(_ids(0, 1))


def test_before_the_first_publication_there_is_a_quota_too():
  """With version -1, a run acts with its initial weights."""
  quota = unroll_quota.UnrollQuota(1, unrolls_per_update=1)
  quota.renew(-1)
  quota.add(_ids(0))
  assert quota.is_used_up(_ids(0))
  quota.renew(0)
  assert not quota.is_used_up(_ids(0))


@pytest.mark.parametrize(
  'given, is_last, is_used_up',
  [((0, 0), False, False), ((0, 1), False, False), ((1, 1), True, False), ((1, 2), False, True)],
)
def test_a_group_waits_as_soon_as_one_of_it_has_given_all_and_ends_when_all_are_at_their_last(
  given, is_last, is_used_up
):
  quota = unroll_quota.UnrollQuota(2, unrolls_per_update=2)
  quota.renew(0)
  for env_id, number in enumerate(given):
    for _ in range(number):
      quota.add(_ids(env_id))
  assert quota.is_last(_ids(0, 1)) == is_last
  assert quota.is_used_up(_ids(0, 1)) == is_used_up
