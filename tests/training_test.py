"""The training loop around made-up learners: what it counts, publishes, logs and saves, when."""

import dataclasses
import json
import types as python_types

import numpy as np
import pytest

from seed_acme import checkpoint
from seed_acme import counting
from seed_acme import learner as learner_lib
from seed_acme import run_directory
from seed_acme import timing
from seed_acme import training
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.inference import episodes
from seed_acme.inference import policy as policy_lib
from seed_acme.loggers import csv_file


class _Learner:
  """Its one weight is the number of updates."""

  def __init__(self):
    self.num_updates = 0
    self.warm_started_from = None
    self.agent_steps = []
    self.is_spoilt = False

  def step(self, sample, agent_steps):
    if self.is_spoilt:
      raise learner_lib.NonFiniteError('loss/total became nan')
    self.agent_steps.append(agent_steps)
    self.num_updates += 1
    metrics = {
      'loss/total': float(sample),
      'learner/policy_lag': float(sample),
      'learner/policy_lag_max': 2.0 * sample,
    }
    return learner_lib.Update(metrics, trained_steps=5, priorities=None, variables=self.variables())

  def variables(self):
    return types.Variables(self.num_updates, (self.num_updates,))

  def save(self):
    return {'network/w': np.array(self.num_updates)}

  def restore(self, arrays, num_updates):
    assert arrays['network/w'] == num_updates
    self.num_updates = num_updates

  def warm_start(self, arrays):
    self.warm_started_from = int(arrays['network/w'])


class _Clock:
  """Stands in for the module `time` of the training loop."""

  def __init__(self):
    self.now = 100.0

  def monotonic(self):
    return self.now

  def time(self):
    return self.now


class _Run:
  """A loop in a folder, with everything around it made up."""

  opened: list['_Run'] = []

  def __init__(self, path, clock, **changes):
    self.config = dataclasses.replace(registry.load('catch_vtrace'), **changes)
    self.folder = run_directory.create(path)
    self.learner = _Learner()
    self.server = python_types.SimpleNamespace(
      timer=timing.PhaseTimer(),
      training_episodes=episodes.EpisodeStatistics(4),
      evaluation_episodes=episodes.EpisodeStatistics(4),
      batch_sizes=timing.Latencies(),
      latencies_s=timing.Latencies(),
    )
    self.published = policy_lib.PublishedVariables()
    self.counters = counting.Counters(clock.monotonic)
    self.csv = csv_file.CsvLogger(self.folder.metrics)
    self.loop = training.TrainingLoop(
      self.config,
      self.folder,
      learner=self.learner,
      server=self.server,
      published=self.published,
      counters=self.counters,
      csv=self.csv,
      logger=self.csv,
      memory=None,
    )
    self.opened.append(self)

  def end_episodes(self, statistics, scores):
    ids = np.arange(len(scores))
    statistics.add(
      ids, np.full(len(scores), types.FIRST), np.zeros(len(scores)), np.zeros(len(scores))
    )
    return statistics.add(
      ids, np.full(len(scores), types.LAST), np.array(scores) * 10.0, np.array(scores)
    )

  def rows(self):
    return csv_file.read(self.folder.metrics)

  def status(self):
    return json.loads(self.folder.status.read_text())

  def saved_updates(self):
    return sorted(int(path.name) for path in self.folder.checkpoints.glob('[0-9]*'))


@pytest.fixture
def clock(monkeypatch):
  clock = _Clock()
  monkeypatch.setattr(training, 'time', clock)
  yield clock
  for run in _Run.opened:
    run.loop.close()
  _Run.opened.clear()


def _replace(config_part, **changes):
  return dataclasses.replace(getattr(registry.load('catch_vtrace'), config_part), **changes)


def test_an_update_is_counted_published_and_given_the_steps_so_far(tmp_path, clock):
  run = _Run(tmp_path, clock)
  run.loop.restore()
  assert run.published.latest().version == 0  # the server acts before the first update
  run.counters.add(agent_steps=30)
  run.loop.train(1.0)
  run.counters.add(agent_steps=12)
  run.loop.train(2.0)
  assert run.learner.agent_steps == [30, 42]
  counts = run.counters.snapshot()
  assert (counts.updates, counts.trained_steps) == (2, 10)
  assert run.published.latest() == types.Variables(2, (2,))


