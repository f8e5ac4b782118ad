"""Environments in a process of a copy of this interpreter, which counts as another one."""

import os
import signal
import sys
import time

import numpy as np
import psutil
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import registry
from seed_acme.envs.interpreters import remote
from seed_acme.envs.interpreters import server
from seed_acme.testing import environment_contract
from tests.envs.interpreters import pythons

_MINE = 'tests.envs.interpreters.remote_environments'
_BLIND = 'tests.scripted_environments:TruncatingEnvironment'
_TIMEOUT_S = 60.0


@pytest.fixture(scope='module')
def python(tmp_path_factory):
  return pythons.this_one(tmp_path_factory.mktemp('python'))


def _config(name, **settings):
  return config_lib.EnvironmentConfig(name, settings)


def _make(python, name, num_environments=2, renders=False, timeout_s=_TIMEOUT_S, **settings):
  config = _config(name, **settings)
  return remote.RemoteEnvironment(config, python, num_environments, 1, renders, timeout_s)


def _zeros(environment):
  return np.zeros(environment.num_environments, np.int32)


@pytest.mark.slow
class TestNestedContract(environment_contract.EnvironmentContract):
  """The contract with an environment whose observations and actions are nests."""

  @pytest.fixture(autouse=True)
  def _python(self, python):
    self._path = python

  def make_environment(self, num_environments, seed):
    config = _config('tests.scripted_environments:NestedEnvironment')
    return remote.RemoteEnvironment(config, self._path, num_environments, seed, False, _TIMEOUT_S)


def test_it_is_the_environment_that_would_be_here(python):
  here = registry.make(_config('catch', rows=5), 3, seed=1)
  there = _make(python, 'catch', 3, rows=5)
  assert there.spec == here.spec
  rows = [(here.reset(), there.reset())]
  actions = np.random.default_rng(1).integers(0, 3, (40, 3)).astype(np.int32)
  rows += [(here.step(action), there.step(action)) for action in actions]
  for ours, theirs in rows:
    environment_contract.assert_equal_rows(ours, theirs)
  there.close()
  here.close()


def test_a_greeting_stays_out_of_what_this_process_prints(tmp_path, capfd):
  """Programs read the output of `list --python=... --json`."""
  known = remote.known_environments(pythons.greeting(tmp_path), _TIMEOUT_S)
  assert {suite.id for suite in known} >= {'catch', 'atari:GAME'}
  assert capfd.readouterr().out == ''


@pytest.mark.slow
def test_ids_of_a_suite_there(python):
  assert remote.known_ids('catch', python, _TIMEOUT_S) == ['catch']
  with pytest.raises(types.UserError, match="unknown suite 'catsh'.*near: catch"):
    remote.known_ids('catsh', python, _TIMEOUT_S)


@pytest.mark.slow
def test_wrong_input_is_wrong_input_here_too(python):
  with pytest.raises(types.UserError, match="has no setting 'rowz': expected rows"):
    _make(python, 'catch', rowz=3)
  with pytest.raises(types.UserError, match='near: catch'):
    remote.check(_config('catsh'), python, _TIMEOUT_S)
  remote.check(_config('catch'), python, _TIMEOUT_S)


def test_what_an_environment_raises_is_told_with_its_place(python):
  environment = _make(python, f'{_MINE}:ending', how='raises')
  environment.reset()
  environment.step(_zeros(environment))
  with pytest.raises(
    remote.EnvironmentFailed,
    match=r'ZeroDivisionError: the floor is missing \(remote_environments.py:\d+\)',
  ):
    environment.step(_zeros(environment))
  environment.close()


@pytest.mark.parametrize(
  ('how', 'kind', 'message'),
  [
    ('fails', types.Failure, 'a disk is full'),
    ('is not finite', types.NotFinite, 'reward: expected a finite scalar, got nan'),
  ],
)
def test_a_kind_of_error_stays_the_same(python, how, kind, message):
  environment = _make(python, f'{_MINE}:ending', how=how)
  environment.reset()
  environment.step(_zeros(environment))
  with pytest.raises(kind, match=message):
    environment.step(_zeros(environment))
  environment.close()


def test_a_process_that_dies_is_an_error_that_says_how(python):
  environment = _make(python, f'{_MINE}:ending', how='dies')
  environment.reset()
  environment.step(_zeros(environment))
  with pytest.raises(remote.EnvironmentFailed, match='was lost: killed by signal 9'):
    environment.step(_zeros(environment))
  environment.close()


