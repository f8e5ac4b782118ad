"""`seed-acme inspect`: of any server, of a run, and every way in which it cannot be done."""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import types as python_types

import numpy as np
import pytest
import reverb
from reverb.platform.default import checkpointers
import tensorflow as tf

from seed_acme import checkpoint
from seed_acme import run_directory
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.programs import single_process
from seed_acme.programs.inspection import address as inspect_address
from seed_acme.programs.inspection import command as inspect_command
from seed_acme.programs.inspection import distribution
from seed_acme.programs.inspection import items as inspect_items
from seed_acme.programs.inspection import output as inspect_output
from seed_acme.programs.inspection import saved as saved_lib
from seed_acme.replay import inspection
from seed_acme.replay import rate_limit
from seed_acme.replay import saved_items
from seed_acme.replay import tables as tables_lib

pytestmark = pytest.mark.timeout(600)

_SIDE, _STEPS = 20, 5
_SIGNATURE = {
  'image': tf.TensorSpec((_STEPS, _SIDE, _SIDE, 4), tf.uint8, 'observation/image'),
  'reward': tf.TensorSpec((_STEPS,), tf.float32, 'reward'),
}
_UNIFORM, _FIFO = reverb.selectors.Uniform, reverb.selectors.Fifo


def _insert(address, table, number):
  """Items 0 ... number - 1: reward NaN in item 1, channel 0 brighter by 10 an item."""
  writer = reverb.Client(address).trajectory_writer(num_keep_alive_refs=1)
  for i in range(number):
    image = np.zeros((_STEPS, _SIDE, _SIDE, 4), np.uint8)
    image[..., 0] = 10 * i + np.arange(_STEPS)[:, None, None]
    writer.append({'image': image, 'reward': np.full(_STEPS, np.nan if i == 1 else i, np.float32)})
    writer.create_item(table, 1.0 + i, {x: writer.history[x][-1] for x in writer.history})
    writer.flush()
  writer.close()


def _queue(name):
  return reverb.Table.queue(name, 4, signature=_SIGNATURE)


def _serve(*tables):
  server = reverb.Server(list(tables))
  return python_types.SimpleNamespace(server=server, address=f'localhost:{server.port}')


def _counts(address, table):
  info = reverb.Client(address).server_info(timeout=20)[table]
  return (
    info.current_size,
    info.rate_limiter_info.insert_stats.completed,
    info.rate_limiter_info.sample_stats.completed,
  )


@pytest.fixture(scope='module')
def ours():
  """A full queue of 4, and a mirror of 3 items."""
  served = _serve(
    _queue('unrolls'),
    reverb.Table(
      tables_lib.MIRROR,
      _UNIFORM(),
      _FIFO(),
      16,
      reverb.rate_limiters.MinSize(1),
      signature=_SIGNATURE,
    ),
  )
  _insert(served.address, 'unrolls', 4)
  _insert(served.address, tables_lib.MIRROR, 3)
  yield served
  served.server.stop()


@pytest.fixture
def foreign():
  """Two queues with two items each, and no mirror."""
  served = _serve(_queue('a'), _queue('b'))
  for table in ('a', 'b'):
    _insert(served.address, table, 2)
  yield served
  served.server.stop()


@pytest.fixture
def inspect(capsys, monkeypatch, tmp_path):
  """`inspect(**arguments)` -> what it printed; in this process and an empty folder."""
  monkeypatch.chdir(tmp_path)
  before = dict(os.environ)

  def run(**arguments):
    settings = {'interval': 0.1, **arguments}
    assert inspect_command.inspect(inspect_command.InspectArguments(**settings)) == 0
    return capsys.readouterr().out

  yield run
  os.environ.clear()
  os.environ.update(before)


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
  assert table['signature'][1] == {'name': 'reward', 'shape': [_STEPS], 'dtype': 'float32'}


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


def test_items_of_the_mirror_with_a_contact_sheet(inspect, ours, tmp_path):
  before = _counts(ours.address, 'unrolls')
  text = inspect(server=ours.address, sample=3)
  assert _counts(ours.address, 'unrolls') == before == (4, 4, 0)
  assert text.startswith('mirror: 3 drawn, 3 different')
  assert re.search(r'observation/image +uint8 +\[5, 20, 20, 4\] +0 +24 ', text), text
  assert re.search(r'reward +float32 +\[5\] +0 +2 +1 +5$', text, re.MULTILINE), text
  assert re.search(r'priority: median 2$', text, re.MULTILINE), text
  (sheet,) = tmp_path.iterdir()
  assert str(sheet.name) in text
  from matplotlib import image

  pixels = np.round(image.imread(sheet) * 255).astype(int)[..., 0]
  side, gap = 4 * _SIDE, 2
  assert pixels.shape == (3 * side + 2 * gap, _STEPS * side + (_STEPS - 1) * gap)
  rows = pixels[:: side + gap, :: side + gap]  # a corner of every picture
  np.testing.assert_array_equal(
    np.sort(rows, axis=0), 10 * np.arange(3)[:, None] + np.arange(_STEPS)
  )


