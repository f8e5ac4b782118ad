"""The reports at the end of a run whose process was lost before it wrote them."""

import dataclasses
import time

import numpy as np
import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.files import bucket
from seed_acme.files import local
from seed_acme.loggers import csv_file
from seed_acme.programs.front_end import bucket_folder
from seed_acme.programs.front_end import cpu_record
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.front_end import summary as summary_lib
from seed_acme.programs.pictures import plot
from seed_acme.programs.system import processes
from seed_acme.progress import counting
from seed_acme.storage import checkpoint
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

_STEPS = 1000


@pytest.fixture
def config():
  return dataclasses.replace(registry.load('catch_vtrace'), total_steps=_STEPS)


def _make(path, config, steps=_STEPS, wall_s=10.0):
  """Makes a run whose process was lost right after its last checkpoint."""
  run = run_directory.create(path)
  saved_config.save(config, run.config)
  counts = counting.Counts(
    agent_steps=steps, frames=steps, updates=7, episodes=90, trained_steps=steps, wall_s=wall_s
  )
  checkpoint_writer.save(
    run.checkpoints, 7, {'w': np.zeros(2)}, {'counts': counts._asdict(), 'resumptions': 0}, keep=3
  )
  csv = csv_file.CsvLogger(run.metrics)
  for step in (500, 900):
    csv.write(step, {'episode/return': 0.5, 'wall_s': step / 100})
  csv.close()
  local.write_json(
    run.status,
    {'status': 'running', 'agent_steps': 900, 'updates': 6, 'episode_return_last_100': 0.5},
  )
  return run


def _refusal(config, run):
  with pytest.raises(lifecycle.RunFinished) as caught:
    lifecycle.check_resume(config, run)
  return caught.value


def test_what_the_end_did_not_come_to_is_made_good(tmp_path, config):
  run = _make(tmp_path / 'run', config)
  local.write_json(
    run.summary, {'status': 'stopped', 'agent_steps': 400, 'cpu_s': {'learner': 5.0}}
  )
  summary = summary_lib.complete(config, run, _refusal(config, run).last, pytest.fail)
  assert summary == local.read_json(run.summary)
  assert (summary['status'], summary['agent_steps'], summary['updates']) == ('finished', 1000, 7)
  assert summary['cpu_s'] == {'learner': 5.0} and summary['episode_return_last_100'] == 0.5
  assert run.plot.exists()
  assert local.read_json(run.status)['status'] == 'finished'


def test_the_end_that_is_made_good_counts_the_cpu_seconds_of_a_start_that_was_killed(
  tmp_path, config
):
  run = _make(tmp_path / 'run', config)
  cpu_record.CpuRecord(run).update({'learner': 5.0})
  summary = summary_lib.complete(config, run, _refusal(config, run).last, pytest.fail)
  assert (summary['cpu_s'], summary['steps_per_cpu_s']) == ({'learner': 5.0}, 200.0)


def test_a_plot_that_cannot_be_drawn_is_a_notice(tmp_path, config, monkeypatch):
  def fail(*_):
    raise RuntimeError('no display\nnor paper')

  run, told = _make(tmp_path / 'run', config), []
  last = _refusal(config, run).last
  monkeypatch.setattr(plot, 'plot', fail)
  assert summary_lib.complete(config, run, last, told.append)['status'] == 'finished'
  assert told == ['Notice: the plot could not be drawn: RuntimeError: no display nor paper']
  assert local.read_json(run.summary)['status'] == 'finished'
  assert summary_lib.write_last(run, local.read_json(run.summary), told.append) is None


def test_a_run_without_an_episode_needs_no_plot_and_no_notice(tmp_path, config):
  run = _make(tmp_path / 'run', config)
  run.metrics.unlink()
  summary_lib.complete(config, run, _refusal(config, run).last, pytest.fail)
  assert run.summary.exists() and not run.plot.exists()


def test_what_the_end_did_write_stays(tmp_path, config):
  run = _make(tmp_path / 'run', config)
  last = _refusal(config, run).last
  # written after the save
  status = {**last.meta['counts'], 'agent_steps': 1024, 'status': 'finished'}
  local.write_json(run.status, status)
  summary = {**summary_lib.summarise(config, run, {'learner': 1.0}, 'finished')}
  local.write_json(run.summary, summary)
  run.plot.write_bytes(b'')
  assert summary_lib.complete(config, run, last, pytest.fail) == summary
  assert local.read_json(run.status) == status and run.plot.read_bytes() == b''


def test_a_run_that_has_had_its_seconds_is_over_too(tmp_path, config):
  timed = dataclasses.replace(config, max_wall_s=10.0)
  run = _make(tmp_path / 'run', timed, steps=300)
  assert 'raise --config.max_wall_s' in str(_refusal(timed, run))
  lifecycle.check_resume(dataclasses.replace(timed, max_wall_s=11.0), run)
  lifecycle.check_resume(dataclasses.replace(timed, max_wall_s=0.0), run)


def test_rates_are_of_agent_steps_and_of_the_time_of_all_starts(tmp_path, config):
  run = run_directory.create(tmp_path / 'run')
  local.write_json(run.status, {'agent_steps': 1000, 'frames': 4000, 'wall_s': 10.0})
  local.write_json(run.summary, {'cpu_s': {'actor': 3.0, 'replay': 1.0}})
  record = cpu_record.CpuRecord(run)
  record.update({'actor': 5.0, 'learner': 16.0})
  summary = summary_lib.summarise(config, run, record.seconds, 'stopped')
  assert summary['cpu_s'] == {'actor': 8.0, 'learner': 16.0, 'replay': 1.0}
  assert (summary['steps_per_s'], summary['steps_per_cpu_s']) == (100.0, 40.0)
  assert (summary['status'], summary['agent_steps'], summary['frames']) == ('stopped', 1000, 4000)


