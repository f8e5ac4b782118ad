"""The real W&B, offline: rows, configuration, a resumed run, and a missing package."""

import dataclasses
import json
import os
import sys

import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.files import local
from seed_acme.loggers import own
from seed_acme.loggers import wandb_logger
from seed_acme.storage import run_directory


@pytest.fixture(name='run', autouse=True)
def _run(tmp_path, monkeypatch):
  """Returns a run folder; wandb keeps its files in the test's folder, and reaches no server."""
  wandb = pytest.importorskip('wandb')  # imported here, because it takes seconds
  for name, value in (
    ('WANDB_MODE', 'offline'),
    ('WANDB_BASE_URL', 'http://127.0.0.1:9'),
    ('WANDB_ERROR_REPORTING', 'false'),
    ('WANDB_SILENT', 'true'),
    ('WANDB_CACHE_DIR', str(tmp_path)),
    ('WANDB_CONFIG_DIR', str(tmp_path)),
  ):
    monkeypatch.setenv(name, value)
  for name in ('WANDB_PROJECT', 'WANDB_ENTITY', 'WANDB_NAME', 'WANDB_API_KEY', 'WANDB_RUN_ID'):
    monkeypatch.delenv(name, raising=False)
  yield run_directory.create(tmp_path / 'run')
  wandb.teardown()


def _config(**changes):
  return dataclasses.replace(
    registry.load('catch_vtrace'), learner=config_lib.LearnerConfig(logger='wandb'), **changes
  )


def _make(run, **changes):
  config = _config(**changes)
  own.check(config)
  (logger,) = own.make(config, run)
  return logger


def _records(run):
  """Yields the records that wandb would send, of each folder that it has written, in order."""
  import wandb
  from wandb.proto import wandb_internal_pb2
  from wandb.sdk.internal import datastore

  wandb.teardown()  # its own process may still be writing after the end of a run
  for path in sorted(run.path.glob('wandb/offline-run-*/*.wandb'), key=os.path.getmtime):
    store = datastore.DataStore()
    store.open_for_scan(str(path))
    records = []
    while (data := store.scan_data()) is not None:
      record = wandb_internal_pb2.Record()
      record.ParseFromString(data)
      records.append(record)
    store._fp.close()
    yield records


def _rows(records):
  """Returns (step, {metric: value}) of each row."""
  rows = []
  for record in records:
    if record.WhichOneof('record_type') == 'history':
      items = {
        item.key or '/'.join(item.nested_key): json.loads(item.value_json)
        for item in record.history.item
      }
      rows.append(
        (record.history.step.num, {name: value for name, value in items.items() if name[0] != '_'})
      )
  return rows


def _runs(records):
  return [record.run for record in records if record.WhichOneof('record_type') == 'run']


@pytest.mark.slow
def test_a_resumed_run_goes_on_in_the_same_one_with_steps_that_rise(run):
  first = _make(run)
  first.write(100, {'loss/total': 0.5, 'updates': 1})
  first.write(200, {'loss/total': 0.25})
  first.close()
  resumed = _make(run, num_actors=7)
  resumed.write(150, {'loss/total': 0.125})  # its checkpoint was older than the last row
  local.write_json(run.status, {'status': 'finished'})
  resumed.close()

  before, after = _records(run)
  assert _rows(before) == [
    (0, {'agent_steps': 100, 'loss/total': 0.5, 'updates': 1}),
    (1, {'agent_steps': 200, 'loss/total': 0.25}),
  ]
  assert _rows(after) == [(2, {'agent_steps': 150, 'loss/total': 0.125})]
  started, again = _runs(before)[0], _runs(after)[0]
  saved = local.read_json(run.path / wandb_logger.FILE)
  assert started.run_id == again.run_id == saved['id'] and saved['rows'] == 3
  assert started.project == again.project == 'seed_acme'
  assert started.display_name == 'catch_vtrace run'
  for of_start, num_actors in ((started, registry.load('catch_vtrace').num_actors), (again, 7)):
    sent = {item.key: json.loads(item.value_json) for item in of_start.config.update}
    assert sent['num_actors'] == num_actors
    assert sent['agent']['batch_size'] == _config().agent.batch_size
  axes = [record.metric for record in before if record.WhichOneof('record_type') == 'metric']
  assert ('*', 'agent_steps') in [(axis.glob_name, axis.step_metric) for axis in axes]
  ends = [
    [r.exit.exit_code for r in part if r.WhichOneof('record_type') == 'exit']
    for part in (before, after)
  ]
  assert ends == [[1], [0]]  # the first had not reported a good end


def test_a_filmed_episode_is_a_row_with_a_video(run):
  film = run.path / 'film.mp4'
  film.write_bytes(b'a film')
  logger = _make(run)
  logger.write(100, {'loss/total': 0.5})
  logger.write_video(types.Recording(90, film, film, 12.0, 1500, False))
  logger.write(200, {'loss/total': 0.25})
  logger.close()
  [records] = _records(run)
  rows = _rows(records)
  assert [step for step, _ in rows] == [0, 1, 2]
  row, video = rows[1][1], 'evaluation/video'
  assert row['agent_steps'] == 90
  assert row[f'{video}/_type'] == 'video-file'
  assert row[f'{video}/caption'] == 'return 12 in 1,500 steps'
  [kept] = run.path.glob(f'wandb/offline-run-*/files/{row[f"{video}/path"]}')
  assert kept.read_bytes() == b'a film'


def test_the_project_is_that_of_the_environment_and_of_the_first_start(run, monkeypatch):
  for steps, project in enumerate(('theirs', 'another'), start=1):
    monkeypatch.setenv('WANDB_PROJECT', project)
    logger = _make(run)
    logger.write(steps, {'loss/total': 0.5})  # a start without rows must leave nothing behind
    logger.close()
  assert [_runs(records)[0].project for records in _records(run)] == ['theirs', 'theirs']


def test_nobody_has_logged_in(run, monkeypatch):
  monkeypatch.setenv('WANDB_MODE', 'online')
  monkeypatch.setenv('NETRC', str(run.path / 'none'))
  with pytest.raises(types.UserError, match='WANDB_MODE=offline'):
    _make(run)


def test_a_damaged_file_is_refused(run):
  (run.path / wandb_logger.FILE).write_text('[]')
  with pytest.raises(types.UserError, match=r'wandb.json names no run .*delete it'):
    _make(run)


def test_without_wandb_the_extra_is_named(run, monkeypatch):
  monkeypatch.setitem(sys.modules, 'wandb', None)
  with pytest.raises(types.UserError, match=r"needs the package wandb: .*'\.\[wandb\]'"):
    wandb_logger.WandbLogger(_config(), run.path)


def test_a_count_of_rows_that_is_too_old_goes_on_where_the_run_is(run, monkeypatch):
  """The bucket of a run has the count of some seconds before a kill."""
  from wandb.sdk import wandb_run

  monkeypatch.setattr(wandb_run.Run, 'step', property(lambda _: 9))
  logger = _make(run)
  logger.write(100, {'loss/total': 0.5})
  logger.close()
  assert local.read_json(run.path / wandb_logger.FILE)['rows'] == 10
