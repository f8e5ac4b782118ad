"""The single-process program is repeatable and resumable, and all its counts agree."""

import dataclasses
import json

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.learning import training_loop
from seed_acme.loggers import csv_file
from seed_acme.programs import single_process
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

pytestmark = pytest.mark.timeout(240)

_STEPS = 700
_MEASURED = ('wall_s', 'time/steps_per_s', 'time/updates_per_s')  # values that depend on the clock


def _config(**changes):
  """Returns a small configuration with a log row for every update."""
  config = registry.load('catch_vtrace')
  small = {
    'num_actors': 2,
    'environments_per_actor': 4,
    'num_evaluation_environments': 2,
    'total_steps': _STEPS,
    'network': dataclasses.replace(config.network, mlp_sizes=(16,)),
    'agent': dataclasses.replace(config.agent, unroll_length=5, batch_size=4),
    'replay': config_lib.ReplayConfig(queue_size=8, unrolls_per_item=2),
    'learner': config_lib.LearnerConfig(log_period_s=0.0),
  }
  return dataclasses.replace(config, **{**small, **changes})


def _run(path, **changes):
  run = run_directory.create(path)
  config = _config(**changes)
  saved_config.save(config, run.config)
  assert single_process.run(config, run) == training_loop.FINISHED
  return run


@pytest.fixture(scope='module')
def first(tmp_path_factory):
  """Makes a finished run, which no test may change."""
  return _run(tmp_path_factory.mktemp('single') / 'first')


def _arrays(run):
  return checkpoint.load(checkpoint.newest(run.checkpoints)).arrays


def _rows(run):
  return {
    name: np.array(column)
    for name, column in csv_file.read(run.metrics).items()
    if name not in _MEASURED
  }


def _status(run):
  return json.loads(run.status.read_text())


def test_the_same_seed_gives_the_same_run_to_the_bit(first, tmp_path):
  second = _run(tmp_path / 'second')
  rows, again = _rows(first), _rows(second)
  assert rows.keys() == again.keys()
  for name, column in rows.items():
    np.testing.assert_array_equal(column, again[name], err_msg=name)
  arrays, arrays_again = _arrays(first), _arrays(second)
  assert arrays.keys() == arrays_again.keys()
  for name, array in arrays.items():
    np.testing.assert_array_equal(array, arrays_again[name], err_msg=name)


def test_another_seed_gives_another_run(first, tmp_path):
  other = _run(tmp_path / 'other', seed=2)
  assert (_rows(first)['loss/total'] != _rows(other)['loss/total'][:1]).all()
  for name, array in _arrays(first).items():
    if name.startswith('acting/') and array.ndim == 2:
      assert (array != _arrays(other)[name]).any(), name


def test_the_logs_themselves_change_nothing(first, tmp_path):
  """Training must not depend on when the clock causes rows to be written."""
  quiet = _run(tmp_path / 'quiet', learner=config_lib.LearnerConfig(log_period_s=1e9))
  for name, array in _arrays(first).items():
    np.testing.assert_array_equal(array, _arrays(quiet)[name], err_msg=name)
  assert len(_rows(quiet)['agent_steps']) == 1


def test_all_counts_agree(first):
  config, status = _config(), _status(first)
  agent = config.agent
  rows_trained = status['updates'] * agent.batch_size * agent.unroll_length
  # A Catch episode has 10 rows, of which LAST is no step.
  assert status['trained_steps'] == pytest.approx(0.9 * rows_trained, rel=0.02)
  assert status['frames'] == status['agent_steps'] >= config.total_steps
  # Only unrolls that wait to fill an item or a batch are not trained on.
  num_waiting = config.replay.unrolls_per_item + agent.batch_size
  not_trained = status['agent_steps'] - status['trained_steps']
  assert 0 <= not_trained <= num_waiting * agent.unroll_length
  num_unrolls = layout_lib.Layout.of(config).num_training
  in_unrolls_under_way = num_unrolls * agent.unroll_length
  played = status['episodes'] * 9
  assert played <= status['agent_steps'] + in_unrolls_under_way
  assert status['agent_steps'] - played <= num_unrolls * 9


