"""The waits of the single-process program: they notice the end, and none lasts for ever."""

import dataclasses
import signal
import threading
import time

import pytest
import reverb

from seed_acme import config as config_lib
from seed_acme.configs import registry
from seed_acme.envs import catch
from seed_acme.learning import training_loop
from seed_acme.programs import single_process
from seed_acme.programs.trial import specification
from seed_acme.progress import waiting
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


def _memory_config():
  """Returns settings with a replay memory, because a local queue is never waited for."""
  return _config('catch_r2d2', overlap=1, batch_size=4, replay_min_size=16, replay_ratio=1.0)


def _let_it_sample(monkeypatch, may_sample):
  """Replaces the order for a memory by one that is independent of its contents."""
  path = 'seed_acme.programs.single_process._MemoryTurns.may_sample'
  monkeypatch.setattr(path, lambda self: may_sample)


@pytest.mark.slow
def test_it_hears_of_the_end_while_it_waits_for_a_sample_and_says_what_it_waits_for(
  run, monkeypatch
):
  """It hears of the end whatever happened to the sample. Signal handlers need this thread, too."""
  _let_it_sample(monkeypatch, True)
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
    assert single_process.run(_memory_config(), run, lambda: bool(stopped)) == training_loop.STOPPED
  finally:
    signal.signal(signal.SIGTERM, previous)
  assert 'received by the learner' in run.notices.read_text()


@pytest.mark.slow
def test_it_hears_of_a_failed_fetch_while_it_waits_for_a_sample(run, monkeypatch):
  _let_it_sample(monkeypatch, True)

  def fail(self):
    raise RuntimeError('the fetch has failed')

  monkeypatch.setattr('seed_acme.replay.dataset.Prefetcher._fetch', fail)
  give_up_s = time.monotonic() + 60  # earlier versions kept waiting
  with pytest.raises(RuntimeError, match='the fetch has failed'):
    single_process.run(_memory_config(), run, lambda: time.monotonic() > give_up_s)


@pytest.mark.slow
def test_a_memory_goes_on_though_draws_of_its_went_elsewhere(run):
  """Reverb's rate limiter has counted them, and gives the learner that many fewer."""
  config = _memory_config()
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


@pytest.mark.slow
def test_a_stopped_step_leaves_the_wait_for_room(run, monkeypatch):
  """The memory takes no more, although the order of acting and training should prevent that."""
  _let_it_sample(monkeypatch, False)
  stopped = threading.Event()
  config = _memory_config()
  program = single_process.SingleProcess(config, run, stopped.is_set)
  threading.Timer(5.0, stopped.set).start()
  while not stopped.is_set():
    program.step()
  # An item more than the limiter's bound waits for room.
  most = config.agent.replay_min_size + 2 * config.agent.batch_size + 1
  assert program.writer.each[0].num_confirmed <= most
  program.close()
