"""`seed-acme inspect`: tables, their limits, and wrong arguments."""

import re
import signal
import sys

import pytest

from seed_acme import types
from seed_acme.programs import cli
from seed_acme.programs.command_line import parsing
from seed_acme.programs.tools.inspection import command as inspect_command
from seed_acme.programs.tools.inspection import distribution
from seed_acme.programs.tools.inspection import output as inspect_output
from seed_acme.replay import rate_limit
from seed_acme.replay import tables as tables_lib
from tests.programs.tools.inspection import queues

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_all_tables_as_text(inspect, ours):
  text = inspect(server=ours.address)
  first, rest = text.split('\n\n')[:2]
  assert ours.address in first and rest.startswith('mirror: 3 of 16 items (19%)')
  for words in (
    'unrolls: 4 of 4 items (100%)',
    'queue: each item is handed out once',
    'inserts blocked',
    'the next one blocks',
    '4 more until samples block',
    'sampler fifo, remover fifo; an item leaves after 1 sample',
    'minimum size',
    'inserted 0 to 3 items ago',
    'never blocks',
    '--sample=N',
  ):
    assert words in text, text
  assert re.search(r'observation/image +uint8 +\[5, 20, 20, 4\]', text)


def test_one_table_as_json(inspect, ours, one_json):
  record = one_json(inspect(server=ours.address, table='unrolls', json=True))
  assert record['server'] == ours.address
  (table,) = record['tables'].values()
  wanted = {
    'size': 4,
    'capacity': 4,
    'sampler': 'fifo',
    'remover': 'fifo',
    'inserts': 4,
    'max_times_sampled': 1,
    'blocked': 'inserts',
    'inserts_until_block': 0,
    'samples': 0,
    'samples_until_block': 4,
    'samples_until_block_at_most': 4,
    'inserts_per_s': 0,
    'samples_per_s': 0,
    'inserts_waiting': 0,
    'samples_waiting': 0,
    'unique_samples': 0,
    'oldest_item_inserts_ago': 3,
    'episodes': 1,
    'deleted_episodes': 0,
  }
  assert {name: table[name] for name in wanted} == wanted
  assert table['interval_s'] >= 0.1
  assert table['rate_limiter']['max_diff'] == 4
  assert table['signature'][1] == {'name': 'reward', 'shape': [queues.STEPS], 'dtype': 'float32'}


def test_bounds_without_end_are_null_in_json(inspect, ours, one_json):
  record = one_json(inspect(server=ours.address, table=tables_lib.MIRROR, json=True))
  table = record['tables'][tables_lib.MIRROR]
  assert table['blocked'] == 'neither'
  assert table['rate_limiter']['max_diff'] is table['rate_limiter']['min_diff'] is None
  assert table['inserts_until_block'] is table['samples_until_block'] is None


@pytest.mark.parametrize(
  'inserts, samples, size, wanted',
  [
    (0, 0, 0, 'samples'),
    (3, 0, 3, 'inserts'),
    (5, 3, 5, 'neither'),
    (1, 0, 1, 'neither'),
    (1, 2, 1, 'samples'),
  ],
)
def test_which_side_is_blocked(inserts, samples, size, wanted):
  limiter = rate_limit.Limiter(
    samples_per_insert=1.0,
    min_size_to_sample=1,
    min_diff=-1.0,
    max_diff=3.0,
    inserts=inserts,
    samples=samples,
    size=size,
    max_size=9,
    max_times_sampled=0,
  )
  assert inspect_output.blocked(limiter) == wanted


def test_a_deadlock_is_called_one():
  limiter = rate_limit.Limiter(
    samples_per_insert=1.0,
    min_size_to_sample=1,
    min_diff=5.0,
    max_diff=2.0,
    inserts=2,
    samples=0,
    size=2,
    max_size=9,
    max_times_sampled=0,
  )
  assert inspect_output.blocked(limiter) == 'both'


def test_an_unknown_table(inspect, ours):
  with pytest.raises(types.UserError, match=r"no table 'x'; the server has: mirror, unrolls"):
    inspect(server=ours.address, table='x')


