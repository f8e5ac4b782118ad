"""`inspect` on items: single ones, saved ones, contact sheets."""

import pathlib
import re
import types as python_types

import numpy as np
import pytest
import reverb
from reverb.platform.default import checkpointers

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.files import local
from seed_acme.programs import single_process
from seed_acme.programs.tools.inspection import command as inspect_command
from seed_acme.programs.tools.inspection import items as inspect_items
from seed_acme.programs.tools.inspection import saved as saved_lib
from seed_acme.replay import saved_items
from seed_acme.replay import tables as tables_lib
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import opening
from seed_acme.storage import run_directory
from tests.programs.tools.inspection import queues

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_items_of_the_mirror_with_a_contact_sheet(inspect, ours, tmp_path):
  before = queues.counts(ours.address, 'unrolls')
  text = inspect(server=ours.address, sample=3)
  assert queues.counts(ours.address, 'unrolls') == before == (4, 4, 0)
  assert text.startswith('mirror: 3 drawn, 3 different')
  assert re.search(r'observation/image +uint8 +\[5, 20, 20, 4\] +0 +24 ', text), text
  assert re.search(r'reward +float32 +\[5\] +0 +2 +1 +5$', text, re.MULTILINE), text
  assert re.search(r'priority: median 2$', text, re.MULTILINE), text
  (sheet,) = tmp_path.iterdir()
  assert str(sheet.name) in text
  from matplotlib import image

  pixels = np.round(image.imread(sheet) * 255).astype(int)[..., 0]
  side, gap = 4 * queues.SIDE, 2
  assert pixels.shape == (3 * side + 2 * gap, queues.STEPS * side + (queues.STEPS - 1) * gap)
  rows = pixels[:: side + gap, :: side + gap]  # a corner of every picture
  np.testing.assert_array_equal(
    np.sort(rows, axis=0), 10 * np.arange(3)[:, None] + np.arange(queues.STEPS)
  )


def test_items_saved_and_as_json(inspect, ours, one_json, tmp_path):
  record = one_json(inspect(server=ours.address, sample=3, save='kept', json=True))
  assert record['table'] == tables_lib.MIRROR
  assert sorted(item['priority'] for item in record['items']) == [1, 2, 3]
  assert all(item['probability'] == pytest.approx(1 / 3) for item in record['items'])
  (bad,) = [item for item in record['items'] if item['leaves']['reward']['nan']]
  assert bad['leaves']['reward'] == {
    'shape': [queues.STEPS],
    'dtype': 'float32',
    'min': None,
    'max': None,
    'mean': None,
    'nan': queues.STEPS,
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
  assert queues.counts(foreign.address, 'a') == queues.counts(foreign.address, 'b') == (2, 2, 0)
  assert inspect(server=foreign.address, sample=1, table='b', consume=True).startswith('b: 1')
  assert queues.counts(foreign.address, 'a') == (2, 2, 0)
  assert queues.counts(foreign.address, 'b') == (1, 2, 1)


def test_the_learners_table_is_not_sampled_by_its_name_alone(inspect, ours):
  with pytest.raises(types.UserError, match='--consume'):
    inspect(server=ours.address, sample=1, table='unrolls')
  assert queues.counts(ours.address, 'unrolls') == (4, 4, 0)


def test_an_empty_table(inspect, monkeypatch):
  monkeypatch.setattr(inspect_command, '_SAMPLE_TIMEOUT_S', 0.2)
  served = queues.serve(queues.queue('a'))
  with pytest.raises(types.UserError, match='table a let no sample out within 0.2 s'):
    inspect(server=served.address, sample=1, consume=True)
  served.server.stop()


@pytest.fixture
def live_run(run_folder):
  """Makes the folder of a live run with 8 items of priorities 1 ... 8, and an empty mirror.

  `save(updates)` makes a checkpoint with its memory.
  """
  tables = [
    reverb.Table(
      'unrolls',
      queues.UNIFORM(),
      queues.FIFO(),
      99,
      reverb.rate_limiters.MinSize(1),
      signature=queues.SIGNATURE,
    ),
    reverb.Table(
      tables_lib.MIRROR,
      queues.UNIFORM(),
      queues.FIFO(),
      16,
      reverb.rate_limiters.MinSize(1),
      signature=queues.SIGNATURE,
    ),
  ]
  server = reverb.Server(
    tables, checkpointer=checkpointers.DefaultCheckpointer(str(run_folder.replay_in_progress))
  )
  address = f'localhost:{server.port}'
  queues.insert(address, 'unrolls', 8)
  local.write_json(run_folder.addresses, {'replay': address})

  def save(updates):
    checkpoint_writer.save(
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
  queues.insert(live_run.address, 'unrolls', 1)
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
  local.write_json(run.config, {})
  program = single_process.SingleProcess(config, run)
  try:
    while not program.writer.each[0].num_confirmed:
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
  saved = saved_lib.Saved(opening.open_run(live_run.path))
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
