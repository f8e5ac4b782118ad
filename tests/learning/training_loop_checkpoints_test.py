"""The checkpoints of the training loop, and how a run resumes from them."""

import errno
import functools
import os
import types as python_types

import numpy as np
import pytest
import tensorflow as tf

from seed_acme.configs import registry
from seed_acme.learning import learner as learner_lib
from seed_acme.learning import training_loop
from seed_acme.progress import counting
from seed_acme.storage import checkpoint
from tests.learning import loop_run


def test_a_memory_that_fills_says_how_far_it_is(tmp_path, clock):
  config = registry.load('catch_r2d2')
  memory = functools.partial(loop_run.Memory, size=config.agent.replay_min_size - 1)
  run = loop_run.Run(tmp_path, clock, memory, agent=config.agent, replay=config.replay)
  run.loop.report_wait()
  assert run.folder.phase.read_text() == (
    f'filling the replay memory ({config.agent.replay_min_size - 1:,} of '
    f'{config.agent.replay_min_size:,} unrolls)'
  )


def test_a_memory_that_does_not_answer_keeps_nobody_waiting(tmp_path, clock):
  run = loop_run.Run(tmp_path, clock, loop_run.Memory)
  run.memory.is_silent = True
  run.loop.report_wait()
  assert run.folder.phase.read_text() == 'waiting for the replay server, which does not answer'


def test_a_spoilt_update_leaves_the_last_good_checkpoint_and_publishes_nothing(tmp_path, clock):
  run = loop_run.Run(
    tmp_path, clock, checkpoint=loop_run.replace('checkpoint', period_s=0.0, keep=2)
  )
  run.loop.restore()
  run.loop.train(1.0)
  run.learner.is_spoilt = True
  with pytest.raises(learner_lib.NonFiniteError):
    run.loop.train(1.0)
  assert run.saved_updates() == [0, 1]
  assert run.published.latest().version == 1
  assert run.counters.snapshot().updates == 1


def test_a_resumed_run_goes_on_from_the_checkpoint_and_cuts_later_rows(tmp_path, clock):
  killed = loop_run.trained(tmp_path, clock, 3)
  killed.loop.save()
  for _ in range(2):  # these updates are lost
    clock.now += 1
    killed.counters.add(agent_steps=10)
    killed.loop.train(1.0)
  assert killed.rows()['agent_steps'] == [10, 20, 30, 40, 50]
  clock.now += 1000
  run = loop_run.Run(tmp_path, clock)
  run.loop.restore()
  assert run.counters.snapshot() == counting.Counts(
    agent_steps=30, frames=120, updates=3, episodes=6, trained_steps=15, wall_s=3.0
  )
  assert run.learner.num_updates == run.published.latest().version == 3
  assert run.rows()['agent_steps'] == [10, 20, 30]
  assert run.loop.resumptions == 1
  run.counters.add(agent_steps=5)
  run.loop.train(1.0)
  run.loop.finish(training_loop.FINISHED)
  assert run.rows()['agent_steps'] == [10, 20, 30, 35]
  assert run.status()['resumptions'] == 1


def test_the_return_of_the_last_100_goes_on_over_a_resumption(tmp_path, clock):
  killed = loop_run.Run(tmp_path, clock)
  killed.loop.restore()
  for _ in range(30):  # the first 20 of these 120 have left the window
    killed.end_episodes(killed.inference.training_episodes, [1.0, 2.0, 3.0, 4.0])
  killed.end_episodes(killed.inference.evaluation_episodes, [6.0])
  killed.loop.save()
  run = loop_run.Run(tmp_path, clock)
  run.loop.restore()
  run.loop.log('running')
  assert run.status()['episode_return_last_100'] == 2.5
  assert run.status()['evaluation_return'] == 6
  assert 'episode/return' not in run.rows()  # none has ended since
  run.end_episodes(run.inference.training_episodes, [7.0] * 4)
  run.loop.log('running')
  assert run.status()['episode_return_last_100'] == (24 * 10 + 28) / 100


def test_every_resumption_is_counted_though_no_update_was_made(tmp_path, clock):
  """This makes environments and run ids differ from those of the previous attempt."""
  loop_run.trained(tmp_path, clock, 3).loop.save()
  for expected in (1, 2, 3):
    run = loop_run.Run(tmp_path, clock)
    run.loop.restore()
    assert run.loop.resumptions == expected


def test_each_unroll_gets_the_priority_that_was_computed_from_it(tmp_path, clock):
  """The learner's priority for unroll i goes to the key of unroll i."""
  written = []
  memory = python_types.SimpleNamespace(update_priorities=lambda *pair: written.append(pair))
  run = loop_run.Run(tmp_path, clock, lambda _: memory)
  sample = python_types.SimpleNamespace(keys=tf.constant([7, 2**63 + 1, 5], tf.uint64))
  priorities = np.float32([0.5, 4.0, 1.0])
  update = run.learner.step(1.0, 0)._replace(priorities=priorities)
  run.learner.step = lambda *_: update
  run.loop.train(sample)
  [(keys, values)] = written
  assert keys.dtype == np.uint64 and keys.tolist() == [7, 2**63 + 1, 5]
  assert values.tolist() == [0.5, 4.0, 1.0]


def _saved_memory(run):
  """Returns {updates: content} of the checkpoints with a memory."""
  folders = run.folder.checkpoints.glob('[0-9]*/replay')
  return {int(folder.parent.name): (folder / 'chunks.tfrecord').read_bytes() for folder in folders}


