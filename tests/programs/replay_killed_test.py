"""A learner with a replay memory is killed: the resumed run has the memory again."""

import signal

import numpy as np
import pytest

from seed_acme.programs.tools.inspection import distribution
from seed_acme.replay import saved_items
from seed_acme.replay import tables
from seed_acme.storage import checkpoint

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(600)]
_MIN_UPDATES = 60
_MIN_DRAWN = 5
_R2D2 = (
  '--config=catch_r2d2',
  '--config.replay.unrolls_per_item=1',
  '--config.agent.replay_min_size=30',
  '--config.agent.unroll_length=4',
  '--config.agent.overlap=1',
  '--config.network.core_size=16',
  '--config.agent.replay_capacity=100000',
  '--config.checkpoint.period_s=2',  # time to read a memory before it is replaced
)


def _saved_items(run):
  """Returns the items of the learner's table in the newest checkpoint."""
  return saved_items.newest(run.run_dir.checkpoints).tables[tables.UNROLLS]


def _items_while_it_runs(run):
  """Returns the same for a live run; None before its first checkpoint, or while it is replaced."""
  try:
    return _saved_items(run)
  except (saved_items.NothingSaved, OSError, KeyError):
    return None


def _by_key(items):
  """Returns `{key: (priority, times sampled)}`."""
  return dict(zip(items.keys.tolist(), zip(items.priorities, items.times_sampled)))


def _drawn_since(earlier, items):
  """Returns keys of `earlier` that were sampled between the two."""
  if items is None:
    return []
  now = _by_key(items)
  return [key for key, (_, times) in _by_key(earlier).items() if now[key][1] > times]


def _saved_updates(run):
  """Returns the update of a live run's newest checkpoint; 0 while that is being replaced."""
  try:
    return int(checkpoint.newest(run.run_dir.checkpoints).name)
  except (OSError, AttributeError):
    return 0


def _inspect(runs, folder, one_json):
  looked = runs.start('inspect', '--run_dir=run', '--table=unrolls', '--json', folder=folder)
  assert looked.wait() == 0, looked.stderr
  return one_json(looked.stdout)['tables']['unrolls']


@pytest.fixture(scope='module')
def drill(runs, until, one_json):
  """Kills a run with a saved memory, resumes it, inspects and stops it."""
  folder = runs.folder()
  command = (*_R2D2, runs.endless)
  killed = runs.train(*command, folder=folder)
  earlier = until(lambda: _items_while_it_runs(killed) or killed.check_runs(), 'a saved memory')
  enough = _saved_updates(killed) + _MIN_UPDATES
  until(lambda: _saved_updates(killed) >= enough or killed.check_runs(), 'a later one')
  until(
    lambda: (
      len(_drawn_since(earlier, _items_while_it_runs(killed))) >= _MIN_DRAWN or killed.check_runs()
    ),
    'draws of what was in it',
  )
  killed.wait_for_node('learner').send_signal(signal.SIGKILL)
  code = killed.wait()
  saved, saved_updates = _saved_items(killed), _saved_updates(killed)
  # No checkpoint is written before the end: the memory in that of the kill does not change.
  resumed = runs.train(*command, '--config.checkpoint.period_s=1e9', folder=folder)
  until(lambda: resumed.status().get('resumptions') == 1 or resumed.check_runs(), 'a resumption')
  resumed.wait_for_updates(5, since=saved_updates)
  assert not resumed.run_dir.notices.exists()  # it would say that the memory starts empty
  # Without new unrolls nothing is sampled, so most items stay as they were restored.
  [actor] = resumed.nodes('actor')
  actor.suspend()
  looked = _inspect(runs, folder, one_json)
  actor.resume()
  resumed.process.send_signal(signal.SIGTERM)
  assert resumed.wait() == 143
  assert resumed.nodes() == [] and resumed.failure() is None
  assert resumed.summary()['status'] == 'stopped'
  assert resumed.summary()['updates'] == _saved_updates(resumed)
  return {
    'code': code,
    'earlier': earlier,
    'saved': saved,
    'saved_updates': saved_updates,
    'looked': looked,
    'continued': _saved_items(resumed),
  }


def test_every_unroll_is_restored_with_its_priority(drill):
  assert drill['code'] == 1
  saved, continued = _by_key(drill['saved']), _by_key(drill['continued'])
  assert saved.keys() <= continued.keys()
  assert all(continued[key][1] >= times_sampled for key, (_, times_sampled) in saved.items())
  # Items that were sampled since may have new priorities.
  same = [key for key, (_, times_sampled) in saved.items() if continued[key][1] == times_sampled]
  assert len(same) > 0.1 * len(saved)
  assert all(continued[key][0] == saved[key][0] for key in same)


def test_inspect_shows_the_priorities_that_went_on(drill):
  shown, saved = drill['looked']['items'], drill['saved']
  assert shown['checkpoint_updates'] == drill['saved_updates']
  assert shown['size'] == len(saved.keys)
  assert shown['priority'] == distribution.record(saved.priorities)
  assert shown['times_sampled'] == distribution.record(saved.times_sampled)
  assert shown['priority']['min'] < shown['priority']['max']


def test_the_saved_priorities_are_those_that_were_learnt(drill):
  saved, earlier = _by_key(drill['saved']), _by_key(drill['earlier'])
  assert len({priority for priority, _ in saved.values()}) > 0.9 * len(saved)
  sampled = _drawn_since(drill['earlier'], drill['saved'])
  assert len(sampled) >= _MIN_DRAWN
  changed = [saved[key][0] != earlier[key][0] for key in sampled]
  assert np.mean(changed) > 0.5  # the last sampled items may not be learnt from yet


def test_the_memory_grows_on_from_what_was_saved(drill):
  saved, continued, looked = drill['saved'], drill['continued'], drill['looked']
  assert 30 <= len(saved.keys) < looked['size'] <= len(continued.keys)
  assert looked['inserts'] == looked['size']  # counted over all starts of the run
  assert continued.times_sampled.sum() >= looked['samples'] >= saved.times_sampled.sum()
