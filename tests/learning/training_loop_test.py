"""The training loop around stand-in learners: what it counts, publishes and logs, and when."""

import numpy as np

from seed_acme import types
from seed_acme.learning import training_loop
from seed_acme.progress import timing
from tests.learning import loop_run


def test_an_update_is_counted_published_and_given_the_steps_so_far(tmp_path, clock):
  run = loop_run.Run(tmp_path, clock)
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
  run = loop_run.Run(tmp_path, clock, inference=loop_run.replace('inference', publish_period=3))
  run.loop.restore()
  versions = []
  for _ in range(7):
    run.loop.train(0.0)
    versions.append(run.published.latest().version)
  assert versions == [0, 0, 3, 3, 3, 6, 6]


def test_rows_and_checkpoints_come_when_their_periods_have_passed(tmp_path, clock):
  run = loop_run.Run(
    tmp_path,
    clock,
    learner=loop_run.replace('learner', log_period_s=1.0),
    checkpoint=loop_run.replace('checkpoint', period_s=10.0, keep=9),
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
  assert rows['loss/total'] == [2 * i + 0.5 for i in range(12)]  # mean since the previous row
  # a maximum stays a maximum
  assert rows['learner/policy_lag_max'] == [4 * i + 2 for i in range(12)]
  assert rows['time/steps_per_s'] == [20] * 12
  assert rows['time/updates_per_s'] == [2] * 12
  clock.now += 1.0
  run.loop.do_what_is_due()  # no sample arrives, so the row has no update metrics
  assert np.isnan(run.rows()['loss/total'][-1])


def test_a_row_has_what_the_agent_makes_of_its_means(tmp_path, clock):
  run = loop_run.Run(
    tmp_path, clock, learner=loop_run.replace('learner', log_period_s=2.0), total_steps=1000
  )
  run.loop.restore()
  for total in (1.0, 2.0, 0.0, 0.0):
    clock.now += 1
    run.counters.add(agent_steps=10)
    run.loop.train(total)
  clock.now += 2
  run.counters.add(agent_steps=10)
  run.loop.do_what_is_due()  # a row without an update
  np.testing.assert_array_equal(run.rows()['toy/half'], [0.75, np.nan, np.nan])


def test_a_metric_that_stays_low_is_told_once_in_the_run_also_if_it_is_resumed(tmp_path, clock):
  changes = {'learner': loop_run.replace('learner', log_period_s=0.0), 'total_steps': 1600}

  def train(updates):
    run = loop_run.Run(tmp_path, clock, **changes)
    run.loop.restore()
    for _ in range(updates):
      clock.now += 1
      run.counters.add(agent_steps=20)
      run.loop.train(1.0)
    run.loop.finish(training_loop.STOPPED)
    return run.folder.notices.read_text() if run.folder.notices.exists() else ''

  assert not train(2)
  notice = 'no half: toy/half is 0.5, and was below 1 for the last 80 agent steps. Double it.\n'
  assert train(3) == notice  # 40 + 40 steps are a twentieth
  assert train(6) == notice


def test_the_row_reports_episodes_since_the_last_and_the_window(tmp_path, clock):
  run = loop_run.Run(tmp_path, clock)
  run.loop.restore()
  run.counters.add(agent_steps=1)
  run.end_episodes(run.inference.training_episodes, [1.0, 3.0])
  run.end_episodes(run.inference.evaluation_episodes, [5.0])
  run.loop.log('running')
  run.counters.add(agent_steps=1)
  run.end_episodes(run.inference.training_episodes, [8.0])
  run.loop.log('running')
  rows = run.rows()
  assert rows['episode/return'] == [2, 8]
  assert rows['episode/training_return'] == [20, 80]
  assert rows['episode/length'] == [1, 1]
  assert rows['episode/return_last_100'] == [2, 4]
  assert rows['evaluation/return'] == [5, 5]
  status = run.status()
  assert status['episode_return_last_100'] == 4
  assert status['evaluation_return'] == 5


def test_status_before_anything_happened(tmp_path, clock):
  run = loop_run.Run(tmp_path, clock, total_steps=77)
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
    'max_wall_s',
    'steps_per_s',
    'episode_return_last_100',
    'evaluation_return',
    'best_checkpoint',
    'policy_lag_count',
    'policy_lag_mean',
    'policy_lag_p95',
    'policy_lag_max',
    'unrolls_confirmed',
    'unrolls_received',
    'unrolls_learnt',
    'resumptions',
    'actors',
    'waits_for',
    'seconds',
    'inference_batch_size',
    'inference_latency_s',
  }
  assert (status['status'], status['total_steps'], status['updates']) == ('running', 77, 0)
  for name in (
    'episode_return_last_100',
    'evaluation_return',
    'policy_lag_mean',
    'policy_lag_p95',
    'policy_lag_max',
  ):
    assert status[name] is None
  assert {'learner', 'inference'} <= status['seconds'].keys()


