"""Whole runs with several replay shards: trained on evenly, inspected, stopped and resumed."""

import dataclasses
import signal

import numpy as np
import pytest
import reverb
import tensorflow as tf

from seed_acme.configs import registry
from seed_acme.learning import training_loop
from seed_acme.programs import single_process
from seed_acme.programs.tools.inspection import command as inspect_command
from seed_acme.replay import saved_items
from seed_acme.replay import table_counts
from seed_acme.replay import tables
from seed_acme.storage import run_directory

pytestmark = [
  pytest.mark.slow,
  pytest.mark.timeout(600),
  pytest.mark.filterwarnings('ignore:Even though the `tf.config'),  # Reverb's stays compiled
]


@pytest.fixture(scope='module', autouse=True)
def _eagerly():
  """Traces nothing, because no program of this process makes more than 10 updates."""
  tf.config.run_functions_eagerly(True)
  yield
  tf.config.run_functions_eagerly(False)


def _config(name, agent=None, **fields):
  config = registry.load(name)
  return dataclasses.replace(
    config,
    agent=dataclasses.replace(config.agent, **(agent or {})),
    replay=dataclasses.replace(config.replay, num_shards=2),
    num_actors=4,
    environments_per_actor=4,
    **fields,
  )


@pytest.mark.parametrize('strictly', [False, True])
def test_every_unroll_is_trained_once_and_half_of_each_batch_is_of_each_shard(tmp_path, strictly):
  config = _config('catch_vtrace', total_steps=10**6)
  inference = dataclasses.replace(config.inference, strictly_on_policy=strictly)
  program = single_process.SingleProcess(
    dataclasses.replace(config, inference=inference), run_directory.create(tmp_path)
  )
  put, batches = [], []
  real_put, real_train = program.writer.put, program.loop.train

  def put_and_note(env_ids, unrolls):
    rows = (x.tobytes() for x in unrolls.inputs.observation)
    put.extend(zip(env_ids.tolist(), rows))
    real_put(env_ids, unrolls)

  def train_and_note(sample):
    observations = np.swapaxes(sample.unroll.inputs.observation.numpy(), 0, 1)
    batches.append([np.ascontiguousarray(x).tobytes() for x in observations])
    real_train(sample)

  program.writer.put, program.loop.train = put_and_note, train_and_note
  while len(batches) < 6:
    program.step()
  program.close()
  half = config.agent.batch_size // 2
  for shard in range(2):
    expected = [rows for env_id, rows in put if env_id // 4 % 2 == shard]
    trained = [rows for batch in batches for rows in batch[shard * half :][:half]]
    assert trained == expected[: len(trained)]


def test_a_full_shard_holds_back_its_own_actors_and_no_others(tmp_path, monkeypatch):
  """Actors 0 and 2 belong to shard 0; environments from 16 on are for evaluation."""
  config = _config('catch_vtrace', total_steps=10**6, num_evaluation_environments=2)
  program = single_process.SingleProcess(config, run_directory.create(tmp_path))
  program.step()
  monkeypatch.setattr(program.writer.each[0], 'has_room', lambda: False)
  before = program.servers[0].slots.request_numbers.copy()
  for _ in range(3):
    program.step()
  acted = program.servers[0].slots.request_numbers - before
  program.close()
  assert acted.tolist() == [0] * 4 + [3] * 4 + [0] * 4 + [3] * 4 + [3] * 2


def _counts(program):
  """Returns what `table_counts.read` returns, with a value for each shard."""
  clients = map(reverb.Client, program.replay_addresses)
  return list(zip(*(table_counts.read(client, 60) for client in clients)))


def test_a_memory_keeps_its_ratio_in_every_shard_and_is_restored(tmp_path):
  agent = {'unroll_length': 3, 'overlap': 2, 'batch_size': 8, 'replay_min_size': 40}
  config = _config('catch_r2d2', agent, total_steps=10**6)
  run = run_directory.create(tmp_path / 'run')
  program = single_process.SingleProcess(config, run)
  spec = config.agent.replay_spec()
  while program.counters.snapshot().updates < 10:
    program.step()
  inserted, sampled, _ = _counts(program)
  drawn = program.counters.snapshot().updates * config.agent.batch_size // 2
  program.loop.finish(training_loop.STOPPED)
  stopped = _counts(program)
  program.close()
  assert inserted[0] == inserted[1]
  # Reverb has one more sample in flight.
  assert all(0 <= number - drawn <= 1 for number in sampled)
  assert abs(sampled[0] - spec.ratio * (inserted[0] - spec.min_size / 2)) <= config.agent.batch_size
  resumed = single_process.SingleProcess(config, run)
  restored = _counts(resumed)
  resumed.close()
  assert (restored[0], restored[2]) == (stopped[0], stopped[2])


@pytest.mark.processes
def test_a_memory_in_processes_of_its_own_is_shown_as_one_and_saved_and_restored(
  runs, capsys, monkeypatch, one_json
):
  folder = runs.folder()
  command = (
    '--config=catch_r2d2',
    '--config.environment.id=drill_slow:Slow',
    '--config.replay.unrolls_per_item=1',
    '--config.num_actors=2',
    '--config.replay.num_shards=2',
    '--config.replay.separate_process=True',
    '--config.agent.replay_min_size=30',
    '--config.agent.unroll_length=4',
    '--config.agent.overlap=1',
    '--config.agent.replay_ratio=1',
    '--config.network.core_size=16',
  )
  run = runs.train(*command, runs.endless, folder=folder)
  run.wait_for_updates(5)
  monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '-1')  # as inspect sets it
  arguments = inspect_command.InspectArguments(run_dir=str(run.run_dir.path), json=True)
  assert inspect_command.inspect(arguments) == 0
  table = one_json(capsys.readouterr().out)['tables']['unrolls']
  sizes = [shard['size'] for shard in table['shards']]
  assert min(sizes) > 0 and sum(sizes) == table['size']
  run.process.send_signal(signal.SIGINT)
  assert run.wait() == 130
  saved = saved_items.newest(run.run_dir.checkpoints).tables[tables.UNROLLS]
  assert len(saved.keys) >= table['size']
  more = f'--config.total_steps={run.summary()["agent_steps"] + 500}'
  resumed = runs.train(*command, more, folder=folder)
  assert resumed.wait() == 0, resumed.stderr
  assert not resumed.run_dir.notices.exists()  # it would say that the memory starts empty
  again = saved_items.newest(run.run_dir.checkpoints).tables[tables.UNROLLS]
  assert {*saved.keys} < {*again.keys}
