"""Environments in a process of another interpreter, used as if they were in this one."""

from __future__ import annotations

from collections.abc import Sequence
import contextlib
import os
import socket
import subprocess
from typing import Any

from absl import logging
import numpy as np
import tree

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import suite
from seed_acme.envs.interpreters import interpreter
from seed_acme.envs.interpreters import messages
from seed_acme.envs.interpreters import server
from seed_acme.envs.interpreters import spec_json

_END_S = 5.0  # a process that does not end within this time is killed
# Messages that an interpreter prints go here, because standard output may be JSON.
_STANDARD_ERROR = 2
# Some environments occasionally crash while they are made, like envpool's Football, which loads its
# fonts in several threads at once.
_ATTEMPTS = 3


class EnvironmentFailed(Exception):
  """An environment raised an error that is neither wrong input nor a `types.Failure`."""


class NoAnswer(types.Failure):
  """The environments' process did not answer in time."""


class ProcessLost(EnvironmentFailed):
  """The environments' process has ended."""


class _Process:
  """One process of `server`, and the connection to it."""

  def __init__(self, python: str, timeout_s: float):
    """timeout_s: limit for a call of `ask` with `has_limit`; 0 = no limit."""
    interpreter.require(python)
    self._python = python
    self._timeout_s = timeout_s or None
    self._connection, other = socket.socketpair()
    with other, contextlib.ExitStack() as unless_started:
      unless_started.callback(self._connection.close)
      self._process = subprocess.Popen(
        interpreter.command(python, server.__name__, str(other.fileno())),
        env={**os.environ, **interpreter.variables(python)},
        stdin=subprocess.DEVNULL,
        stdout=_STANDARD_ERROR,
        pass_fds=[other.fileno()],
      )
      unless_started.pop_all()

  def ask(
    self, header: dict[str, Any], arrays: Sequence[Any] = (), *, has_limit: bool = False
  ) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Returns the answer; raises the other end's error again, with its message.

    has_limit: wait no longer than the time-out.
    """
    self._connection.settimeout(self._timeout_s if has_limit else None)
    try:
      messages.send(self._connection, header, arrays)
      answer, rows = messages.receive(self._connection)
    except TimeoutError as error:
      self.kill()
      raise NoAnswer(
        f'environment {header.get("id", "")!r} under {self._python}: no answer within '
        f'{self._timeout_s:g} s (actor.reset_timeout_s)'
      ) from error
    except messages.Closed as error:
      raise ProcessLost(
        f'the process of {self._python} that had the environments was lost: {self._end()}'
      ) from error
    except BaseException:  # a signal: the next call would read what is left of this answer
      with contextlib.suppress(OSError):
        self._connection.shutdown(socket.SHUT_RDWR)  # then it closes its environments and ends
      raise
    _raise_error(answer)
    return answer, rows

  def _end(self) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired):
      self._process.wait(_END_S)
    code = self._process.returncode
    return f'killed by signal {-code}' if code is not None and code < 0 else f'exit code {code}'

  def close(self) -> None:
    """Closes the connection, and kills the process if it does not end by itself."""
    self._connection.close()
    try:
      self._process.wait(_END_S)
    except subprocess.TimeoutExpired:
      self.kill()

  def kill(self) -> None:
    self._process.kill()
    self._process.wait()


def _raise_error(answer: dict[str, Any]) -> None:
  kinds = {
    server.MISSING: types.MissingPackage,
    server.NOT_FINITE: types.NotFinite,
    server.USER_ERROR: types.UserError,
    server.FAILURE: types.Failure,
  }
  if 'error' in answer:
    raise kinds.get(answer['error'], EnvironmentFailed)(answer['message'])


def _named(config: config_lib.EnvironmentConfig) -> dict[str, Any]:
  return {'id': config.id, 'settings': config.settings}


class RemoteEnvironment:
  """A `core.VectorEnvironment` in a separate process, under another interpreter.

  Made and called from one thread. The process ends with `close`, and when that thread or this
  process ends in any way. An exception that a signal's handler raises within a call ends it, too.
  """

  def __init__(
    self,
    config: config_lib.EnvironmentConfig,
    python: str,
    num_environments: int,
    seed: int,
    renders: bool,
    timeout_s: float,
  ):
    """timeout_s: limit for creating the environments. A process that is lost meanwhile is
    restarted, at most twice."""
    self.num_environments = num_environments
    request = {
      'do': 'make',
      **_named(config),
      'num_environments': num_environments,
      'seed': seed,
      'renders': renders,
    }
    for attempt in range(1, _ATTEMPTS + 1):
      try:
        self._process, answer = _started(request, python, timeout_s)
        break
      except ProcessLost as error:
        if attempt == _ATTEMPTS:
          raise
        logging.warning('%s; starting another (%d of %d)', error, attempt + 1, _ATTEMPTS)
    self.spec = spec_json.decode(answer['spec'])
    self.can_render: bool = answer['can_render']

  def reset(self) -> types.VectorTimeStep:
    return self._row('reset')

  def step(self, actions: types.Nest) -> types.VectorTimeStep:
    """Steps all environments. actions: nest of `[E, ...]` that matches `spec.action`."""
    return self._row('step', tree.flatten_up_to(self.spec.action, actions, check_types=False))

  def _row(self, what: str, arrays: Sequence[Any] = ()) -> types.VectorTimeStep:
    _, rows = self._process.ask({'do': what}, arrays)
    step_type, reward, discount, score, *observation = rows
    return types.VectorTimeStep(
      step_type, reward, discount, tree.unflatten_as(self.spec.observation, observation), score
    )

  def render(self) -> np.ndarray:
    """Returns a picture of environment 0, `[H, W, 3]` uint8."""
    return self._process.ask({'do': 'render'})[1][0]

  def close(self) -> None:
    try:
      with contextlib.suppress(EnvironmentFailed):  # it is gone already
        self._process.ask({'do': 'close'})
    finally:
      self._process.close()


def _started(
  request: dict[str, Any], python: str, timeout_s: float
) -> tuple[_Process, dict[str, Any]]:
  """Starts a process, and returns it with its answer to a first request; closes it on failure."""
  process = _Process(python, timeout_s)
  try:
    answer, _ = process.ask(request, has_limit=True)
  except BaseException:
    process.close()
    raise
  return process, answer


def check(config: config_lib.EnvironmentConfig, python: str, timeout_s: float) -> None:
  """Runs `registry.check` in that interpreter."""
  _asked({'do': 'check', **_named(config)}, python, timeout_s)


def known_environments(python: str, timeout_s: float) -> list[suite.KnownEnvironments]:
  """Runs `registry.known_environments` in that interpreter."""
  return [
    suite.KnownEnvironments(
      name, description, tuple(settings), is_available, install, tuple(map(tuple, examples))
    )
    for name, description, settings, is_available, install, examples in _asked(
      {'do': 'known'}, python, timeout_s
    )['known']
  ]


def known_ids(suite_name: str, python: str, timeout_s: float) -> list[str]:
  """Runs `registry.known_ids` in that interpreter."""
  return _asked({'do': 'ids', 'suite': suite_name}, python, timeout_s)['ids']


def _asked(header: dict[str, Any], python: str, timeout_s: float) -> dict[str, Any]:
  """Starts a process for one request, and returns the answer."""
  process, answer = _started(header, python, timeout_s)
  process.close()
  return answer