def test_every_unroll_is_inserted_and_trained_once(tmp_path):
  config = _config(total_steps=10**6)
  program = single_process.SingleProcess(config, run_directory.create(tmp_path))
  put, trained = [], []
  real_put, real_train = program.writer.put, program.loop.train

  def put_and_note(env_ids, unrolls):
    put.extend(x.tobytes() for x in unrolls.inputs.observation)
    real_put(env_ids, unrolls)

  def train_and_note(sample):
    observations = np.swapaxes(sample.unroll.inputs.observation.numpy(), 0, 1)
    trained.extend(np.ascontiguousarray(x).tobytes() for x in observations)
    real_train(sample)

  program.writer.put, program.loop.train = put_and_note, train_and_note
  while len(trained) < 40:
    program.step()
  program.close()
  assert trained == put[: len(trained)]
  assert len(put) - len(trained) < config.agent.batch_size + config.replay.unrolls_per_item
  assert program.writer.each[0].num_confirmed >= len(trained)


def test_rows_of_the_log_never_go_back(first):
  rows = _rows(first)
  for name in ('agent_steps', 'frames', 'updates', 'episodes', 'trained_steps'):
    assert (np.diff(rows[name]) >= 0).all(), name
  np.testing.assert_array_equal(rows['updates'][:-1], np.arange(1, rows['updates'].size))
  assert rows['learner/policy_lag'][:-1].max() < 3  # the queue holds two batches


def test_the_status_of_a_finished_run(first):
  status = _status(first)
  assert status['status'] == 'finished'
  assert status['total_steps'] == _STEPS
  assert status['agent_steps'] >= _STEPS
  assert -1 <= status['episode_return_last_100'] <= 1
  assert -1 <= status['evaluation_return'] <= 1
  assert 0 <= status['policy_lag_mean'] <= status['policy_lag_max']
  assert status['resumptions'] == 0
  assert status['inference_batch_size']['max'] == 8  # all training environments
  assert {'gradient', 'publish', 'sample'} <= status['seconds']['learner'].keys()
  assert {'inference', 'unrolls'} <= status['seconds']['inference'].keys()


def _environments_of_batches(monkeypatch, path, **inference):
  """Returns the environments of each batch in a step, after the first one."""
  config = _config(inference=config_lib.InferenceConfig(**inference))
  program = single_process.SingleProcess(config, run_directory.create(path))
  program.step()  # it requests the first actions
  batches = []
  (server,) = program.servers
  step = server.step
  monkeypatch.setattr(server, 'step', lambda requests: batches.append(requests) or step(requests))
  program.step()
  program.close()
  return [np.concatenate([request.env_ids for request in batch]).tolist() for batch in batches]


def test_actors_are_answered_together_and_evaluation_apart(monkeypatch, tmp_path):
  training, evaluation = list(range(8)), [8, 9]
  assert _environments_of_batches(monkeypatch, tmp_path / 'all') == [training, evaluation]


@pytest.mark.parametrize('batch_size, expected', [(4, 3), (7, 2), (10, 1), (1, 3)])
def test_a_batch_of_actors_has_no_more_rows_than_configured(
  monkeypatch, tmp_path, batch_size, expected
):
  batches = _environments_of_batches(monkeypatch, tmp_path / 'run', batch_size=batch_size)
  assert len(batches) == expected and sum(batches, []) == list(range(10))


def test_the_last_checkpoint_is_of_the_last_update(first):
  saved = checkpoint.load(checkpoint.newest(first.checkpoints))
  status = _status(first)
  for name in ('agent_steps', 'frames', 'updates', 'episodes', 'trained_steps'):
    assert saved.meta['counts'][name] == status[name]
  assert int(saved.path.name) == status['updates']


