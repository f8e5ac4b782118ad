"""The single-process program is repeatable and resumable, and all its counts agree."""

import dataclasses
import json
import threading

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.envs import catch
from seed_acme.envs import checked
from seed_acme.learning import training_loop
from seed_acme.loggers import csv_file
from seed_acme.programs import single_process
from seed_acme.programs.trial import specification
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


def _create(path):
  """Makes a run folder that has the specification, for which a process would be started."""
  run = run_directory.create(path)
  specification.save(run, catch.Catch(1, seed=0).spec)
  return run


def _run(path, **changes):
  run = _create(path)
  config = _config(**changes)
  saved_config.save(config, run.config)
  assert single_process.run(config, run) == training_loop.FINISHED
  return run


@dataclasses.dataclass
class _Notes:
  """What a run has done. put, trained: observations of unrolls; batches: environments of each."""

  put: list = dataclasses.field(default_factory=list)
  trained: list = dataclasses.field(default_factory=list)
  batches: list = dataclasses.field(default_factory=list)
  num_confirmed: int = 0


def _take_notes(program, notes):
  (server,) = program.servers
  real_put, real_train, real_step = program.writer.put, program.loop.train, server.step

  def put(env_ids, unrolls):
    notes.put.extend(x.tobytes() for x in unrolls.inputs.observation)
    real_put(env_ids, unrolls)

  def train(sample):
    observations = np.swapaxes(sample.unroll.inputs.observation.numpy(), 0, 1)
    notes.trained.extend(np.ascontiguousarray(x).tobytes() for x in observations)
    notes.num_confirmed = program.writer.each[0].num_confirmed
    real_train(sample)

  def step(requests):
    notes.batches.append(np.concatenate([request.env_ids for request in requests]).tolist())
    return real_step(requests)

  program.writer.put, program.loop.train, server.step = put, train, step


@pytest.fixture(scope='module')
def notes():
  return _Notes()


@pytest.fixture(scope='module')
def first(tmp_path_factory, notes):
  """Makes a finished run, which no test may change, and takes notes of it."""

  class Noted(single_process.SingleProcess):
    def __init__(self, *arguments):
      super().__init__(*arguments)
      _take_notes(self, notes)

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(single_process, 'SingleProcess', Noted)
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


@pytest.mark.slow
def test_the_same_seed_gives_the_same_weights_to_the_bit_however_often_it_logs(first, tmp_path):
  """Training must not depend on when the clock causes rows to be written."""
  quiet = _run(tmp_path / 'quiet', learner=config_lib.LearnerConfig(log_period_s=1e9))
  arrays, arrays_again = _arrays(first), _arrays(quiet)
  assert arrays.keys() == arrays_again.keys()
  for name, array in arrays.items():
    np.testing.assert_array_equal(array, arrays_again[name], err_msg=name)
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


def test_every_unroll_is_inserted_and_trained_once(first, notes):
  assert len(notes.trained) > 100
  assert notes.trained == notes.put[: len(notes.trained)]
  most = _config().agent.batch_size + _config().replay.unrolls_per_item
  assert len(notes.put) - len(notes.trained) < most
  assert notes.num_confirmed >= len(notes.trained)


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


def _let_close_raise(monkeypatch):
  """Makes environments raise when they are closed; returns a list with an entry for each call."""
  calls = []

  def close(self):
    calls.append(None)
    raise RuntimeError('the window is gone')

  monkeypatch.setattr(checked.CheckedEnvironment, 'close', close)
  return calls


@pytest.mark.slow
def test_an_error_of_close_spoils_no_finished_run_and_becomes_one_notice(tmp_path, monkeypatch):
  calls = _let_close_raise(monkeypatch)
  run = _run(tmp_path, total_steps=40)  # checks that it has finished
  assert _status(run)['status'] == 'finished'
  [notice] = run.notices.read_text().splitlines()
  assert notice.startswith('environment catch: close() raised RuntimeError: the window is gone (')
  assert len(calls) == 3  # of every actor
  names = [thread.name for thread in threading.enumerate()]
  assert 'watch' not in names  # the rest was stopped


@pytest.mark.slow
def test_an_error_of_close_does_not_hide_what_has_ended_the_run(tmp_path, monkeypatch):
  calls, step = _let_close_raise(monkeypatch), catch.Catch.step

  def fail(self, actions):
    if len(steps) > 20:
      raise types.NotFinite('the reward is no number')
    steps.append(None)
    return step(self, actions)

  steps = []
  monkeypatch.setattr(catch.Catch, 'step', fail)
  with pytest.raises(types.NotFinite, match='the reward is no number'):
    single_process.run(_config(), _create(tmp_path))
  assert len(calls) == 3


def test_environments_are_closed_if_those_of_another_actor_cannot_be_made(tmp_path, monkeypatch):
  calls, make = _let_close_raise(monkeypatch), catch.Catch.__init__

  def make_some(self, num_environments, seed, **settings):
    make(self, num_environments, seed, **settings)
    if num_environments == 2:  # of the evaluation actor, the last one
      raise OSError('no more licences')

  monkeypatch.setattr(catch.Catch, '__init__', make_some)
  with pytest.raises(OSError, match='no more licences'):
    single_process.run(_config(), _create(tmp_path))
  assert len(calls) == 2
  assert 'watch' not in [thread.name for thread in threading.enumerate()]  # the rest was stopped