def test_items_saved_and_as_json(inspect, ours, one_json, tmp_path):
  record = one_json(inspect(server=ours.address, sample=3, save='kept', json=True))
  assert record['table'] == tables_lib.MIRROR
  assert sorted(item['priority'] for item in record['items']) == [1, 2, 3]
  assert all(item['probability'] == pytest.approx(1 / 3) for item in record['items'])
  (bad,) = [item for item in record['items'] if item['leaves']['reward']['nan']]
  assert bad['leaves']['reward'] == {
    'shape': [_STEPS],
    'dtype': 'float32',
    'min': None,
    'max': None,
    'mean': None,
    'nan': _STEPS,
  }
  assert len(record['files']) == 3 and len(record['pictures']) == 1
  for path, item in zip(record['files'], record['items']):
    with np.load(tmp_path / path, allow_pickle=False) as saved:
      assert str(saved['info/key']) == item['key']
      found = item['leaves']['observation/image']
      assert (saved['observation/image'].max(), saved['observation/image'].min()) == (
        found['max'],
        found['min'],
      )


def test_a_foreign_server_is_not_sampled_unless_that_is_wanted(inspect, foreign):
  for arguments, words in (
    ({}, r'no mirror table.*--consume'),
    ({'table': 'a'}, r'table a .*--consume'),
    ({'consume': True}, r'--table=NAME, one of: a, b'),
  ):
    with pytest.raises(types.UserError, match=words):
      inspect(server=foreign.address, sample=1, **arguments)
  assert _counts(foreign.address, 'a') == _counts(foreign.address, 'b') == (2, 2, 0)
  assert inspect(server=foreign.address, sample=1, table='b', consume=True).startswith('b: 1')
  assert _counts(foreign.address, 'a') == (2, 2, 0)
  assert _counts(foreign.address, 'b') == (1, 2, 1)


def test_the_learners_table_is_not_sampled_by_its_name_alone(inspect, ours):
  with pytest.raises(types.UserError, match='--consume'):
    inspect(server=ours.address, sample=1, table='unrolls')
  assert _counts(ours.address, 'unrolls') == (4, 4, 0)


def test_an_empty_table(inspect, monkeypatch):
  monkeypatch.setattr(inspect_command, '_SAMPLE_TIMEOUT_S', 0.2)
  served = _serve(_queue('a'))
  with pytest.raises(types.UserError, match='table a let no sample out within 0.2 s'):
    inspect(server=served.address, sample=1, consume=True)
  served.server.stop()


def test_an_unknown_table(inspect, ours):
  with pytest.raises(types.UserError, match=r"no table 'x'; the server has: mirror, unrolls"):
    inspect(server=ours.address, table='x')


def test_a_folder_that_cannot_be_written(inspect, ours, tmp_path):
  (tmp_path / 'file').write_text('')
  with pytest.raises(types.UserError, match='cannot write .*file.*--save'):
    inspect(server=ours.address, sample=1, save='file')


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
    (['--server=localhost:1', '--interval=0'], ['--interval=0']),
    (['--server=localhost:1', '--watch=-1'], ['--watch=-1']),
    (['--server=localhost:1', '--watch=inf'], ['--watch=inf']),
    (['--server=localhost:1', '--sample=-1'], ['--sample=-1']),
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
  monkeypatch.setitem(sys.modules, 'seed_acme.replay.inspection', None)  # an import would fail
  previous = signal.getsignal(signal.SIGTERM)
  monkeypatch.setattr(sys, 'path', list(sys.path))
  code = cli.main(['inspect', *arguments])
  signal.signal(signal.SIGTERM, previous)
  assert code == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith('error: ')
  for word in words:
    assert word in line


def test_addresses_in_every_form():
  assert inspect_address.parse('a-b.example_1.org:65535') == ('a-b.example_1.org', 65535)
  assert inspect_address.parse('[fe80::1]:1') == ('fe80::1', 1)


