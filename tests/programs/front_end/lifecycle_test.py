"""How a run has ended, according to its processes and its checkpoints."""

import contextlib
import dataclasses
import pathlib

import numpy as np
import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.envs import catch
from seed_acme.files import local
from seed_acme.programs.front_end import launches
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.front_end import warm_start
from seed_acme.programs.system import processes
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import opening
from seed_acme.storage import run_directory
from seed_acme.storage import run_locks
from seed_acme.storage import saved_config


@dataclasses.dataclass
class _Attempt:
  stop_signal: int | None = None
  is_stopped: bool = False
  has_begun: bool = True
  trains: bool = True
  has_finished: bool = False
  cpu_s: dict = dataclasses.field(default_factory=dict)


@pytest.mark.parametrize(
  'attempt, code, status_updates, exit_code, status',
  [
    (_Attempt(), 0, 7, 0, 'finished'),
    (_Attempt(), 0, 9, 1, 'failed'),
    (_Attempt(15, True), 0, 7, 143, 'stopped'),
    (_Attempt(15, True, has_finished=True), 0, 7, 143, 'finished'),
    (_Attempt(15, True), 0, 9, 1, 'stopped'),
    (_Attempt(None, True), 0, 9, 1, 'stopped'),
    (_Attempt(15, True, trains=False), 0, 9, 143, 'stopped'),  # a kill before has lost them
    (_Attempt(trains=False), 0, 9, 1, 'failed'),
    (_Attempt(), 1, 9, 1, 'failed'),
    (_Attempt(), 2, 9, 2, 'failed'),  # such as an environment that contradicts its specification
  ],
)
def test_an_orderly_end_is_one_after_which_nothing_is_lost(
  tmp_path, attempt, code, status_updates, exit_code, status
):
  run = run_directory.create(tmp_path / 'run')
  counts = {'updates': 7, 'agent_steps': 70}
  checkpoint_writer.save(run.checkpoints, 7, {'w': np.zeros(2)}, {'counts': counts}, keep=1)
  local.write_json(run.status, {'updates': status_updates, 'agent_steps': 70, 'status': 'running'})
  outcome = lifecycle._conclude(registry.load('catch_vtrace'), run, attempt, code, None, print)
  assert (outcome.exit_code, outcome.summary['status']) == (exit_code, status)
  assert outcome.summary['lost_updates'] == status_updates - 7
  assert local.read_json(run.summary) == outcome.summary
  if exit_code != 1:
    assert not run.failure.exists()
  elif code == 0:
    assert '2 updates and 0 steps are lost' in outcome.failure['message']
    assert processes.read_failure(run) == outcome.failure


def test_wrong_input_at_the_start_leaves_the_summary_of_the_start_before(tmp_path):
  run = run_directory.create(tmp_path / 'run')
  local.write_json(run.status, {'updates': 9, 'agent_steps': 70, 'status': 'running'})
  local.write_json(run.summary, {'status': 'stopped'})
  attempt = _Attempt(has_begun=False)
  outcome = lifecycle._conclude(registry.load('catch_vtrace'), run, attempt, 2, None, print)
  assert outcome == (2, {}, None)
  assert local.read_json(run.summary) == {'status': 'stopped'}


@pytest.mark.parametrize('is_new', [True, False])
def test_a_configuration_that_the_learner_refuses_is_not_kept(tmp_path, monkeypatch, is_new):
  class Refused(_Attempt):
    def __init__(self, *_):
      super().__init__(has_begun=False)
      self.request_stop = lambda number: None
      self.run = lambda: processes.USER_ERROR_EXIT

  run = run_directory.create(tmp_path / 'run')
  first = registry.load('catch_vtrace')
  if not is_new:
    saved_config.save(first, run.config)
  monkeypatch.setattr(lifecycle.attempt_lib, 'Attempt', Refused)
  wrong = dataclasses.replace(first, seed=5)
  outcome = lifecycle.run(wrong, run, lambda show: (), launches.Supervision())
  assert outcome.exit_code == 2
  assert run.config.exists() != is_new
  if not is_new:
    assert saved_config.load(run.config) == first