def test_progress_is_that_of_this_start(tmp_path):
  run = run_directory.create(tmp_path / 'run')
  assert summary_lib.status_time_s(run) is None
  assert summary_lib.read_progress(run, None) == {'phase': ''}
  assert summary_lib.read_progress(run, 50.0) == {'phase': ''}
  status = {'agent_steps': 3, 'time_s': time.time()}
  local.write_json(run.status, status)
  run.phase.write_text('filling', encoding='utf-8')
  assert summary_lib.read_progress(run, None) == {**status, 'phase': 'filling'}
  earlier_s = summary_lib.status_time_s(run)
  assert summary_lib.read_progress(run, earlier_s) == {'phase': 'filling'}
  later = {'agent_steps': 5, 'time_s': time.time() - 3600}  # the clock was set back meanwhile
  local.write_json(run.status, later)
  assert summary_lib.read_progress(run, earlier_s) == {**later, 'phase': 'filling'}


def _in_bucket(tmp_path):
  return run_directory.RunDirectory(tmp_path / 'copy', bucket='gs://bucket/run')


def test_a_failure_names_what_is_in_the_bucket(tmp_path):
  run = _in_bucket(tmp_path)
  run.path.mkdir()
  processes.report_failure(run, 'learner/0', f'OSError: {run.checkpoints}: no space', 'learner/0')
  failure = summary_lib.known_failure(run)
  assert failure == local.read_json(run.failure)
  assert summary_lib.failure_text(failure, run) == (
    'error in learner/0: OSError: gs://bucket/run/checkpoints: no space\n'
    'log: gs://bucket/run/logs/learner/0'
  )
  assert summary_lib.failure_text(None, run).endswith('look into gs://bucket/run/logs')


def test_a_failure_of_a_local_run_names_its_folder(tmp_path):
  run = run_directory.create(tmp_path / 'run')
  assert summary_lib.known_failure(run) is None
  processes.report_failure(run, 'learner/0', 'lost', 'learner/0')
  assert summary_lib.known_failure(run)['log'] == str(run.logs / 'learner' / '0')


def test_a_failure_cannot_control_the_terminal(tmp_path):
  run = run_directory.create(tmp_path)
  processes.report_failure(run, 'actor/0', 'lost \x1b[31mRED\x1b]0;title\x07', 'actor/0')
  text = summary_lib.failure_text(summary_lib.known_failure(run), run)
  assert r'lost \x1b[31mRED\x1b]0;title\x07' in text and '\x1b' not in text


def test_a_corrupt_checkpoint_in_a_bucket_is_named_by_its_url(tmp_path, config):
  run = _make(tmp_path / 'bucket', config)
  (checkpoint.newest(run.checkpoints) / 'arrays.npz').write_bytes(b'nonsense')
  url = f'file://{run.path}'
  with pytest.raises(types.Failure) as caught:
    with bucket_folder.opened(url) as copy:
      copy_path = str(copy.path)
      lifecycle.prepare(config, copy_path, copy.bucket)
  assert f'{url}/checkpoints/{7:012d}/arrays.npz is corrupt' in str(caught.value)
  assert copy_path not in str(caught.value)
  assert 'lock.json' not in bucket.names(url)


def _with_status(tmp_path, config, updates, steps):
  run = _make(tmp_path / 'run', config)
  local.write_json(run.status, {'status': 'running', 'agent_steps': steps, 'updates': updates})
  return run


def test_nothing_is_lost_where_the_checkpoint_is_as_new_as_the_status(tmp_path, config):
  run = _with_status(tmp_path, config, updates=7, steps=_STEPS)
  summary = summary_lib.summarise(config, run, {}, 'stopped')
  assert summary_lib.lost_text(summary) == ''
  assert (summary['saved_updates'], summary['lost_updates'], summary['lost_agent_steps']) == (
    7,
    0,
    0,
  )


def test_what_came_after_the_newest_checkpoint_is_lost(tmp_path, config):
  run = _with_status(tmp_path, config, updates=121, steps=_STEPS + 30)
  summary = summary_lib.summarise(config, run, {}, 'stopped')
  assert summary_lib.lost_text(summary) == (
    '114 updates and 30 steps are lost since checkpoint 000000000007, the newest that is whole'
  )


def test_a_checkpoint_that_is_not_whole_saves_nothing(tmp_path, config):
  run = _with_status(tmp_path, config, updates=7, steps=_STEPS)
  (checkpoint.newest(run.checkpoints) / 'arrays.npz').write_bytes(b'cut')
  summary = summary_lib.summarise(config, run, {}, 'stopped')
  assert summary['lost_updates'] == 7 and not summary['has_checkpoint']
  assert 'no whole checkpoint is on the disk' in summary_lib.lost_text(summary)


def test_a_run_that_has_not_begun_has_nothing_to_lose(tmp_path, config):
  run = run_directory.create(tmp_path / 'run')
  kept = summary_lib.saved(run)
  assert kept.lost_updates == kept.lost_agent_steps == 0


def test_totals_count_one_in_the_singular(tmp_path, config):
  run = _make(tmp_path / 'run', config)
  local.write_json(run.status, {'updates': 1, 'agent_steps': 900, 'episodes': 1})
  text = summary_lib.totals_text(summary_lib.summarise(config, run, {}, 'stopped'))
  assert text.startswith('Stopped: 900 steps, 1 update, 1 episode, ')