def test_nobody_waits_longer_for_a_connection_than_was_said(monkeypatch):
  asked = []

  def never(address, timeout):
    asked.append((address, timeout))
    raise TimeoutError('timed out')

  monkeypatch.setattr(socket, 'create_connection', never)
  with pytest.raises(types.UserError, match='host:7 .no answer within 3 s'):
    inspect_address.check_answers('host:7', inspect_command._PROBE_TIMEOUT_S)
  assert asked == [(('host', 7), inspect_command._PROBE_TIMEOUT_S)]
  assert inspect_command._PROBE_TIMEOUT_S <= 4  # the rest of 5 s is for Python's start


@pytest.fixture
def listener():
  """`listener(answer)`: the address of somebody who takes a connection and sends that."""
  with contextlib.ExitStack() as stack:

    def listen(answer):
      server = stack.enter_context(socket.socket())
      server.bind(('127.0.0.1', 0))
      server.listen()

      def serve():
        connection = stack.enter_context(server.accept()[0])
        connection.sendall(answer)

      threading.Thread(target=serve, daemon=True).start()
      return f'127.0.0.1:{server.getsockname()[1]}'

    yield listen


@pytest.mark.parametrize(
  'answer, words',
  [
    (b'', 'no answer within 0.2 s'),
    (bytes([0, 0, 0]), 'no answer within 0.2 s'),
    (b'HTTP/1.1 400 Bad Request', 'something else answers there'),
  ],
)
def test_who_is_silent_or_speaks_otherwise_is_found_before_reverb_is_loaded(
  listener, answer, words
):
  with pytest.raises(types.UserError, match=f'no Reverb server at .*{words}'):
    inspect_address.check_answers(listener(answer), 0.2)


def test_a_reverb_server_is_taken_for_one(ours):
  inspect_address.check_answers(ours.address, inspect_command._PROBE_TIMEOUT_S)


@pytest.mark.parametrize('left_s, timeout_s', [(4.0, 3), (2.9, 2), (0.5, 1), (-7.0, 1)])
def test_one_deadline_for_the_probe_and_the_first_answer(
  inspect, monkeypatch, ours, left_s, timeout_s
):
  asked = []
  snapshot = inspection.Server.snapshot

  def record(server, timeout_s=None):
    asked.append(timeout_s)
    return snapshot(server)

  monkeypatch.setattr(inspection.Server, 'snapshot', record)
  monkeypatch.setattr(inspect_command.time, 'monotonic', lambda: 100.0)
  monkeypatch.setattr(inspect_command, '_DEADLINE_S', left_s)
  monkeypatch.setattr(inspect_address, 'check_answers', lambda *_: None)
  inspect(server=ours.address)
  assert asked == [timeout_s, None]


def test_the_deadline_leaves_time_for_the_start_of_python():
  longest_s = max(inspect_command._PROBE_TIMEOUT_S, inspect_command._DEADLINE_S)
  assert longest_s + inspect_command._first_timeout_s(0.0) <= 5


@pytest.mark.parametrize(
  'arguments, wanted',
  [
    (['--watch'], ['--watch=2']),
    (['--watch', '--json'], ['--watch=2', '--json']),
    (['--watch', '5'], ['--watch', '5']),
    (['--watch=5'], ['--watch=5']),
  ],
)
def test_a_bare_watch_has_a_period(arguments, wanted):
  assert inspect_command.with_watch_period(arguments) == wanted


@pytest.fixture
def run_folder(tmp_path):
  run = run_directory.create(tmp_path / 'run')
  run_directory.write_json(run.config, {})
  return run


def test_a_run_that_has_ended_is_not_looked_for(run_folder):
  with pytest.raises(types.UserError, match='no addresses.json'):
    inspect_address.of_run(str(run_folder.path))
  run_directory.write_json(run_folder.addresses, {'replay': 'localhost:7'})
  assert inspect_address.of_run(str(run_folder.path)) == 'localhost:7'
  written_s = run_folder.addresses.stat().st_mtime
  for record in (run_folder.summary, run_folder.failure):
    run_directory.write_json(record, {})
    os.utime(record, (written_s + 1, written_s + 1))
    with pytest.raises(types.UserError, match=f'has ended .{record.name}'):
      inspect_address.of_run(str(run_folder.path))
    os.utime(record, (written_s - 1, written_s - 1))  # of the run before it was resumed
    assert inspect_address.of_run(str(run_folder.path)) == 'localhost:7'