@pytest.mark.parametrize(
  'failures, max_meetings, starts',
  [
    (['own', 'own'], 2, 2),
    (['other', 'own', 'own'], 2, 2),
    (['met', 'own', 'own'], 0, 2),
    (['own', 'met', 'met', 'own'], 2, 4),
    (['met', 'met', 'met', 'met'], 2, 4),
    (['other', 'met', None], 2, 3),
  ],
)
def test_a_host_that_is_met_before_it_ends_costs_no_restart(
  tmp_path, failures, max_meetings, starts
):
  """After a failure, a host that restarts at once may meet another that is still shutting down."""
  run = run_directory.create(tmp_path / 'run')
  left = list(failures)

  def fail():
    processes.clear_failure(run)
    kind = left.pop(0)
    if kind is None:
      return 0
    error = types.Failure('here') if kind == 'own' else types.OtherNodeFailed('learner/1')
    if kind == 'met':
      error.has_begun = False
    with pytest.raises(SystemExit), processes.reported_failures(run, 'learner/0', 'log'):
      raise error
    return processes.FAILURE_EXIT

  attempt = _Attempt()
  attempt.run = fail
  lifecycle._attempted(attempt, run, launches.Supervision(1, max_meetings))
  assert len(failures) - len(left) == starts


@pytest.mark.parametrize('has_checkpoint', [True, False])
def test_a_run_whose_checkpoints_are_gone_is_not_begun_anew(tmp_path, has_checkpoint):
  run, config = run_directory.create(tmp_path / 'run'), registry.load('catch_vtrace')
  saved_config.save(config, run.config)
  local.write_json(run.summary, {'has_checkpoint': has_checkpoint, 'saved_agent_steps': 25_056})
  if has_checkpoint:
    with pytest.raises(types.UserError, match='lost its checkpoints, of 25,056 steps'):
      lifecycle.check_resume(config, run)
  else:
    lifecycle.check_resume(config, run)


class _Ended(_Attempt):
  """One that ends as soon as it is started."""

  def __init__(self, *_):
    super().__init__(is_stopped=True)
    self.request_stop = lambda number: None
    self.run = lambda: 0


@pytest.mark.parametrize('is_saved', [True, False])
def test_steps_that_were_made_before_the_first_checkpoint_are_told_of(
  tmp_path, monkeypatch, is_saved
):
  monkeypatch.setattr(lifecycle.attempt_lib, 'Attempt', _Ended)
  run, shown = run_directory.create(tmp_path / 'run'), []
  local.write_json(run.status, {'updates': 0, 'agent_steps': 1_700})
  if is_saved:
    counts = {'updates': 7, 'agent_steps': 1_700}
    checkpoint_writer.save(run.checkpoints, 7, {}, {'counts': counts}, keep=1)
  lifecycle.run(
    registry.load('catch_vtrace'), run, lambda show: (), launches.Supervision(show=shown.append)
  )
  assert any('without the 1,700 steps' in line for line in shown) != is_saved


def test_a_folder_in_the_place_of_latest_is_told_of(tmp_path, monkeypatch):
  monkeypatch.setattr(lifecycle.attempt_lib, 'Attempt', _Ended)
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'runs' / 'latest').mkdir(parents=True)
  shown = []
  lifecycle.run(
    registry.load('catch_vtrace'),
    run_directory.new('catch'),
    lambda show: (),
    launches.Supervision(show=shown.append),
  )
  assert 'Warning: runs/latest is no link, so it does not point to this run' in shown


def _made(name):
  run = run_directory.create(pathlib.Path('runs', name))
  counts = {'updates': 7, 'agent_steps': 1_700}
  saved_config.save(registry.load('catch_vtrace'), run.config)
  checkpoint_writer.save(run.checkpoints, 7, {}, {'counts': counts}, keep=1)
  return run


