"""`inspect` of a replay in two shards."""

import json
import re

import pytest
import reverb

from seed_acme import types
from seed_acme.files import local
from seed_acme.programs.tools.inspection import address as inspect_address
from tests.programs.tools.inspection import queues

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(name='shards')
def _shards():
  """Serves two queues of 4, one with 4 items and one with 1."""
  served = [queues.serve(queues.queue('unrolls')) for _ in range(2)]
  for one, number in zip(served, (4, 1)):
    queues.insert(one.address, 'unrolls', number)
  yield ','.join(one.address for one in served)
  for one in served:
    one.server.stop()


def test_they_are_shown_as_one_table_with_a_line_for_each(inspect, shards):
  text = inspect(server=shards)
  assert text.splitlines()[0].startswith(shards.replace(',', ', ') + ' at ')
  assert 'unrolls: 5 of 8 items (62%)' in text
  assert re.search(r'limiter +queue: .* while 4 wait, .*; so each shard', text)
  assert re.search(r'blocked +shard 0: inserts blocked; in the last', text)
  assert re.search(r'inserts +5 so far, 0/s\n', text)
  assert re.search(
    r'shard 0 +4 of 4 items \(100%\); inserts: the next one blocks; samples: 4', text
  )
  assert re.search(r'shard 1 +1 of 4 items \(25%\); inserts: 3 more until inserts block', text)
  assert not re.search('^ *age ', text, re.MULTILINE)


def test_each_shard_tells_its_own_place_between_the_limits(inspect):
  def table():
    limiter = reverb.rate_limiters.SampleToInsertRatio(2.0, 1, 100.0)
    return reverb.Table(
      'unrolls', queues.UNIFORM(), queues.FIFO(), 8, limiter, signature=queues.SIGNATURE
    )

  served = [queues.serve(table()) for _ in range(2)]
  for one, number in zip(served, (4, 1)):
    queues.insert(one.address, 'unrolls', number)
  text = inspect(server=','.join(one.address for one in served))
  assert re.search(r'limiter +ratio: .* x inserts - samples is held from .*; so each shard', text)
  assert re.search(r'shard 0 .*; the difference is 8\n', text)
  assert re.search(r'shard 1 .*; the difference is 2\n', text)
  for one in served:
    one.server.stop()


def test_json_has_a_record_of_each(inspect, shards):
  table = json.loads(inspect(server=shards, json=True))['tables']['unrolls']
  assert (table['size'], table['capacity'], table['blocked']) == (5, 8, None)
  assert [shard['size'] for shard in table['shards']] == [4, 1]
  assert [shard['blocked'] for shard in table['shards']] == ['inserts', 'neither']
  assert table['inserts_until_block'] is None
  assert [shard['inserts_until_block'] for shard in table['shards']] == [0, 3]
  assert 'inserts_per_s' not in table['shards'][0]


def test_items_of_both_are_drawn(inspect, shards):
  record = json.loads(inspect(server=shards, table='unrolls', sample=2, consume=True, json=True))
  assert len(record['items']) == 2
  assert [queues.counts(address, 'unrolls')[0] for address in shards.split(',')] == [3, 0]


def test_a_run_names_one_server_or_several(run_folder):
  local.write_json(run_folder.addresses, {'replay': ['localhost:7', 'localhost:8']})
  assert inspect_address.of_run(str(run_folder.path)) == ('localhost:7', 'localhost:8')


@pytest.mark.parametrize('server', ['localhost:7,', 'localhost:7,localhost:7', 'a:1,b'])
def test_wrong_lists_are_refused(server):
  with pytest.raises(types.UserError, match='name each shard once|is no HOST:PORT'):
    inspect_address.find(server, '')