@pytest.mark.parametrize('content', [{}, {'replay': 7}, []])
def test_addresses_without_a_replay(run_folder, content):
  run_directory.write_json(run_folder.addresses, content)
  with pytest.raises(types.UserError, match='names no replay'):
    inspect_address.of_run(str(run_folder.path))


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


@pytest.fixture
def live_run(run_folder):
  """The folder of a run whose server is up: 8 items of priorities 1 ... 8, and an empty mirror.
  `save(updates)` makes a checkpoint with its memory."""
  tables = [
    reverb.Table(
      'unrolls', _UNIFORM(), _FIFO(), 99, reverb.rate_limiters.MinSize(1), signature=_SIGNATURE
    ),
    reverb.Table(
      tables_lib.MIRROR,
      _UNIFORM(),
      _FIFO(),
      16,
      reverb.rate_limiters.MinSize(1),
      signature=_SIGNATURE,
    ),
  ]
  server = reverb.Server(
    tables, checkpointer=checkpointers.DefaultCheckpointer(str(run_folder.replay_in_progress))
  )
  address = f'localhost:{server.port}'
  _insert(address, 'unrolls', 8)
  run_directory.write_json(run_folder.addresses, {'replay': address})

  def save(updates):
    checkpoint.save(
      run_folder.checkpoints,
      updates,
      {},
      {},
      keep=3,
      replay=pathlib.Path(reverb.Client(address).checkpoint()),
    )

  yield python_types.SimpleNamespace(path=str(run_folder.path), address=address, save=save)
  server.stop()


def test_single_items_of_a_run_are_those_of_its_newest_saved_memory(inspect, live_run, one_json):
  record = one_json(inspect(run_dir=live_run.path, json=True))
  assert record['tables']['unrolls']['items'] is None
  assert 'no checkpoint of the run has a replay memory' in record['items_unknown']
  live_run.save(3)
  list(reverb.Client(live_run.address).sample('unrolls', 5))
  live_run.save(7)
  _insert(live_run.address, 'unrolls', 1)
  record = one_json(inspect(run_dir=live_run.path, json=True))
  assert record['items_unknown'] is None
  assert record['tables']['unrolls']['size'] == 9
  items = record['tables']['unrolls']['items']
  assert (items['checkpoint_updates'], items['size']) == (7, 8)
  assert record['time_s'] >= items['time_s']
  assert items['priority']['counts'] == [1] * 8
  assert (items['priority']['min'], items['priority']['max']) == (1, 8)
  assert items['times_sampled']['mean'] == 5 / 8
  assert items['age_s']['min'] >= 0
  empty = record['tables'][tables_lib.MIRROR]['items']
  assert (empty['size'], empty['priority']) == (0, None)
  text = inspect(run_dir=live_run.path)
  assert re.search(r'single items: 8, as saved at [0-9:]{8}, \d+ s ago, in checkpoint 7\n', text)
  assert re.search(r'priority: median 4.5\n( +[\d.]+ to +[\d.]+  #{30} 1\n){8}', text), text
  for words in ('times sampled: ', 'age in seconds then: ', 'single items: 0, as saved'):
    assert words in text
  assert 'Unknown' not in text


def test_a_run_in_one_process_can_be_inspected(inspect, tmp_path, one_json):
  config = registry.load('catch_vtrace')
  run = run_directory.create(tmp_path / 'single')
  run_directory.write_json(run.config, {})
  program = single_process.SingleProcess(config, run)
  try:
    while not program.writer.num_inserted:
      program.step()
    record = one_json(inspect(run_dir=str(run.path), json=True))
    assert record['tables'][tables_lib.MIRROR]['size'] >= 1
    assert one_json(inspect(run_dir=str(run.path), sample=1, json=True))['items']
  finally:
    program.close()


def test_what_is_saved_is_read_again_only_when_it_is_new(live_run, monkeypatch):
  reads = []
  read = saved_items.read
  monkeypatch.setattr(saved_items, 'read', lambda folder: reads.append(folder) or read(folder))
  saved = saved_lib.Saved(run_directory.open_existing(live_run.path))
  assert saved.look() is None
  for updates in (3, 7):
    live_run.save(updates)
    assert saved.look().updates == saved.look().updates == updates
  assert len(reads) == 2


def test_of_a_foreign_server_single_items_are_unknown(inspect, foreign, one_json):
  record = one_json(inspect(server=foreign.address, json=True))
  assert record['tables']['a']['items'] is None
  assert '--server knows no checkpoints' in record['items_unknown']
  assert 'Unknown: priority, age and samples of single items (a Reverb server' in inspect(
    server=foreign.address
  )


