"""Whole strictly on-policy runs: no lag, every step learnt once, weights change once per update."""

import contextlib
import dataclasses
import json
import os
import queue
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tree

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import layout as layout_lib
from seed_acme.configs import registry
from seed_acme.inference import policy as policy_lib
from seed_acme.learning import training_loop
from seed_acme.loggers import csv_file
from seed_acme.programs import single_process
from seed_acme.programs.building import build_replay
from seed_acme.programs.building import sections
from seed_acme.programs.nodes import learner_node
from seed_acme.programs.nodes import node as node_lib
from seed_acme.replay import connection
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import run_directory
from seed_acme.transport import fence as fence_lib
from tests import built

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_STEPS = 576  # eight updates of `_catch`: ten rows of eight environments, of which nine are steps
_AGENT = dataclasses.replace(registry.load('catch_vtrace').agent, unroll_length=5, batch_size=16)


def _catch(**changes):
  """Returns V-trace on eight environments, each of which gives two unrolls to an update."""
  config = registry.load('catch_vtrace')
  small = {
    'num_actors': 2,
    'environments_per_actor': 4,
    'num_evaluation_environments': 2,
    'total_steps': _STEPS,
    'network': dataclasses.replace(config.network, mlp_sizes=(16,)),
    'agent': _AGENT,
    'replay': config_lib.ReplayConfig(queue_size=16, unrolls_per_item=2),
    'inference': config_lib.InferenceConfig(strictly_on_policy=True),
    'learner': config_lib.LearnerConfig(log_period_s=0.0),
  }
  return _valid(dataclasses.replace(config, **{**small, **changes}))


def _ppo(**changes):
  """Returns a smaller preset: two epochs of two minibatches on four environments."""
  config = registry.load('cartpole_ppo')
  assert config.inference.strictly_on_policy
  small = {
    'environments_per_actor': 4,
    'total_steps': 300,
    'network': dataclasses.replace(config.network, mlp_sizes=(8,)),
    'agent': dataclasses.replace(
      config.agent, unroll_length=8, batch_size=4, minibatch_size=16, num_epochs=2
    ),
    'replay': config_lib.ReplayConfig(queue_size=4, unrolls_per_item=4),
    'learner': config_lib.LearnerConfig(log_period_s=0.0),
  }
  return _valid(dataclasses.replace(config, **{**small, **changes}))


def _valid(config):
  config_validation.validate(config)
  return config


def _run(config, path, should_stop=lambda: False):
  """Returns (how it ended, status)."""
  run = run_directory.create(path)
  ended = single_process.run(config, run, should_stop)
  return ended, json.loads(run.status.read_text())


def _expect_no_lag(status):
  assert status['policy_lag_mean'] == status['policy_lag_max'] == 0
  assert status['trained_steps'] == status['agent_steps'] > 0


@pytest.fixture(name='versions')
def _versions(monkeypatch):
  """Records the versions of the acting weights when they are loaded."""
  seen = []
  refresh = policy_lib.Policy.refresh

  def refresh_and_note(policy):
    before = policy.version
    refresh(policy)
    if policy.version != before:
      seen.append(policy.version)

  monkeypatch.setattr(policy_lib.Policy, 'refresh', refresh_and_note)
  return seen


@pytest.mark.parametrize(
  'changes',
  [
    {},
    {
      'num_actors': 1,
      'environments_per_actor': 16,
      'num_evaluation_environments': 0,
      'actor': config_lib.ActorConfig(environment_groups=2),
      'network': config_lib.NetworkConfig(mlp_sizes=(8,), core='lstm', core_size=4),
      'agent': dataclasses.replace(_AGENT, overlap=7),
    },
  ],
  ids=['two actors', 'two groups, overlapping unrolls of an lstm'],
)
def test_a_single_process_has_no_lag_and_learns_every_step_once(tmp_path, versions, changes):
  ended, status = _run(_catch(**changes), tmp_path)
  assert ended == training_loop.FINISHED
  assert status['agent_steps'] == _STEPS and status['updates'] == 8
  _expect_no_lag(status)
  assert versions == list(range(versions[-1] + 1))
  assert versions[-1] in (status['updates'] - 1, status['updates'])


