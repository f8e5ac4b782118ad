"""The waits of the single-process program: they notice the end, and none lasts for ever."""

import dataclasses
import signal
import threading
import time

import numpy as np
import pytest
import reverb

from seed_acme import config as config_lib
from seed_acme.configs import registry
from seed_acme.envs import catch
from seed_acme.files import local
from seed_acme.learning import training_loop
from seed_acme.programs import single_process
from seed_acme.programs.trial import specification
from seed_acme.progress import waiting
from seed_acme.replay import local_items
from seed_acme.replay import table_counts
from seed_acme.replay import tables
from seed_acme.storage import run_directory

pytestmark = pytest.mark.timeout(300)


def _config(name, **agent):
  config = registry.load(name)
  return dataclasses.replace(
    config,
    num_actors=2,
    environments_per_actor=4,
    num_evaluation_environments=0,
    total_steps=10**6,
    network=dataclasses.replace(config.network, mlp_sizes=(8,)),
    agent=dataclasses.replace(config.agent, unroll_length=5, **agent),
    learner=config_lib.LearnerConfig(log_period_s=0.0),
  )


@pytest.fixture(name='run')
def _run(tmp_path):
  """A run folder that has the specification, for which a process would be started."""
  run = run_directory.create(tmp_path)
  specification.save(run, catch.Catch(1, seed=0).spec)
  return run


class _Turns:
  """The order for a queue, independent of its contents."""

  def __init__(self, may_sample):
    self._may_sample = may_sample

  def may_insert(self):
    return True

  def inserted(self):
    pass

  def may_sample(self):
    return self._may_sample


def test_it_hears_of_the_end_while_it_waits_for_a_sample_and_says_what_it_waits_for(
  run, monkeypatch
):
  """It hears of the end whatever happened to the sample. Signal handlers need this thread, too."""
  config = dataclasses.replace(
    _config('catch_vtrace', batch_size=4),
    replay=config_lib.ReplayConfig(queue_size=8, unrolls_per_item=2),
  )
  monkeypatch.setattr(single_process, '_QueueTurns', lambda shard: _Turns(may_sample=True))
  monkeypatch.setattr(waiting, 'SILENT_S', 0.0)
  monkeypatch.setattr(waiting, '_LOOK_S', 0.05)
  stopped = []
  previous = signal.signal(signal.SIGTERM, lambda *_: stopped.append(None))

  def terminate():
    while not run.notices.exists() or 'a sample of 4 unrolls' not in run.notices.read_text():
      time.sleep(0.01)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)

  threading.Thread(target=terminate, daemon=True).start()
  try:
    assert single_process.run(config, run, lambda: bool(stopped)) == training_loop.STOPPED
  finally:
    signal.signal(signal.SIGTERM, previous)
  assert 'received by the learner' in run.notices.read_text()


def test_a_queue_that_strangers_have_filled_is_learnt_from_to_the_end(run):
  config = dataclasses.replace(
    _config('catch_vtrace', batch_size=4),
    total_steps=300,
    replay=config_lib.ReplayConfig(queue_size=4, unrolls_per_item=2),
  )
  inserted = []

  def insert():
    """Polled; once there is a queue, fills it with tickets that belong to no item."""
    if not inserted and run.addresses.exists():
      inserted.append(local.read_json(run.addresses)['replay'])
      with reverb.Client(inserted[0]).trajectory_writer(1) as stranger:
        stranger.append({local_items.TICKET: np.array(2**62, np.int64)})
        ticket = stranger.history[local_items.TICKET][-1]
        for _ in range(2):
          stranger.create_item(tables.UNROLLS, 1.0, {local_items.TICKET: ticket})
        stranger.flush(timeout_ms=5000)
    return False

  assert single_process.run(config, run, insert) == training_loop.FINISHED
  assert inserted and 'stands for no item' in run.notices.read_text()


def test_it_hears_of_a_failed_fetch_while_it_waits_for_room(run, monkeypatch):
  config = dataclasses.replace(
    _config('catch_vtrace', batch_size=4),
    replay=config_lib.ReplayConfig(queue_size=8, unrolls_per_item=2),
  )
  monkeypatch.setattr(single_process, '_QueueTurns', lambda shard: _Turns(may_sample=False))

  def fail(self, ticket):
    raise RuntimeError('the fetch has failed')

  monkeypatch.setattr(local_items.LocalItems, 'take', fail)
  give_up_s = time.monotonic() + 60  # earlier versions kept waiting
  with pytest.raises(RuntimeError, match='the fetch has failed'):
    single_process.run(config, run, lambda: time.monotonic() > give_up_s)


def test_a_memory_goes_on_though_draws_of_its_went_elsewhere(run):
  """Reverb's rate limiter has counted them, and gives the learner that many fewer."""
  config = _config('catch_r2d2', overlap=1, batch_size=4, replay_min_size=16, replay_ratio=1.0)
  program = single_process.SingleProcess(config, run)
  stolen = []
  thief = threading.Thread(
    daemon=True,
    target=lambda: stolen.extend(
      reverb.Client(program.replay_addresses[0]).sample(tables.UNROLLS, 20, emit_timesteps=False)
    ),
  )
  thief.start()
  while program.counters.snapshot().updates < 10 or thief.is_alive():
    program.step()
  assert len(stolen) == 20  # more than the two batches by which the limiter lets samples run ahead
  counts = table_counts.read(reverb.Client(program.replay_addresses[0]), timeout_s=60)
  surplus = counts.inserted - config.agent.replay_min_size
  assert abs(counts.sampled - surplus) <= 3 * config.agent.batch_size
  program.close()


def test_a_stopped_step_leaves_the_wait_for_room(run, monkeypatch):
  """The queue is full, although the order of acting and training should prevent that."""
  config = dataclasses.replace(
    _config('catch_vtrace', batch_size=4),
    replay=config_lib.ReplayConfig(queue_size=8, unrolls_per_item=2),
  )
  monkeypatch.setattr(single_process, '_QueueTurns', lambda shard: _Turns(may_sample=False))
  stopped = threading.Event()
  program = single_process.SingleProcess(config, run, stopped.is_set)
  threading.Timer(3.0, stopped.set).start()
  while not stopped.is_set():
    program.step()
  # A sample fetched because there was no room is removed from the queue once.
  most = config.replay.queue_size + config.agent.batch_size + 2
  assert program.writer.each[0].num_confirmed <= most
  program.close()