def test_fewer_items_than_were_asked_for(inspect, ours, one_json):
  assert inspect(server=ours.address, sample=64).startswith(
    'mirror: 3 drawn, 3 different of the 64 asked for: it holds 3\n'
  )
  record = one_json(inspect(server=ours.address, sample=64, json=True))
  assert (record['asked'], len(record['items'])) == (64, 3)
  assert record['missing'] == 'of the 64 asked for: it holds 3'
  assert not one_json(inspect(server=ours.address, sample=3, json=True))['missing']


def test_the_frames_of_a_recurrent_state_are_no_pictures_over_time(tmp_path):
  table = python_types.SimpleNamespace(holds_unrolls=True)
  item = python_types.SimpleNamespace(
    leaves={
      'initial_state/frames': np.zeros((1, 3, 84, 84), np.uint8),
      'inputs/observation/screen': np.zeros((1, 5, 84, 84, 1), np.uint8),
    }
  )
  (sheet,) = inspect_items.write_sheets(table, [item], tmp_path)
  assert sheet.name == 'inspect_inputs.observation.screen.png'


_SERVER = """
import time, reverb
server = reverb.Server([reverb.Table.queue('q', 3)])
print(server.port, flush=True)
time.sleep(600)
"""


@pytest.fixture
def server_process():
  """A server of its own process: (process, address)."""
  with subprocess.Popen(
    [sys.executable, '-c', _SERVER], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL
  ) as process:
    yield process, f'localhost:{process.stdout.readline().strip()}'
    process.kill()


@pytest.mark.processes
def test_watching_says_when_the_server_is_gone(runs, until, server_process):
  process, address = server_process
  run = runs.start('inspect', f'--server={address}', '--watch=0.2', '--json')
  until(lambda: len(run.stdout.splitlines()) >= 3 or run.check_runs(), 'three records')
  process.kill()
  assert run.wait() == 1
  (line,) = run.stderr.splitlines()
  assert line.startswith('error: ') and address in line and 'gone' in line
  for line in run.stdout.splitlines():
    assert json.loads(line)['tables']['q']['blocked'] == 'samples'


@pytest.mark.processes
def test_watching_ends_quietly_with_ctrl_c(runs, until, server_process):
  run = runs.start('inspect', f'--server={server_process[1]}', '--watch=0.2')
  until(lambda: run.stdout.count('q: 0 of 3 items') >= 2 or run.check_runs(), 'two blocks')
  run.process.send_signal(signal.SIGINT)
  assert run.wait() == 130
  assert run.stderr == ''
  assert '\x1b' not in run.stdout  # no terminal


@pytest.mark.processes
def test_something_that_is_no_reverb_server(runs, request):
  other = socket.socket()
  request.addfinalizer(other.close)
  other.bind(('127.0.0.1', 0))
  other.listen()
  address = f'127.0.0.1:{other.getsockname()[1]}'
  run = runs.start('inspect', f'--server={address}')
  assert run.wait() == 2
  (line,) = run.stderr.splitlines()
  assert line.startswith('error: ') and address in line and 'no answer within 3 s' in line


@pytest.mark.processes
def test_a_live_run_and_the_same_when_it_has_ended(runs, one_json):
  folder = runs.folder()
  trained = runs.train(runs.endless, folder=folder)
  trained.wait_for_updates(3)
  looked = runs.start('inspect', '--run_dir=run', '--json', folder=folder)
  assert looked.wait() == 0, looked.stderr
  assert looked.stderr == ''
  tables = one_json(looked.stdout)['tables']
  assert tables['unrolls']['inserts_per_s'] > 0
  assert tables['mirror']['size'] >= 1
  leaves = {leaf['name'] for leaf in tables['unrolls']['signature']}
  assert {'inputs/reward', 'outputs/action', 'policy_version'} <= leaves
  drawn = runs.start(
    'inspect', '--run_dir=run', '--sample=1', '--save=items', '--json', folder=folder
  )
  assert drawn.wait() == 0, drawn.stderr
  record = one_json(drawn.stdout)
  assert record['table'] == 'mirror'
  assert record['items'][0]['leaves']['policy_version']['shape'] == [8, 10]
  trained.process.send_signal(signal.SIGINT)
  assert trained.wait() == 130
  late = runs.start('inspect', '--run_dir=run', folder=folder)
  assert late.wait() == 2
  (line,) = late.stderr.splitlines()
  assert line.startswith('error: ') and 'has ended' in line