def test_a_finished_run_is_extended_and_its_counters_go_on(tmp_path):
  run = _run(tmp_path / 'run', total_steps=300)
  before, rows_before = _status(run), _rows(run)
  config = _config(total_steps=600)
  saved_config.compare_for_resume(saved_config.load(run.config), config)
  assert single_process.run(config, run) == training_loop.FINISHED
  after, rows = _status(run), _rows(run)
  assert after['resumptions'] == 1
  for name in ('agent_steps', 'frames', 'updates', 'episodes', 'trained_steps', 'wall_s'):
    assert after[name] > before[name]
  assert after['agent_steps'] >= 600
  assert (np.diff(rows['agent_steps']) >= 0).all()
  for name, column in rows_before.items():
    np.testing.assert_array_equal(rows[name][: column.size], column, err_msg=name)
  assert rows['updates'][rows_before['updates'].size] == before['updates'] + 1


def test_a_killed_run_goes_on_from_its_checkpoint(tmp_path):
  config = _config(checkpoint=config_lib.CheckpointConfig(period_s=1e9))
  run = run_directory.create(tmp_path)
  program = single_process.SingleProcess(config, run)
  for target in (10, 20):
    while program.counters.snapshot().updates < target:
      program.step()
    if target == 10:
      program.loop.save()
      weights = _arrays(run)
  program.close()  # as after a kill, nothing is saved
  assert _rows(run)['updates'][-1] == 20
  resumed = single_process.SingleProcess(config, run)
  assert resumed.counters.snapshot().updates == 10
  assert _rows(run)['updates'][-1] == 10
  resumed.loop.save()  # saves what it has restored
  for name, array in _arrays(run).items():
    np.testing.assert_array_equal(array, weights[name], err_msg=name)
  while resumed.counters.snapshot().updates < 12:
    resumed.step()
  resumed.close()
  rows = _rows(run)
  np.testing.assert_array_equal(rows['updates'], np.arange(1, rows['updates'].size + 1))
  assert (np.diff(rows['agent_steps']) >= 0).all()


def test_a_stop_is_a_checkpoint_and_a_status(tmp_path):
  run = run_directory.create(tmp_path)
  asked = []

  def should_stop():
    asked.append(None)
    return len(asked) > 30

  assert single_process.run(_config(), run, should_stop) == training_loop.STOPPED
  status = _status(run)
  assert status['status'] == 'stopped'
  assert 0 < status['agent_steps'] < _STEPS
  saved = checkpoint.load(checkpoint.newest(run.checkpoints))
  assert saved.meta['counts']['updates'] == status['updates']


def test_a_warm_start_begins_with_the_other_runs_weights(first, tmp_path):
  config = _config(initial_checkpoint=str(first.path))
  run = run_directory.create(tmp_path)
  program = single_process.SingleProcess(config, run)
  program.loop.save()
  arrays = _arrays(run)
  for name, array in _arrays(first).items():
    if name.startswith('acting/'):
      np.testing.assert_array_equal(arrays[name], array, err_msg=name)
    else:
      assert (arrays[name] == 0).all(), name
  assert program.counters.snapshot().updates == 0
  program.close()


def test_a_checkpoint_of_another_network_is_refused(first, tmp_path):
  config = _config(initial_checkpoint=str(first.path))
  config = dataclasses.replace(config, network=dataclasses.replace(config.network, mlp_sizes=(17,)))
  with pytest.raises(types.UserError, match='shape') as error:
    single_process.SingleProcess(config, run_directory.create(tmp_path))
  assert len(str(error.value).splitlines()) <= 4


def test_memory_overlap_and_one_environment_group(tmp_path):
  config = _config()
  run = _run(
    tmp_path,
    total_steps=300,
    network=dataclasses.replace(config.network, core='lstm', core_size=8),
    agent=dataclasses.replace(config.agent, overlap=7),
    actor=config_lib.ActorConfig(environment_groups=1),
  )
  status = _status(run)
  assert status['agent_steps'] >= 300
  assert 0 <= status['agent_steps'] - status['trained_steps'] <= 6 * config.agent.unroll_length
