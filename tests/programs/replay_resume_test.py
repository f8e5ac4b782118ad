"""A replay memory survives its run, or the user is told why not."""

import dataclasses
import shutil

import pytest
import reverb
import tensorflow as tf

from seed_acme import config_validation
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.learning import training_loop
from seed_acme.programs import single_process
from seed_acme.replay import memory as memory_lib
from seed_acme.replay import tables
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory

pytestmark = [
  pytest.mark.slow,
  pytest.mark.timeout(240),
  pytest.mark.filterwarnings('ignore:Even though the `tf.config'),  # Reverb's stays compiled
]


def _config(total_steps, ratio=1.0, **changes):
  config = registry.load('catch_r2d2')
  agent = dataclasses.replace(
    config.agent,
    unroll_length=4,
    overlap=2,
    batch_size=4,
    replay_min_size=10,
    replay_capacity=200,
    replay_ratio=ratio,
    **changes,
  )
  return dataclasses.replace(
    config,
    total_steps=total_steps,
    num_actors=1,
    environments_per_actor=4,
    network=dataclasses.replace(config.network, mlp_sizes=(8,), core_size=8, head_sizes=()),
    # Saved only at the beginning and the end, however slow the machine is.
    agent=agent,
    checkpoint=dataclasses.replace(config.checkpoint, period_s=1e6),
  )


@pytest.fixture(scope='module', autouse=True)
def _eagerly():
  """Traces nothing, because no program makes more than some dozen updates."""
  tf.config.run_functions_eagerly(True)
  yield
  tf.config.run_functions_eagerly(False)


@pytest.fixture
def start():
  """`start(config, run)`: a program that is closed after the test."""
  programs = []

  def make(config, run):
    programs.append(single_process.SingleProcess(config, run))
    return programs[-1]

  yield make
  for program in programs:
    program.close()


def _play(program, total_steps):
  while program.counters.snapshot().agent_steps < total_steps:
    program.step()


def _info(program):
  info = reverb.Client(program.replay_addresses[0]).server_info()[tables.UNROLLS]
  limiter = info.rate_limiter_info
  return info.current_size, limiter.insert_stats.completed, limiter.sample_stats.completed


@pytest.fixture(scope='module')
def stopped(tmp_path_factory):
  """Returns a run that was stopped after 240 steps, and its table's info."""
  run = run_directory.create(tmp_path_factory.mktemp('stopped') / 'run')
  program = single_process.SingleProcess(_config(10_000), run)
  _play(program, 240)
  program.loop.finish(training_loop.STOPPED)
  info = _info(program)
  program.close()
  return run, info


@pytest.fixture
def saved(stopped, tmp_path):
  """Returns a copy of the stopped run, and its table's info."""
  run, info = stopped
  shutil.copytree(run.path, tmp_path / 'run')
  return run_directory.RunDirectory(tmp_path / 'run'), info


def test_size_and_counts_go_on_and_the_memory_is_not_saved_again(start, saved):
  run, info = saved
  before = checkpoint.replay_folder(checkpoint.newest(run.checkpoints)) / 'chunks.tfrecord'
  inode = before.stat().st_ino
  program = start(_config(10_000), run)
  assert before.stat().st_ino == inode
  assert not run.notices.exists()
  size, inserts, samples = _info(program)
  assert (size, inserts) == info[:2]
  assert 0 <= samples - info[2] <= 8  # Reverb's own threads sample up to two batches ahead
  assert info[0] == info[1] > 50
  _play(program, 320)
  assert _info(program)[0] > info[0]
  program.loop.save()
  after = checkpoint.replay_folder(checkpoint.newest(run.checkpoints)) / 'chunks.tfrecord'
  assert after != before and not before.exists()


@pytest.mark.parametrize(
  'spoil, reason',
  [
    (lambda folder: shutil.rmtree(folder), 'has none'),
    (
      lambda folder: (folder / 'chunks.tfrecord').write_bytes(
        (folder / 'chunks.tfrecord').read_bytes()[:-100]
      ),
      'not whole',
    ),
    (
      lambda folder: (folder / 'chunks.tfrecord').write_bytes(
        b'x' * (folder / 'chunks.tfrecord').stat().st_size
      ),
      'corrupted',
    ),
  ],
)
def test_what_cannot_be_restored_is_told_and_the_run_goes_on(start, saved, spoil, reason):
  run, _ = saved
  spoil(checkpoint.newest(run.checkpoints) / 'replay')
  program = start(_config(10_000), run)
  assert _info(program)[0] == 0
  assert program.loop.resumptions == 1
  (notice,) = run.notices.read_text().splitlines()
  assert 'starts empty' in notice
  assert reason in notice
  updates = program.counters.snapshot().updates
  _play(program, 320)
  assert program.counters.snapshot().updates > updates