def test_weights_are_published_every_publish_period(tmp_path, clock):
  run = _Run(tmp_path, clock, inference=_replace('inference', publish_period=3))
  run.loop.restore()
  versions = []
  for _ in range(7):
    run.loop.train(0.0)
    versions.append(run.published.latest().version)
  assert versions == [0, 0, 3, 3, 3, 6, 6]


def test_rows_and_checkpoints_come_when_their_periods_have_passed(tmp_path, clock):
  run = _Run(
    tmp_path,
    clock,
    learner=_replace('learner', log_period_s=1.0),
    checkpoint=_replace('checkpoint', period_s=10.0, keep=9),
  )
  run.loop.restore()
  assert run.saved_updates() == [0]
  assert not run.folder.metrics.exists()
  for i in range(24):
    clock.now += 0.5
    run.counters.add(agent_steps=10)
    run.loop.train(float(i))
  assert run.saved_updates() == [0, 20]
  rows = run.rows()
  assert rows['agent_steps'] == [20 * i for i in range(1, 13)]
  assert rows['updates'] == [2 * i for i in range(1, 13)]
  assert rows['loss/total'] == [2 * i + 0.5 for i in range(12)]  # mean since the row before
  assert rows['learner/policy_lag_max'] == [4 * i + 2 for i in range(12)]  # a maximum stays one
  assert rows['time/steps_per_s'] == [20] * 12
  assert rows['time/updates_per_s'] == [2] * 12
  clock.now += 1.0
  run.loop.do_what_is_due()  # no sample comes: the row has no metrics of updates
  assert np.isnan(run.rows()['loss/total'][-1])


def test_the_row_reports_episodes_since_the_last_and_the_window(tmp_path, clock):
  run = _Run(tmp_path, clock)
  run.loop.restore()
  run.counters.add(agent_steps=1)
  run.end_episodes(run.server.training_episodes, [1.0, 3.0])
  run.end_episodes(run.server.evaluation_episodes, [5.0])
  run.loop.log('running')
  run.counters.add(agent_steps=1)
  run.end_episodes(run.server.training_episodes, [8.0])
  run.loop.log('running')
  rows = run.rows()
  assert rows['episode/return'] == [2, 8]
  assert rows['episode/training_return'] == [20, 80]
  assert rows['episode/length'] == [1, 1]
  assert rows['episode/return_last_100'] == [2, 4]
  assert rows['evaluation/return'] == [5, 5]
  status = run.status()
  assert status['episode_return'] == status['episode_return_last_100'] == 4
  assert status['evaluation_return'] == 5


def test_status_before_anything_happened(tmp_path, clock):
  run = _Run(tmp_path, clock, total_steps=77)
  run.loop.restore()
  run.loop.log('running')
  status = run.status()
  assert status.keys() == {
    'status',
    'time_s',
    'agent_steps',
    'frames',
    'updates',
    'episodes',
    'trained_steps',
    'wall_s',
    'total_steps',
    'steps_per_s',
    'episode_return',
    'episode_return_last_100',
    'evaluation_return',
    'policy_lag_mean',
    'policy_lag_p95',
    'policy_lag_max',
    'unrolls_inserted',
    'resumptions',
    'actors',
    'seconds',
    'inference_batch_size',
    'inference_latency_s',
  }
  assert (status['status'], status['total_steps'], status['updates']) == ('running', 77, 0)
  for name in (
    'episode_return',
    'evaluation_return',
    'policy_lag_mean',
    'policy_lag_p95',
    'policy_lag_max',
  ):
    assert status[name] is None
  assert {'learner', 'inference'} <= status['seconds'].keys()


def test_policy_lag_of_the_status_covers_the_whole_run(tmp_path, clock):
  run = _Run(tmp_path, clock)
  run.loop.restore()
  for lag in (1.0, 5.0, 3.0):
    run.loop.train(lag)
    run.loop.log('running')
  assert run.status()['policy_lag_mean'] == 3
  assert run.status()['policy_lag_max'] == 10


def test_the_budget_of_steps_or_of_seconds(tmp_path, clock):
  run = _Run(tmp_path / 'a', clock, total_steps=100)
  clock.now += 1e6
  run.counters.add(agent_steps=99)
  assert not run.loop.is_finished()
  run.counters.add(agent_steps=1)
  assert run.loop.is_finished()
  run = _Run(tmp_path / 'b', clock, max_wall_s=10.0)
  clock.now += 9
  assert not run.loop.is_finished()
  clock.now += 1
  assert run.loop.is_finished()


