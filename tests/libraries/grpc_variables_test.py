"""Programs started while gRPC is in use, and hosts that it reaches without the machine's proxy."""

import os
import pathlib
import subprocess
import sys

import pytest

from seed_acme.libraries import grpc_variables

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_OURS = ['localhost', '127.0.0.1', '::1']


def _environment(**variables):
  """Returns the environment of a user who has set only `variables` for gRPC."""
  unset = ('GRPC_ENABLE_FORK_SUPPORT', 'no_grpc_proxy', 'no_proxy', 'NO_PROXY')
  kept = {name: value for name, value in os.environ.items() if name not in unset}
  return {**kept, 'PYTHONPATH': str(_ROOT), **variables}


@pytest.mark.parametrize('module', ['seed_acme', 'tests.conftest'])
def test_children_forked_beside_live_channels_do_their_work(module):
  """gRPC's fork handlers print that they ran, and sometimes crash the child."""
  script = pathlib.Path(__file__).with_name('forking.py')
  ended = subprocess.run(
    [sys.executable, script, module],
    env=_environment(GRPC_VERBOSITY='INFO'),
    capture_output=True,
    text=True,
    timeout=200,
    check=True,
  )
  assert ended.stdout == 'done\n'
  assert 'fork() handlers' not in ended.stderr


def test_what_the_user_has_set_about_forks_stays():
  code = 'import os, seed_acme; print(os.environ["GRPC_ENABLE_FORK_SUPPORT"])'
  environment = _environment(GRPC_ENABLE_FORK_SUPPORT='1')
  assert subprocess.check_output([sys.executable, '-c', code], env=environment) == b'1\n'


@pytest.fixture
def given(monkeypatch):
  """Sets the hosts that gRPC is told to reach without a proxy."""
  monkeypatch.setenv('no_grpc_proxy', '')  # so that it is restored afterwards

  def give(**variables):
    for name in ('no_grpc_proxy', 'no_proxy', 'NO_PROXY'):
      monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
      monkeypatch.setenv(name, value)

  return give


def _excepted():
  return os.environ[grpc_variables.PAST_PROXY].split(',')


@pytest.mark.parametrize(
  'variables, kept',
  [
    ({}, []),
    ({'no_proxy': 'db.example.com, .corp'}, ['db.example.com', '.corp']),
    ({'NO_PROXY': 'db.example.com'}, ['db.example.com']),
    ({'no_proxy': 'a', 'NO_PROXY': 'b'}, ['a']),
    ({'no_grpc_proxy': 'g', 'no_proxy': 'a'}, ['g']),
    ({'no_proxy': 'localhost'}, []),
  ],
)
def test_this_machine_is_reached_past_the_proxy_beside_what_the_user_has_excepted(
  given, variables, kept
):
  given(**variables)
  grpc_variables.set_defaults()
  grpc_variables.set_defaults()  # as each process does that one of ours has started
  assert sorted(_excepted()) == sorted([*kept, *_OURS])


def test_the_hosts_of_addresses_are_added_once(given):
  given(no_proxy='localhost')
  for _ in range(2):
    grpc_variables.reach_addresses(['learner.corp:8000', '10.0.0.1:1', '[fd00::1]:9'])
  assert _excepted() == ['localhost', 'learner.corp', '10.0.0.1', 'fd00::1']


def test_the_import_does_it(given):
  code = 'import os, sys, seed_acme; print(os.environ["no_grpc_proxy"], "grpc" in sys.modules)'
  told = subprocess.check_output([sys.executable, '-c', code], env=_environment(no_proxy='a'))
  assert told.decode() == f'{",".join(["a", *_OURS])} False\n'