@pytest.mark.slow
def test_a_crash_while_it_is_made_is_tried_again(python, tmp_path):
  environment = _make(python, f'{_MINE}:crashing', folder=str(tmp_path), times=2)
  assert (environment.reset().step_type == types.FIRST).all()
  environment.close()
  assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.slow
def test_one_that_always_crashes_is_given_up(python, tmp_path):
  with pytest.raises(remote.ProcessLost, match='was lost: killed by signal 9'):
    _make(python, f'{_MINE}:crashing', folder=str(tmp_path), times=9)
  assert len(list(tmp_path.iterdir())) == 3


def test_one_that_is_never_made_is_given_up(python):
  before = set(psutil.Process().children(recursive=True))
  with pytest.raises(types.Failure, match=r'no answer within 2 s \(actor.reset_timeout_s\)'):
    _make(python, f'{_MINE}:ending', timeout_s=2.0, how='hangs when made')
  assert set(psutil.Process().children(recursive=True)) <= before


@pytest.mark.slow
def test_pictures_cross(python):
  environment = _make(python, f'{_MINE}:drawn', renders=True)
  assert environment.can_render
  environment.reset()
  np.testing.assert_array_equal(environment.render(), np.full((4, 5, 3), 7, np.uint8))
  environment.close()
  with pytest.raises(types.UserError, match='cannot show its screen'):
    _make(python, _BLIND, renders=True)
  blind = _make(python, _BLIND)
  assert not blind.can_render
  blind.close()


def test_what_it_prints_disturbs_nothing(python):
  environment = _make(python, f'{_MINE}:talking')
  assert (environment.reset().step_type == types.FIRST).all()
  environment.close()


def test_its_process_ends_with_it(python):
  before = set(psutil.Process().children(recursive=True))
  environment = _make(python, 'catch')
  [process] = set(psutil.Process().children(recursive=True)) - before
  environment.close()
  assert not process.is_running()


def _child():
  """Returns the only child of this process that runs environments."""
  [child] = [one for one in psutil.Process().children() if server.__name__ in one.cmdline()]
  return child


def test_ctrl_c_leaves_its_end_to_ours(python):
  environment = _make(python, 'catch')
  _child().send_signal(signal.SIGINT)
  assert (environment.reset().step_type == types.FIRST).all()
  environment.close()


def test_an_interrupted_call_ends_it_and_closes_its_environments(python, monkeypatch, tmp_path):
  """What is left of the answer must not become that of the next call, which is `close`."""
  closed = tmp_path / 'closed'
  environment = _make(python, f'{_MINE}:leaving', path=str(closed))
  child = _child()

  def interrupted(connection):
    connection.recv(1)
    raise KeyboardInterrupt

  with monkeypatch.context() as patch:
    patch.setattr(remote.messages, 'receive', interrupted)
    with pytest.raises(KeyboardInterrupt):
      environment.reset()
  environment.close()
  assert not child.is_running() and closed.exists()


@pytest.mark.parametrize('how', ['waits', 'hangs'])
def test_its_process_ends_when_ours_is_killed(python, how):
  """Also if its environment never returns from a step."""
  code = (
    'import os, signal\n'
    'import numpy as np\n'
    'from seed_acme import config\n'
    'from seed_acme.envs.interpreters import remote\n'
    f'of = config.EnvironmentConfig("{_MINE}:ending", dict(how={how!r}))\n'
    f'made = remote.RemoteEnvironment(of, {python!r}, 1, 1, False, 60)\n'
    'made.reset()\n'
    'made.step(np.zeros(1, np.int32))\n'
    'print(made._process._process.pid, flush=True)\n'
    'signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), 9))\n'
    'signal.setitimer(signal.ITIMER_REAL, 0.5)\n'
    'while True: made.step(np.zeros(1, np.int32))\n'
  )
  done = psutil.subprocess.run(
    [sys.executable, '-c', code], stdout=psutil.subprocess.PIPE, text=True, check=False
  )
  pid = int(done.stdout)
  give_up = time.monotonic() + 30
  while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
    assert time.monotonic() < give_up, 'the process of the environments outlives ours'
    time.sleep(0.05)
  assert os.getpid() != pid


def test_what_there_is_can_be_listed(python):
  there = remote.known_environments(python, _TIMEOUT_S)
  assert there == registry.known_environments()
