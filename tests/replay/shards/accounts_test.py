import pytest

from seed_acme.replay.shards import accounts as accounts_lib


class _Account:
  def __init__(self, confirmed, received, missing=''):
    self._counts = confirmed, received
    self._missing = missing

  def confirmed(self):
    return self._counts[0]

  def received(self):
    return self._counts[1]

  def missing(self):
    return self._missing

  def waiting_for(self):
    return f'a sample after {self._counts[1]}'


def test_counts_are_those_of_all_shards():
  accounts = accounts_lib.Accounts([_Account(7, 4), _Account(5, 2)])
  assert (accounts.confirmed(), accounts.received(), accounts.missing()) == (12, 6, '')


def test_what_is_lost_is_named_with_its_shard():
  accounts = accounts_lib.Accounts([_Account(7, 4), _Account(5, 2, '3 are lost')])
  assert accounts.missing() == 'replay shard 1: 3 are lost'
  assert accounts_lib.Accounts([_Account(5, 2, '3 are lost')]).missing() == '3 are lost'


@pytest.mark.parametrize(
  ('received', 'expected'),
  [
    ((4, 2), 'replay shard 1: a sample after 2'),
    ((4, 4), 'replay shard 0: a sample after 4; replay shard 1: a sample after 4'),
    ((4,), 'a sample after 4'),
  ],
)
def test_the_learner_waits_for_the_shards_that_are_behind(received, expected):
  accounts = accounts_lib.Accounts([_Account(9, number) for number in received])
  assert accounts.waiting_for() == expected