def _with_memory(path, clock, **memory):
  run = loop_run.Run(path, clock, functools.partial(loop_run.Memory, **memory))
  run.loop.restore()
  return run


def test_a_memory_that_was_not_restored_is_kept_until_the_new_one_is_learnt_from(tmp_path, clock):
  first = _with_memory(tmp_path, clock, content=b'good')
  first.loop.train(1.0)
  first.loop.finish(training_loop.STOPPED)
  assert _saved_memory(first) == {1: b'good'}
  run = _with_memory(tmp_path, clock, size=0, content=b'begun anew')
  assert run.loop.resumptions == 1
  run.loop.save()
  run.loop.finish(training_loop.STOPPED)
  assert _saved_memory(run) == {1: b'good'}
  run = _with_memory(tmp_path, clock, size=0, content=b'begun anew')
  assert run.loop.resumptions == 2
  run.loop.train(1.0)
  run.loop.save()
  assert _saved_memory(run) == {2: b'begun anew'}


def test_a_memory_that_was_restored_is_saved_with_what_came_in_since(tmp_path, clock):
  first = _with_memory(tmp_path, clock, content=b'good')
  first.loop.finish(training_loop.STOPPED)
  run = _with_memory(tmp_path, clock, size=5, content=b'good and more')
  assert _saved_memory(run) == {0: b'good'}
  run.loop.finish(training_loop.STOPPED)
  assert _saved_memory(run) == {0: b'good and more'}


def test_a_disk_that_is_too_full_for_the_memory_keeps_the_last_one_and_says_so(tmp_path, clock):
  run = _with_memory(tmp_path, clock, content=b'good')
  run.memory.content, run.memory.fails = b'half', True
  run.loop.train(1.0)
  run.loop.save()
  assert run.saved_updates() == [0, 1]
  assert _saved_memory(run) == {0: b'good'}
  assert 'No space left' in run.folder.notices.read_text()


def test_a_disk_with_room_for_the_memory_or_the_weights_gets_the_weights(
  tmp_path, clock, monkeypatch
):
  run = _with_memory(tmp_path, clock, content=b'good')
  run.loop.train(1.0)
  savez = np.savez

  def full_beside_the_memory(*arguments, **arrays):
    if any(run.folder.replay_in_progress.rglob('chunks*')):
      raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    savez(*arguments, **arrays)

  monkeypatch.setattr(np, 'savez', full_beside_the_memory)
  run.loop.save()
  assert run.saved_updates() == [0, 1]
  assert checkpoint.load_newest(run.folder.checkpoints).counts.updates == 1
  assert 'No space left' in run.folder.notices.read_text()
  assert not any(run.folder.replay_in_progress.rglob('chunks*'))


def test_a_run_killed_before_its_first_checkpoint_starts_anew(tmp_path, clock):
  killed = loop_run.trained(tmp_path, clock, 3)
  for path in killed.folder.checkpoints.iterdir():
    path.rename(path.with_name(f'{path.name}.partial'))
  run = loop_run.Run(tmp_path, clock)
  run.loop.restore()
  assert run.counters.snapshot().agent_steps == 0
  assert run.rows()['agent_steps'] == []
  assert run.saved_updates() == [0]


def test_a_warm_start_takes_weights_and_nothing_else(tmp_path, clock):
  loop_run.trained(tmp_path / 'donor', clock, 4).loop.save()
  run = loop_run.Run(tmp_path / 'run', clock, initial_checkpoint=str(tmp_path / 'donor'))
  run.learner.new_at_warm_start = ['learning/learnt_weights/entropy:0']
  run.loop.restore()
  assert 'has no learning/learnt_weights/entropy:0' in run.folder.notices.read_text()
  assert run.learner.warm_started_from == 4
  assert run.learner.num_updates == run.loop.resumptions == 0
  assert run.counters.snapshot().agent_steps == 0
  resumed = loop_run.Run(tmp_path / 'run', clock, initial_checkpoint=str(tmp_path / 'donor'))
  resumed.loop.restore()
  assert resumed.learner.warm_started_from is None  # its own checkpoint takes precedence


def test_a_corrupt_checkpoint_is_skipped_and_named(tmp_path, clock):
  killed = loop_run.trained(tmp_path, clock, 3)
  killed.loop.save()
  newest = checkpoint.newest(killed.folder.checkpoints)
  (newest / 'arrays.npz').write_bytes(b'x')
  resumed = loop_run.Run(tmp_path, clock)
  resumed.loop.restore()
  assert resumed.learner.num_updates == 0
  notice = resumed.folder.notices.read_text()
  assert f'checkpoint {newest.name} is skipped for {0:012d}' in notice
  assert sorted(path.name for path in resumed.folder.checkpoints.iterdir()) == [
    f'{0:012d}',
    f'{newest.name}.damaged',
  ]


def test_without_a_whole_checkpoint_nothing_is_written(tmp_path, clock):
  killed = loop_run.trained(tmp_path, clock, 3)
  killed.loop.save()
  for path in checkpoint.all_whole(killed.folder.checkpoints):
    (path / 'arrays.npz').write_bytes(b'x')
  before = killed.folder.metrics.read_bytes()
  with pytest.raises(checkpoint.Damaged, match='no checkpoint'):
    loop_run.Run(tmp_path, clock).loop.restore()
  assert killed.folder.metrics.read_bytes() == before
  assert killed.saved_updates() == [0, 3]