def test_without_it_there_is_lag(tmp_path):
  """This shows that the other tests can fail: the queue holds data while the weights change."""
  _, status = _run(_catch(inference=config_lib.InferenceConfig()), tmp_path)
  assert status['policy_lag_max'] > 0


def test_several_passes_change_the_weights_that_act_once_an_update(tmp_path, versions):
  """A run that is stopped, and goes on."""
  asked = []

  def should_stop():
    asked.append(None)
    return len(asked) > 50

  ended, before = _run(_ppo(total_steps=10**6), tmp_path, should_stop)
  assert ended == training_loop.STOPPED and before['updates'] > 1
  _expect_no_lag(before)
  assert versions == list(range(versions[-1] + 1))
  assert versions[-1] in (before['updates'] - 1, before['updates'])
  versions.clear()
  ended, after = _run(_ppo(total_steps=before['agent_steps'] + 100), tmp_path)
  assert ended == training_loop.FINISHED and after['resumptions'] == 1
  assert after['updates'] >= before['updates'] + 3
  _expect_no_lag(after)
  assert versions == list(range(before['updates'], versions[-1] + 1))
  rows = csv_file.read(run_directory.RunDirectory(tmp_path).metrics)
  trained = [row for row, number in enumerate(rows['learner/gradient_steps']) if number == number]
  assert len(trained) > 3
  assert {rows['learner/gradient_steps'][row] for row in trained} == {4}
  assert {rows['learner/policy_lag_max'][row] for row in trained} == {0}


def test_a_learner_takes_nothing_from_a_queue_that_outlived_another(tmp_path):
  """Replay has its own node, and the previous learner was killed."""
  config, run = _catch(), run_directory.create(tmp_path)
  acting = built.make_acting(config)
  replay = _replay(run, config, acting)
  _write(config, acting, replay, 16)
  with contextlib.ExitStack() as cleanup:
    node = learner_node.LearnerNodeProcess(
      node_lib.Node(
        sections.split(config).learners[0],
        node_lib.Links('token', '127.0.0.1:0', (replay.address,)),
        run,
        node_lib.Life(threading.Event()),
      ),
      node_lib.Greeting(acting.spec),
      cleanup,
      fence_lib.LOOPBACK,
    )
    taken, stop = queue.Queue(), threading.Event()
    node.loop.train = taken.put
    training = threading.Thread(target=node.train, args=[stop], daemon=True)
    training.start()
    with pytest.raises(queue.Empty):
      taken.get(timeout=1.0)
    _write(config, acting, replay, 16)
    assert taken.get(timeout=60).keys.shape == (16,)
    with pytest.raises(queue.Empty):
      taken.get(timeout=0.1)
    stop.set()
    training.join(60)
    assert not training.is_alive()
  replay.stop()


def _replay(run, config, acting):
  layout = layout_lib.Layout.of(config)
  return build_replay.make_replay_server(
    run, layout, acting, is_saved=True, port=0, fence=fence_lib.LOOPBACK
  )


def _write(config, acting, replay, num_unrolls):
  layout = layout_lib.Layout.of(config)
  [writer] = build_replay.make_writers(layout, acting, [replay.address], None, [None]).each
  writer.put(
    tree.map_structure(lambda x: np.repeat(x[None], num_unrolls, axis=0), acting.example_unroll())
  )
  while writer.has_item():
    writer.write_item()
  writer.stop()


