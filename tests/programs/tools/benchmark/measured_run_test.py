"""A measured run that makes no update, ends or stands still is ended, and says why."""

import dataclasses
import itertools
import os
import threading
import types as python_types

import pytest

from seed_acme.configs import registry
from seed_acme.files import local
from seed_acme.programs.tools.benchmark import bench
from seed_acme.programs.tools.benchmark import measured_run
from seed_acme.programs.tools.benchmark import soak
from seed_acme.storage import run_directory

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
  'name, inserted, words',
  [
    ('atari_r2d2', 1234, r'needs 5,000 unrolls of 80 steps.* 1,234 are there.*replay_min_size'),
    ('atari_r2d2', 5000, 'look at its logs'),
    ('catch_vtrace', 3, 'look at its logs'),
  ],
)
def test_a_run_that_learns_nothing_is_told_why(tmp_path, monkeypatch, name, inserted, words):
  monkeypatch.setattr(measured_run, 'START_S', -1.0)
  monkeypatch.setattr(measured_run, 'check_alive', lambda *_: None)
  run = run_directory.create(tmp_path / 'run')
  local.write_json(run.status, {'updates': 0, 'unrolls_confirmed': inserted})
  with pytest.raises(measured_run.BenchFailed, match=words):
    measured_run.wait_for_updates(registry.load(name), run, launcher=None)


@pytest.fixture(name='stalled')
def _stalled(tmp_path, monkeypatch):
  """A run whose processes live and whose status stays as it is; its launcher's `ended` tells when
  it is told to end."""
  run = run_directory.create(tmp_path / 'run')
  ended = []
  launcher = python_types.SimpleNamespace(
    pid=os.getpid(), poll=lambda: None, terminate=lambda: ended.append(True), wait=lambda *_: 0
  )
  monkeypatch.setattr(measured_run.lifecycle, 'prepare', lambda config, *_: (config, run))
  monkeypatch.setattr(measured_run.launcher_process, 'start', lambda *_: launcher)
  monkeypatch.setattr(measured_run.launcher_process, 'kill', lambda _: None)
  monkeypatch.setattr(measured_run, '_STILL_S', 0.05)
  return python_types.SimpleNamespace(run=run, ended=ended)


def _without_limits():
  config = registry.load('catch_vtrace')
  return dataclasses.replace(
    config,
    learner=dataclasses.replace(config.learner, stall_s=0.0, log_period_s=0.0),
    actor=dataclasses.replace(config.actor, step_timeout_s=0.0, reset_timeout_s=0.0),
  )


@pytest.mark.parametrize(
  'measure',
  [
    lambda: bench.bench(_without_limits(), 0.01, 0.0, measures_bounds=False),
    lambda: soak.soak(_without_limits(), 1000, lambda line: None),
  ],
)
@pytest.mark.parametrize(
  'waits_for, phase, notice, words',
  [
    ('', '', '', r'no progress for 0:0\d; run the same configuration with seed-acme train'),
    ('a sample', '', '', r'0:0\d; waiting for a sample; run the same'),
    ('x', 'saving the replay memory', '', r'0:0\d; saving the replay memory; run the same'),
    ('', '', 'step() has not returned', r'0:0\d; its last notice: step\(\) has not returned; run'),
  ],
)
def test_a_run_that_stands_still_is_ended_and_says_why(
  stalled, measure, waits_for, phase, notice, words
):
  status = {'time_s': 7.0, 'updates': 3, 'agent_steps': 640, 'waits_for': waits_for}
  local.write_json(stalled.run.status, status)
  stalled.run.set_phase(phase)
  if notice:
    stalled.run.add_notice('an earlier notice')
    stalled.run.add_notice(notice)
  with pytest.raises(measured_run.BenchFailed, match=words):
    measure()
  assert stalled.ended


def test_a_learner_that_lives_and_gets_no_data_makes_no_progress(stalled, monkeypatch):
  """It goes on writing its status."""
  monkeypatch.setattr(measured_run, '_WATCH_S', 0.01)
  # A gap between two looks counts as 1 s at most.
  monkeypatch.setattr(measured_run, '_STILL_S', 1.5)
  local.write_json(stalled.run.status, {'time_s': 0.0, 'updates': 3, 'agent_steps': 640})
  is_over = threading.Event()

  def renew():
    for time_s in itertools.count(1.0):
      if is_over.wait(0.01):
        return
      local.write_json(stalled.run.status, {'time_s': time_s, 'updates': 3, 'agent_steps': 640})

  learner = threading.Thread(target=renew)
  learner.start()
  try:
    with pytest.raises(measured_run.BenchFailed, match='no progress'):
      bench.bench(_without_limits(), 10.0, 0.0, measures_bounds=False)
  finally:
    is_over.set()
    learner.join()


@pytest.mark.parametrize('is_saved, limit', [(True, '0:01'), (False, '0:00')])
def test_saving_the_replay_memory_is_no_stall(stalled, monkeypatch, is_saved, limit):
  monkeypatch.setattr(soak.replay_size, 'replay_bytes', lambda *_: 24_000_000)  # 1.2 s
  local.write_json(stalled.run.status, {'time_s': 7.0, 'updates': 3, 'agent_steps': 640})
  config = _without_limits()
  config = dataclasses.replace(
    config, checkpoint=dataclasses.replace(config.checkpoint, replay=is_saved)
  )
  with pytest.raises(measured_run.BenchFailed, match=f'no progress for {limit}'):
    soak.soak(config, 1000, lambda line: None)
