"""The account of unrolls, against a real server: it reports lost unrolls, not those in flight."""

import functools
import types as python_types

import pytest
import reverb

from seed_acme.replay import account as account_lib
from seed_acme.replay import dataset as dataset_lib
from seed_acme.replay import table_counts
from seed_acme.replay import tables
from seed_acme.replay import writer as writer_lib

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(name='clock')
def _clock(monkeypatch):
  clock = python_types.SimpleNamespace(now=100.0)
  monkeypatch.setattr(
    account_lib, 'time', python_types.SimpleNamespace(monotonic=lambda: clock.now)
  )
  return clock


def test_what_others_insert_is_counted_and_named_now_and_then():
  told = []
  dropped = account_lib.Dropped('localhost:8000', told.append)
  for i in range(250):
    dropped(f'ticket {i} is strange')
  assert dropped.number == 250
  assert [text.partition(' in the table')[0] for text in told] == ['1', '10', '100']
  assert 'localhost:8000 was no item' in told[0] and 'ticket 0 is strange' in told[0]
  assert 'were no item' in told[2] and 'ticket 99 is strange' in told[2]


def test_unrolls_that_went_elsewhere_are_named_and_those_under_way_are_not(
  serve, coded_unrolls, clock
):
  server = serve(queue_size=64, unrolls_per_item=2)
  writer = writer_lib.ReplayWriter(server.address, unrolls_per_item=2, backlog=1000)
  prefetcher = dataset_lib.Prefetcher(
    dataset_lib.make_samples(server.address, 4, 2, 1), print, num_ahead=1
  )
  dropped = account_lib.Dropped(server.address, print)
  account = account_lib.Account(
    functools.partial(table_counts.read, reverb.Client(server.address)),
    writer,
    prefetcher,
    batch_size=4,
    unrolls_per_item=2,
    num_items_under_way=1,
    dropped=dropped,
  )
  prefetcher.start()

  def write(number):
    writer.put(coded_unrolls(0, number))
    while writer.has_item():
      writer.write_item()

  write(40)
  for _ in range(5):
    assert prefetcher.next(timeout_s=30) is not None
  clock.now += 11
  assert account.missing() == ''  # although 4 + 2 unrolls have been prefetched from the table
  assert (account.confirmed(), account.received()) == (40, 20)
  assert '40 were confirmed by replay, 20 received' in account.waiting_for()

  list(reverb.Client(server.address).sample(tables.UNROLLS, 7, emit_timesteps=False))
  assert account.missing() == ''  # it has just checked
  clock.now += 11
  assert prefetcher.next(timeout_s=0.5) is not None
  clock.now += 11
  text = account.missing()
  assert '40 were confirmed' in text and '24' in text
  for _ in range(7):  # items of other processes would not count as lost
    dropped('another shape')
  clock.now += 11
  assert account.missing() == ''
  writer.stop()
  prefetcher.stop()