_WAITING_LEARNER = """
import sys, seed_acme, reverb
samples = reverb.TrajectoryDataset.from_table_signature(
  sys.argv[1], 'unrolls', max_in_flight_samples_per_worker=3, num_workers_per_iterator=1
)
iterator = iter(samples)
print('waiting', flush=True)
next(iterator)
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_requests_of_learners_that_were_killed_take_nothing(tmp_path):
  """Reverb keeps them, and a strictly on-policy run would wait for ever for what they take."""
  config, run = _catch(), run_directory.create(tmp_path)
  acting = built.make_acting(config)
  replay = _replay(run, config, acting)
  for _ in range(2):
    with subprocess.Popen(
      [sys.executable, '-c', _WAITING_LEARNER, replay.address], stdout=subprocess.PIPE, text=True
    ) as learner:
      assert learner.stdout.readline() == 'waiting\n'
      time.sleep(2.0)  # until the request has reached the table, which Reverb does not tell
      learner.kill()
  shard = layout_lib.Layout.of(config).learners[0].shards[0]
  build_replay.take_over(shard, acting, run, [replay.address])
  _write(config, acting, replay, 16)
  size = connection.client(replay.address).server_info()['unrolls'].current_size
  assert size == 16 // shard.unrolls_per_item
  replay.stop()


@pytest.mark.parametrize('is_new', [False, True])
def test_a_memory_that_outlived_a_learner_is_kept_unless_the_run_is_new(tmp_path, is_new):
  config = registry.load('catch_r2d2')
  acting = built.make_acting(config)
  run = run_directory.create(tmp_path)
  replay = _replay(run, config, acting)
  _write(config, acting, replay, 3)
  if not is_new:
    checkpoint_writer.save(run.checkpoints, 5, {'acting/w': np.zeros(1)}, {}, keep=1)
  layout = layout_lib.Layout.of(config)
  build_replay.take_over(layout.learners[0].shards[0], acting, run, [replay.address])
  memories = build_replay.make_memories(layout, run, True, [replay.address], 0)
  assert memories.counts()[0] == (0 if is_new else 3)
  said = run.notices.read_text() if run.notices.exists() else ''
  assert ('3 unrolls of an earlier run were dropped' in said) == is_new
  replay.stop()


@pytest.mark.parametrize(
  'num_shards, is_saved, expected', [(1, True, 9.0), (2, True, 9.0), (1, False, 1.0)]
)
def test_a_resumed_run_knows_the_greatest_priority_of_its_memory(
  tmp_path, num_shards, is_saved, expected
):
  config = registry.load('catch_r2d2')
  config = dataclasses.replace(
    config, replay=dataclasses.replace(config.replay, num_shards=num_shards)
  )
  acting, layout = built.make_acting(config), layout_lib.Layout.of(config)
  run = run_directory.create(tmp_path)
  with contextlib.ExitStack() as cleanup:
    addresses = []
    for shard in range(num_shards):
      server = build_replay.make_replay_server(
        run, layout, acting, True, 0, fence_lib.LOOPBACK, shard=shard
      )
      cleanup.callback(server.stop)
      addresses.append(server.address)
    memory = build_replay.make_memories(layout, run, True, addresses, 0)
    memory.update_priorities(np.arange(4, dtype=np.uint64), np.array([2.0, 3.0, 9.0, 5.0]))
    saved = memory.checkpoint()
    checkpoint_writer.save(run.checkpoints, 5, {'acting/w': np.zeros(1)}, {}, 1, saved)
    resumed = build_replay.make_memories(layout, run, is_saved, addresses, 0)
  assert resumed.greatest_priority == expected


_STRICT = (
  '--config=cartpole_ppo',
  '--run_dir=run',
  '--config.num_actors=2',
  '--config.environments_per_actor=2',
  '--config.num_evaluation_environments=2',
  '--config.network.mlp_sizes',
  '8',
  '--config.agent.unroll_length=8',
  '--config.agent.batch_size=4',
  '--config.agent.minibatch_size=16',
  '--config.agent.num_epochs=2',
  '--config.replay.queue_size=4',
  '--config.replay.unrolls_per_item=4',
  '--config.replay.separate_process=True',
  '--config.replay.prefetch_batches=0',
  '--config.learner.xla=False',
  '--config.learner.log_period_s=0.1',
)
_STEPS_AN_UPDATE = 4 * 8  # at most: four unrolls of eight


@pytest.mark.processes
@pytest.mark.timeout(600)
def test_processes_have_no_lag_through_a_lost_actor_and_a_stop(runs, until):
  """Replay is in a process of its own, and an update makes several passes."""
  run = runs.start('train', *_STRICT, runs.endless)
  run.wait_for_updates(5)
  actor = run.wait_for_node('actor')
  actor.kill()
  until(lambda: not actor.is_running() or actor.status() == 'zombie', 'the end of the actor')
  run.wait_for_updates(5, since=run.status()['updates'])
  os.killpg(run.process.pid, 2)  # Ctrl-C
  assert run.wait() == 130, run.stderr
  status = run.status()
  assert status['policy_lag_mean'] == status['policy_lag_max'] == 0
  # The end may come between the last update's unrolls and the update.
  assert 0 <= status['agent_steps'] - status['trained_steps'] <= _STEPS_AN_UPDATE