@pytest.mark.parametrize(
  ('name', 'kept'),
  [('runs/latest', ''), ('runs/latest@7', '@7'), ('runs/latest/checkpoints', '/checkpoints')],
)
def test_a_run_starts_from_the_run_that_was_the_latest(tmp_path, monkeypatch, name, kept):
  monkeypatch.setattr(lifecycle.attempt_lib, 'Attempt', _Ended)
  monkeypatch.chdir(tmp_path)
  run_directory.point_latest(_made('first'))
  config = dataclasses.replace(registry.load('catch_vtrace'), initial_checkpoint=name)
  for _ in range(2):  # the second time, the link points to the run itself
    now, new = lifecycle.prepare(config, 'runs/new')
    lifecycle.run(now, new, lambda show: (), launches.Supervision())
    assert pathlib.Path('runs/latest').resolve() == new.path.resolve()
    saved = saved_config.load(new.config).initial_checkpoint
    assert now.initial_checkpoint == saved == f'{tmp_path / "runs" / "first"}{kept}'
    assert opening.load_checkpoint(saved).counts.updates == 7


@pytest.mark.parametrize('asked', ['runs/latest', 'runs/latest@best'])
def test_a_run_that_began_from_no_run_goes_on_from_none(tmp_path, monkeypatch, asked):
  monkeypatch.chdir(tmp_path)
  run_directory.point_latest(_made('first'))
  config = dataclasses.replace(registry.load('catch_vtrace'), initial_checkpoint=asked)
  with pytest.raises(types.UserError, match="initial_checkpoint: '' -> /.*/first"):
    lifecycle.prepare(config, 'runs/first')


def test_another_checkpoint_of_the_latest_run_is_another_start(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  run_directory.point_latest(_made('first'))
  config = dataclasses.replace(registry.load('catch_vtrace'), initial_checkpoint='runs/latest@7')
  now, new = lifecycle.prepare(config, 'runs/new')
  saved_config.save(now, new.config)
  with pytest.raises(types.UserError, match='initial_checkpoint: .*/first@7 -> .*/first\n'):
    lifecycle.prepare(dataclasses.replace(config, initial_checkpoint='runs/latest'), 'runs/new')


@pytest.mark.parametrize('name', ['{}/again/latest', 'runs/../runs/latest'])
def test_the_link_may_be_named_by_another_path(tmp_path, monkeypatch, name):
  monkeypatch.chdir(tmp_path)
  run_directory.point_latest(_made('first'))
  (tmp_path / 'again').symlink_to('runs')
  assert warm_start.behind_latest(name.format(tmp_path)) == str(tmp_path / 'runs' / 'first')


@pytest.mark.parametrize('name', ['', 'runs/first', 'gs://bucket/runs/latest'])
def test_any_other_start_is_kept_as_it_is_named(tmp_path, monkeypatch, name):
  monkeypatch.chdir(tmp_path)
  run_directory.point_latest(_made('first'))
  config = dataclasses.replace(registry.load('catch_vtrace'), initial_checkpoint=name)
  assert warm_start.fixed(config) == config


def test_a_run_that_another_program_begins_during_the_trial_is_not_written(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  run = _made('first')
  with contextlib.ExitStack() as others:

    def check(configs):
      others.enter_context(run_locks.trains(run))
      return [catch.Catch(1, seed=0).spec for _ in configs]

    monkeypatch.setattr(lifecycle.door, 'check', check)
    with pytest.raises(types.UserError, match='is being trained by another program'):
      lifecycle.prepare(registry.load('catch_vtrace'), 'runs/first')
  assert not run.specification.exists()


def test_a_start_that_began_nothing_leaves_the_latest_run(tmp_path, monkeypatch):
  class Refused(_Ended):
    def __init__(self, *_):
      super().__init__()
      self.has_begun = False
      self.run = lambda: processes.USER_ERROR_EXIT

  monkeypatch.setattr(lifecycle.attempt_lib, 'Attempt', Refused)
  monkeypatch.chdir(tmp_path)
  first = _made('first')
  run_directory.point_latest(first)
  outcome = lifecycle.run(
    registry.load('catch_vtrace'),
    run_directory.new('catch'),
    lambda show: (),
    launches.Supervision(),
  )
  assert outcome.exit_code == processes.USER_ERROR_EXIT and not outcome.summary
  assert pathlib.Path('runs/latest').resolve() == first.path.resolve()