def test_actors_are_answered_together_and_evaluation_apart(first, notes):
  num_steps = len(notes.batches) // 2
  assert notes.batches == num_steps * [list(range(8)), [8, 9]]


@pytest.mark.parametrize('batch_size, expected', [(7, 2), (1, 3)])
def test_a_batch_of_actors_has_no_more_rows_than_configured(tmp_path, batch_size, expected):
  config = _config(inference=config_lib.InferenceConfig(batch_size=batch_size))
  program = single_process.SingleProcess(config, _create(tmp_path))
  notes = _Notes()
  _take_notes(program, notes)
  for _ in range(2):  # the first requests the first actions
    program.step()
  program.close()
  assert len(notes.batches) == expected and sum(notes.batches, []) == list(range(10))


def test_the_last_checkpoint_is_of_the_last_update(first):
  saved = checkpoint.load(checkpoint.newest(first.checkpoints))
  status = _status(first)
  for name in ('agent_steps', 'frames', 'updates', 'episodes', 'trained_steps'):
    assert saved.meta['counts'][name] == status[name]
  assert int(saved.path.name) == status['updates']


def test_evaluation_is_of_what_was_played_lately(first):
  saved = checkpoint.load_newest(first.checkpoints)
  window = saved.meta['episodes']['evaluation']
  steps = [ended_at for *_, ended_at in window]
  assert len(window) == 10 and steps == sorted(steps)  # of some twenty; few ended in the last tenth
  assert 0.4 * _STEPS < steps[0] < steps[-1] <= saved.counts.agent_steps
  assert _rows(first)['evaluation/return'][-1] == np.mean([score for score, *_ in window])


@pytest.mark.slow
def test_a_stopped_run_goes_on_to_a_higher_total_and_its_counters_too(first, tmp_path):
  run = _create(tmp_path / 'run')
  saved_config.save(_config(), run.config)
  asked = []

  def should_stop():
    asked.append(None)
    return len(asked) > 30

  assert single_process.run(_config(), run, should_stop) == training_loop.STOPPED
  before, rows_before = _status(run), _rows(run)
  assert before['status'] == 'stopped'
  assert 0 < before['agent_steps'] < _STEPS
  saved = checkpoint.load(checkpoint.newest(run.checkpoints))
  assert saved.meta['counts']['updates'] == before['updates']
  # The same seed gives the same rows; the last one was written because of the stop.
  for name, column in _rows(first).items():
    again = rows_before[name][:-1]
    np.testing.assert_array_equal(column[: again.size], again, err_msg=name)

  config = _config(total_steps=_STEPS + 50)
  saved_config.compare_for_resume(saved_config.load(run.config), config)
  assert single_process.run(config, run) == training_loop.FINISHED
  after, rows = _status(run), _rows(run)
  assert after['resumptions'] == 1
  for name in ('agent_steps', 'frames', 'updates', 'episodes', 'trained_steps', 'wall_s'):
    assert after[name] > before[name]
  assert after['agent_steps'] >= _STEPS + 50
  assert (np.diff(rows['agent_steps']) >= 0).all()
  for name, column in rows_before.items():
    np.testing.assert_array_equal(rows[name][: column.size], column, err_msg=name)
  assert rows['updates'][rows_before['updates'].size] == before['updates'] + 1


def test_a_killed_run_goes_on_from_its_checkpoint_and_another_seed_is_another_run(first, tmp_path):
  config = _config(checkpoint=config_lib.CheckpointConfig(period_s=1e9), seed=2)
  run = _create(tmp_path)
  program = single_process.SingleProcess(config, run)
  for target in (4, 8):
    while program.counters.snapshot().updates < target:
      program.step()
    if target == 4:
      program.loop.save()
      weights = _arrays(run)
  program.close()  # as after a kill, nothing is saved
  rows = _rows(run)
  assert rows['updates'][-1] == 8
  assert (rows['loss/total'] != _rows(first)['loss/total'][:8]).all()
  resumed = single_process.SingleProcess(config, run)
  assert resumed.counters.snapshot().updates == 4
  assert _rows(run)['updates'][-1] == 4
  resumed.loop.save()  # saves what it has restored
  for name, array in _arrays(run).items():
    np.testing.assert_array_equal(array, weights[name], err_msg=name)
  resumed.close()


def test_a_warm_start_begins_with_the_other_runs_weights(first, tmp_path):
  config = _config(initial_checkpoint=str(first.path))
  run = _create(tmp_path)
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
    single_process.SingleProcess(config, _create(tmp_path))
  assert len(str(error.value).splitlines()) <= 4


@pytest.mark.slow
def test_memory_overlap_and_one_environment_group(tmp_path):
  config = _config()
  run = _run(
    tmp_path,
    total_steps=200,
    network=dataclasses.replace(config.network, core='lstm', core_size=8),
    agent=dataclasses.replace(config.agent, overlap=7),
    actor=config_lib.ActorConfig(environment_groups=1),
  )
  status = _status(run)
  assert status['agent_steps'] >= 200
  assert 0 <= status['agent_steps'] - status['trained_steps'] <= 6 * config.agent.unroll_length