def test_finish_saves_and_writes_the_last_row(tmp_path, clock):
  run = _Run(tmp_path, clock)
  run.loop.restore()
  run.counters.add(agent_steps=12)
  run.loop.train(1.0)
  run.loop.finish(training.STOPPED)
  assert run.saved_updates() == [0, 1]
  assert run.rows()['agent_steps'] == [12]
  assert run.status()['status'] == 'stopped'


def test_a_spoilt_update_leaves_the_last_good_checkpoint_and_publishes_nothing(tmp_path, clock):
  run = _Run(tmp_path, clock, checkpoint=_replace('checkpoint', period_s=0.0, keep=2))
  run.loop.restore()
  run.loop.train(1.0)
  run.learner.is_spoilt = True
  with pytest.raises(learner_lib.NonFiniteError):
    run.loop.train(1.0)
  assert run.saved_updates() == [0, 1]
  assert run.published.latest().version == 1
  assert run.counters.snapshot().updates == 1


def _trained(path, clock, updates, **changes):
  run = _Run(path, clock, learner=_replace('learner', log_period_s=0.0), **changes)
  run.loop.restore()
  for _ in range(updates):
    clock.now += 1
    run.counters.add(agent_steps=10, frames=40, episodes=2)
    run.loop.train(1.0)
  return run


def test_a_resumed_run_goes_on_from_the_checkpoint_and_cuts_later_rows(tmp_path, clock):
  killed = _trained(tmp_path, clock, 3)
  killed.loop.save()
  for _ in range(2):  # lost
    clock.now += 1
    killed.counters.add(agent_steps=10)
    killed.loop.train(1.0)
  assert killed.rows()['agent_steps'] == [10, 20, 30, 40, 50]
  clock.now += 1000
  run = _Run(tmp_path, clock)
  run.loop.restore()
  assert run.counters.snapshot() == counting.Counts(
    agent_steps=30, frames=120, updates=3, episodes=6, trained_steps=15, wall_s=3.0
  )
  assert run.learner.num_updates == run.published.latest().version == 3
  assert run.rows()['agent_steps'] == [10, 20, 30]
  assert run.loop.resumptions == 1
  run.counters.add(agent_steps=5)
  run.loop.train(1.0)
  run.loop.finish(training.FINISHED)
  assert run.rows()['agent_steps'] == [10, 20, 30, 35]
  assert run.status()['resumptions'] == 1


def test_the_return_of_the_last_100_goes_on_over_a_resumption(tmp_path, clock):
  killed = _Run(tmp_path, clock)
  killed.loop.restore()
  for _ in range(30):  # of these 120 the first 20 are out of the window
    killed.end_episodes(killed.server.training_episodes, [1.0, 2.0, 3.0, 4.0])
  killed.end_episodes(killed.server.evaluation_episodes, [6.0])
  killed.loop.save()
  run = _Run(tmp_path, clock)
  run.loop.restore()
  run.loop.log('running')
  assert run.status()['episode_return_last_100'] == 2.5
  assert run.status()['evaluation_return'] == 6
  assert 'episode/return' not in run.rows()  # none ended since
  run.end_episodes(run.server.training_episodes, [7.0] * 4)
  run.loop.log('running')
  assert run.status()['episode_return_last_100'] == (24 * 10 + 28) / 100


def test_every_resumption_is_counted_though_no_update_was_made(tmp_path, clock):
  """So that environments and run ids differ from those of the attempt before."""
  _trained(tmp_path, clock, 3).loop.save()
  for expected in (1, 2, 3):
    run = _Run(tmp_path, clock)
    run.loop.restore()
    assert run.loop.resumptions == expected


class _Memory:
  """Of `size` unrolls; its checkpoint is `content`, or fails half-way."""

  def __init__(self, run, size=0, content=b'', fails=False):
    self._folder = run.folder.replay_in_progress / 'now'
    self._size = size
    self._content = content
    self._fails = fails

  def counts(self):
    return self._size, 0

  def update_priorities(self, keys, priorities):
    raise NotImplementedError

  def checkpoint(self):
    self._folder.mkdir(parents=True)
    (self._folder / 'chunks.tfrecord').write_bytes(self._content)
    if self._fails:
      raise RuntimeError('No space left on device')
    return self._folder