def test_the_status_has_the_rate_of_the_last_half_minute(tmp_path, clock):
  """Unrolls of environments that are stepped together end together, here every 5 seconds."""
  loop_run.trained(tmp_path, clock, updates=2).loop.finish(training_loop.STOPPED)
  run = loop_run.Run(tmp_path, clock, learner=loop_run.replace('learner', log_period_s=5.0))
  run.loop.restore()
  rates = []
  for second in range(1, 91):
    clock.now += 1
    if second % 5 == 0 and second <= 45:
      run.counters.add(agent_steps=1000)
      run.loop.train(1.0)
    run.loop.show_life()
    rates.append(run.status()['steps_per_s'])
  assert all(160 < rate <= 200 for rate in rates[34:45])
  assert rates[-1] == 0


def test_the_folder_says_what_a_run_does_before_it_learns(tmp_path, clock):
  run = loop_run.Run(tmp_path, clock)
  connected = [False, False]
  run.loop.watch_actors(lambda: [{'is_connected': is_} for is_ in connected])
  seen = []

  def note(*_):
    seen.append(run.folder.phase.read_text() if run.folder.phase.exists() else '')

  run.loop.restore()
  run.loop.report_wait()
  note()
  for index in range(2):
    connected[index] = True
    clock.now += 1.0
    run.loop.do_what_is_due()
    note()
  step = run.learner.step
  run.learner.step = lambda *arguments: (note(), step(*arguments))[1]
  run.loop.train(1.0)
  note()
  run.loop.train(1.0)
  run.learner.save = lambda: note() or {}
  run.loop.finish(training_loop.FINISHED)
  note()
  assert seen == [
    'waiting for actors (0 of 2 connected)',
    'waiting for actors (1 of 2 connected)',
    'collecting the first batch',
    'tracing the first update',
    '',
    '',
    'saving the last checkpoint',
    'ending the processes',
  ]


def test_policy_lag_of_the_status_covers_the_whole_run(tmp_path, clock):
  run = loop_run.Run(tmp_path, clock)
  run.loop.restore()
  for lag in (1.0, 5.0, 3.0):
    run.loop.train(lag)
    run.loop.log('running')
  assert run.status()['policy_lag_mean'] == run.status()['policy_lag_count'] == 3
  assert run.status()['policy_lag_max'] == 10


def test_the_budget_of_steps_or_of_seconds(tmp_path, clock):
  run = loop_run.Run(tmp_path / 'a', clock, total_steps=100)
  clock.now += 1e6
  run.counters.add(agent_steps=99)
  assert not run.loop.is_finished()
  run.counters.add(agent_steps=1)
  assert run.loop.is_finished()
  run = loop_run.Run(tmp_path / 'b', clock, max_wall_s=10.0)
  clock.now += 9
  assert not run.loop.is_finished()
  clock.now += 1
  assert run.loop.is_finished()


def test_finish_saves_and_writes_the_last_row(tmp_path, clock):
  run = loop_run.Run(tmp_path, clock)
  run.loop.restore()
  run.counters.add(agent_steps=12)
  run.loop.train(1.0)
  run.loop.finish(training_loop.STOPPED)
  assert run.saved_updates() == [0, 1]
  assert run.rows()['agent_steps'] == [12]
  assert run.status()['status'] == 'stopped'


def test_what_the_end_of_a_run_shows_never_goes_back_to_what_was_before(
  tmp_path, clock, monkeypatch
):
  """A run is stopped before its first update, while its actors disconnect."""
  shown = []
  run = loop_run.Run(tmp_path, clock)
  run.loop.watch_actors(lambda: [{'is_connected': False}])
  run.loop.restore()
  monkeypatch.setattr(type(run.folder), 'set_phase', lambda _, text: shown.append(text))
  run.loop.finish(training_loop.STOPPED)
  assert shown == ['saving the last checkpoint', 'ending the processes']


def test_the_writer_is_reported(tmp_path, clock):
  run = loop_run.Run(tmp_path, clock)
  timer = timing.PhaseTimer()
  with timer.phase('insert'):
    pass
  run.loop.watch_replay(timer.snapshot, _Account('12 unrolls are lost'))
  run.loop.log('running')
  assert 'insert' in run.status()['seconds']['replay_writer']


class _Account:
  def __init__(self, text):
    self.text = text

  def confirmed(self):
    return 300

  def received(self):
    return 200

  def missing(self):
    return self.text


def test_unrolls_are_counted_at_every_station_and_lost_ones_told_of_once(tmp_path, clock):
  run = loop_run.Run(tmp_path, clock)
  account = _Account('')
  run.loop.watch_replay(timing.PhaseTimer().snapshot, account)
  run.loop.restore()
  for number in range(3):
    run.loop.train(float(number))
  run.loop.log('running')
  status = run.status()
  assert (status['unrolls_confirmed'], status['unrolls_received']) == (300, 200)
  assert status['unrolls_learnt'] == 3 * run.config.agent.batch_size
  assert not run.folder.notices.exists()
  account.text = '12 unrolls are lost'
  run.loop.log('running')
  run.loop.log('running')
  assert run.folder.notices.read_text() == '12 unrolls are lost\n'