def test_a_folder_that_cannot_be_written(inspect, ours, tmp_path):
  (tmp_path / 'file').write_text('')
  with pytest.raises(types.UserError, match='cannot write .*file.*--save'):
    inspect(server=ours.address, sample=1, save='file')


def test_a_folder_with_items_of_an_earlier_draw_is_refused_before_another(inspect, tmp_path):
  (tmp_path / 'used').mkdir()
  (tmp_path / 'used' / 'item_000_17.npz').write_bytes(b'')
  # No server is there, so this is said before anybody is asked for an item.
  with pytest.raises(types.UserError, match='--save=used holds .*item_000_17.*another folder'):
    inspect(server='localhost:1', sample=1, consume=True, save='used')
  (tmp_path / 'used' / 'item_000_17.npz').rename(tmp_path / 'used' / 'mine.npz')
  with pytest.raises(types.UserError, match='refused'):
    inspect(server='localhost:1', sample=1, consume=True, save='used')


@pytest.mark.parametrize(
  'arguments, words',
  [
    ([], ['--server', '--run_dir']),
    (['--server=localhost:1', '--run_dir=x'], ['--server', '--run_dir']),
    (['--server=localhost'], ['localhost', 'HOST:PORT']),
    (['--server=localhost:0'], ['localhost:0', '65535']),
    (['--server=localhost:65536'], ['65536']),
    (['--server=a b:80'], ['a b:80']),
    (['--server=http://a:80'], ['http://a:80']),
    (['--server=::1:80'], ['::1:80', '[::1]']),
    (['--server=[localhost]:80'], ['localhost', 'IPv6']),
    (['--run_dir=nothing'], ['nothing', 'runs/latest']),
    (['--server=localhost:1', '--interval=0'], ['--interval (0.0)', '> 0']),
    (['--server=localhost:1', '--watch=-1'], ['--watch (-1.0)', '>= 0']),
    (['--server=localhost:1', '--watch=inf'], ['--watch (inf)', 'finite']),
    (['--server=localhost:1', '--sample=-1'], ['--sample (-1)', '>= 0']),
    (['--server=localhost:1', '--sample=1', '--watch'], ['--sample', '--watch']),
    (['--server=localhost:1', '--save=x'], ['--save', '--sample=N']),
    (['--server=localhost:1', '--consume'], ['--consume', '--sample=N']),
    (['--server=localhost:1'], ['localhost:1', 'refused']),
    (['--server=[::1]:1'], ['[::1]:1']),
  ],
)
def test_wrong_arguments_before_anything_heavy_is_loaded(
  capsys, monkeypatch, tmp_path, arguments, words
):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setitem(sys.modules, 'seed_acme.replay.inspection', None)  # makes its import fail
  previous = signal.getsignal(signal.SIGTERM)
  monkeypatch.setattr(sys, 'path', list(sys.path))
  code = cli.main(['inspect', *arguments])
  signal.signal(signal.SIGTERM, previous)
  assert code == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith('error: ')
  for word in words:
    assert word in line


@pytest.mark.parametrize(
  'arguments, wanted',
  [
    ([], 0.0),
    (['--watch'], 2.0),
    (['--watch', '--json'], 2.0),
    (['--watch', '5'], 5.0),
    (['--watch=5'], 5.0),
  ],
)
def test_a_bare_watch_has_a_period(arguments, wanted):
  parsed = parsing.parse(inspect_command.InspectArguments, arguments, 'inspect')
  assert parsed.watch == wanted


def test_one_histogram_line_for_equal_values():
  assert distribution.lines('p', [2.0, 2.0]) == ['  p: all 2']
  assert len(distribution.lines('p', [1.0, 2.0])) == 9
  assert distribution.lines('p', [1.0, float('inf')]) == ['  p: from 1 to inf']


def test_a_histogram_as_json():
  record = distribution.record([1.0, 1.0, 5.0, 9.0])
  assert (record['min'], record['median'], record['mean'], record['max']) == (1, 3, 4, 9)
  assert record['counts'] == [2, 0, 0, 0, 1, 0, 0, 1]
  assert record['edges'] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
  assert distribution.record([]) is distribution.record([1.0, float('nan')]) is None