def _saved_memory(run):
  """{updates: content} of the checkpoints that have one."""
  folders = run.folder.checkpoints.glob('[0-9]*/replay')
  return {int(folder.parent.name): (folder / 'chunks.tfrecord').read_bytes() for folder in folders}


def _with_memory(path, clock, **memory):
  run = _Run(path, clock)
  run.loop._memory = _Memory(run, **memory)
  run.loop.restore()
  return run


def test_a_memory_that_was_not_restored_is_kept_until_the_new_one_is_learnt_from(tmp_path, clock):
  first = _with_memory(tmp_path, clock, content=b'good')
  first.loop.train(1.0)
  first.loop.finish(training.STOPPED)
  assert _saved_memory(first) == {1: b'good'}
  run = _with_memory(tmp_path, clock, size=0, content=b'begun anew')
  assert run.loop.resumptions == 1
  run.loop.save()
  run.loop.finish(training.STOPPED)
  assert _saved_memory(run) == {1: b'good'}
  run = _with_memory(tmp_path, clock, size=0, content=b'begun anew')
  assert run.loop.resumptions == 2
  run.loop.train(1.0)
  run.loop.save()
  assert _saved_memory(run) == {2: b'begun anew'}


def test_a_memory_that_was_restored_is_saved_with_what_came_in_since(tmp_path, clock):
  first = _with_memory(tmp_path, clock, content=b'good')
  first.loop.finish(training.STOPPED)
  run = _with_memory(tmp_path, clock, size=5, content=b'good and more')
  assert _saved_memory(run) == {0: b'good'}
  run.loop.finish(training.STOPPED)
  assert _saved_memory(run) == {0: b'good and more'}


def test_a_disk_that_is_too_full_for_the_memory_keeps_the_last_one_and_no_leftovers(
  tmp_path, clock
):
  run = _with_memory(tmp_path, clock, content=b'good')
  run.loop._memory = _Memory(run, content=b'half', fails=True)
  run.loop.train(1.0)
  run.loop.save()
  assert run.saved_updates() == [0, 1]
  assert _saved_memory(run) == {0: b'good'}
  assert not list(run.folder.replay_in_progress.iterdir())
  assert 'No space left' in run.folder.notices.read_text()


def test_a_run_killed_before_its_first_checkpoint_starts_anew(tmp_path, clock):
  killed = _trained(tmp_path, clock, 3)
  for path in killed.folder.checkpoints.iterdir():
    path.rename(path.with_name(f'{path.name}.partial'))
  run = _Run(tmp_path, clock)
  run.loop.restore()
  assert run.counters.snapshot().agent_steps == 0
  assert run.rows()['agent_steps'] == []
  assert run.saved_updates() == [0]


def test_a_warm_start_takes_weights_and_nothing_else(tmp_path, clock):
  _trained(tmp_path / 'donor', clock, 4).loop.save()
  run = _Run(tmp_path / 'run', clock, initial_checkpoint=str(tmp_path / 'donor'))
  run.loop.restore()
  assert run.learner.warm_started_from == 4
  assert run.learner.num_updates == run.loop.resumptions == 0
  assert run.counters.snapshot().agent_steps == 0
  resumed = _Run(tmp_path / 'run', clock, initial_checkpoint=str(tmp_path / 'donor'))
  resumed.loop.restore()
  assert resumed.learner.warm_started_from is None  # its own checkpoint counts


def test_a_corrupt_checkpoint_stops_before_anything_is_written(tmp_path, clock):
  killed = _trained(tmp_path, clock, 3)
  killed.loop.save()
  newest = checkpoint.newest(killed.folder.checkpoints)
  (newest / 'arrays.npz').write_bytes(b'x')
  before = killed.folder.metrics.read_bytes()
  with pytest.raises(types.UserError, match=str(newest)):
    _Run(tmp_path, clock).loop.restore()
  assert killed.folder.metrics.read_bytes() == before
  assert killed.saved_updates() == [0, 3]


def test_the_writer_is_reported(tmp_path, clock):
  run = _Run(tmp_path, clock)
  timer = timing.PhaseTimer()
  with timer.phase('insert'):
    pass
  run.loop.watch_writer(timer, lambda: 24)
  run.loop.log('running')
  assert 'insert' in run.status()['seconds']['replay_writer']
  assert run.status()['unrolls_inserted'] == 24