def test_only_the_newest_checkpoint_keeps_the_memory(saved):
  run, _ = saved
  folders = sorted(path for path in run.checkpoints.iterdir() if path.name.isdigit())
  assert len(folders) == 2
  assert [(path / 'replay').is_dir() for path in folders] == [False, True]
  assert not list(run.replay_in_progress.iterdir())


def test_a_memory_that_finds_no_room_loses_no_weights(start, tmp_path, monkeypatch):
  run = run_directory.create(tmp_path / 'run')
  program = start(_config(10_000), run)
  _play(program, 100)

  def fail(memory):
    raise RuntimeError('No space left on device')

  program.loop.save()
  good, info = checkpoint.newest(run.checkpoints), _info(program)
  with monkeypatch.context() as patch:
    patch.setattr(memory_lib.ReplayMemory, 'checkpoint', fail)
    _play(program, 160)
    program.loop.save()
  newest = checkpoint.newest(run.checkpoints)
  assert newest != good
  assert checkpoint.load(newest).meta['counts']['agent_steps'] >= 160
  assert checkpoint.replay_folder(newest) is None
  assert 'No space left' in run.notices.read_text()
  run.notices.unlink()
  resumed = start(_config(10_000), run)
  assert resumed.counters.snapshot().agent_steps >= 160
  assert _info(resumed)[:2] == info[:2]
  (notice,) = run.notices.read_text().splitlines()
  assert f'that of checkpoint {good.name}' in notice and 'full disk' in notice


def _without_replay(config):
  return dataclasses.replace(
    config, checkpoint=dataclasses.replace(config.checkpoint, replay=False)
  )


def test_a_resumption_that_restores_no_memory_does_not_lose_it(start, saved):
  run, info = saved
  program = start(_without_replay(_config(10_000)), run)
  assert _info(program)[0] == 0
  assert 'checkpoint.replay is False' in run.notices.read_text()
  run.notices.unlink()
  program.loop.finish(training_loop.STOPPED)
  assert _info(start(_config(10_000), run))[:2] == info[:2]
  assert not run.notices.exists()


def test_a_memory_that_reverb_does_not_take_outlives_a_run_that_learnt_nothing(
  start, saved, monkeypatch
):
  run, info = saved

  def refuse(folder, fallback_checkpoint_path):
    if fallback_checkpoint_path is not None:
      raise RuntimeError('not today')
    return checkpointer(folder)

  checkpointers = reverb.platform.checkpointers_lib
  checkpointer = checkpointers.DefaultCheckpointer
  with monkeypatch.context() as patch:
    patch.setattr(checkpointers, 'DefaultCheckpointer', refuse)
    program = start(_config(10_000), run)
    assert _info(program)[0] == 0
    for _ in range(10):
      program.step()
    assert _info(program)[0] > 0
    program.loop.finish(training_loop.STOPPED)  # as if somebody stopped it because of the notice
  assert _info(start(_config(10_000), run))[:2] == info[:2]


@pytest.mark.parametrize('ratio, replay', [(0.5, 'uniform'), (3.0, 'prioritized')])
def test_updates_follow_the_replay_ratio_and_uniform_replay_sends_no_priority(
  start, tmp_path, monkeypatch, ratio, replay
):
  sent = []
  send = reverb.Client.mutate_priorities
  monkeypatch.setattr(
    reverb.Client,
    'mutate_priorities',
    lambda *arguments, **named: sent.append(named) or send(*arguments, **named),
  )
  program = start(_config(10_000, ratio, replay=replay), run_directory.create(tmp_path / 'run'))
  _play(program, 120)
  updates = program.counters.snapshot().updates
  expected = ratio * (_info(program)[1] - 10) / 4
  assert updates > 0 and updates == pytest.approx(expected, abs=1 + ratio)
  assert bool(sent) is (replay == 'prioritized')


@pytest.mark.parametrize(
  'changes, text',
  [
    ({'replay_ratio': 0.0}, 'replay_ratio'),
    ({'replay_ratio': float('nan')}, 'replay_ratio'),
    ({'replay_min_size': 201}, 'replay_min_size'),
    ({'replay_capacity': 0}, 'replay_'),
    ({'priority_exponent': -1.0}, 'priority_exponent'),
    ({'importance_exponent': float('inf')}, 'importance_exponent'),
  ],
)
def test_a_memory_that_cannot_work_is_refused(changes, text):
  config = _config(100)
  config = dataclasses.replace(config, agent=dataclasses.replace(config.agent, **changes))
  with pytest.raises(types.UserError, match=text):
    config_validation.validate(config)
