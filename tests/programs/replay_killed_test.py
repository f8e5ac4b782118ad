"""A learner with a replay memory is killed: the memory is there again when the run goes on."""
import signal
from typing import NamedTuple

import numpy as np
import pytest
from reverb.cc import schema_pb2
import tensorflow as tf

from seed_acme import checkpoint
from seed_acme import types
from seed_acme.replay import tables

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]
_MIN_UPDATES = 60
_R2D2 = (
    '--config=catch_r2d2', '--config.replay.unrolls_per_item=1',
    '--config.agent.replay_min_size=30', '--config.agent.replay_capacity=100000')


class _Item(NamedTuple):
  """What a checkpoint holds of one unroll beside its data."""
  priority: float
  times_sampled: int


def _saved_meta(run):
  return checkpoint.load(checkpoint.newest(run.run_dir.checkpoints)).meta


def _saved_items(run):
  """`{key: _Item}` of the learner's table in the newest checkpoint; TypeError without one."""
  folder = checkpoint.replay_folder(checkpoint.newest(run.run_dir.checkpoints))
  records = tf.data.TFRecordDataset(str(folder / 'items.tfrecord'), compression_type='ZLIB')
  items = [schema_pb2.PrioritizedItem.FromString(record)
           for record in records.as_numpy_iterator()]
  return {item.key: _Item(item.priority, item.times_sampled) for item in items
          if item.table == tables.UNROLLS}


def _items_while_it_runs(run):
  """The same of a live run; None before its first, or where the next one takes it away."""
  try:
    return _saved_items(run)
  except (tf.errors.OpError, OSError, TypeError, types.UserError):
    return None


def _saved_updates(run):
  """Of the newest checkpoint of a live run; 0 while it is being replaced."""
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
  """Killed with a memory in its checkpoint, resumed by the same command, looked at, stopped."""
  folder = runs.folder()
  command = (*_R2D2, runs.endless)
  killed = runs.train(*command, folder=folder)
  earlier = until(lambda: _items_while_it_runs(killed) or killed.check_runs(), 'a saved memory')
  until(lambda: _saved_updates(killed) >= _MIN_UPDATES or killed.check_runs(), 'a later one')
  killed.wait_for_node('learner').send_signal(signal.SIGKILL)
  code = killed.wait()
  saved = _saved_items(killed)
  # The resumed run saves once before it trains, and then no more.
  resumed = runs.train(*command, '--config.checkpoint.period_s=1e9', folder=folder)
  until(lambda: _saved_meta(resumed)['resumptions'] == 1 or resumed.check_runs(), 'a resumption')
  restored = _saved_items(resumed)
  resumed.wait_for_updates(5, since=_saved_meta(resumed)['counts']['updates'])
  looked = _inspect(runs, folder, one_json)
  resumed.process.send_signal(signal.SIGTERM)
  assert resumed.wait() == 143
  return {'code': code, 'earlier': earlier, 'saved': saved, 'restored': restored,
          'looked': looked, 'resumed': resumed}


def test_every_unroll_is_restored_with_its_priority(drill):
  assert drill['code'] == 1
  assert drill['restored'] == drill['saved']
  assert not drill['resumed'].run_dir.notices.exists()  # which would say that it starts empty


def test_the_saved_priorities_are_those_that_were_learnt(drill):
  saved, earlier = drill['saved'], drill['earlier']
  assert len({item.priority for item in saved.values()}) > 0.9 * len(saved)
  sampled = [key for key, item in earlier.items() if saved[key].times_sampled > item.times_sampled]
  assert len(sampled) >= 5  # how many, depends on how fast the machine is
  changed = [saved[key].priority != earlier[key].priority for key in sampled]
  assert np.mean(changed) > 0.5  # what was drawn last may not be learnt from yet


def test_the_memory_grows_on_from_what_was_saved(drill):
  saved, looked = drill['saved'], drill['looked']
  assert len(saved) >= 30
  assert looked['size'] > len(saved)
  assert looked['inserts'] == looked['size']  # counted over both lives of the run
  assert looked['samples'] >= sum(item.times_sampled for item in saved.values())
