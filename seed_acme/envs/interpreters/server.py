"""`python -m seed_acme.envs.interpreters.server FD`: serves environments to another interpreter.

Answers one request at a time over the socket with the given descriptor, until it is closed.
Runs under the Python of `actor.python`, and imports only what actors import.
"""

from __future__ import annotations

from collections.abc import Callable
import os
import socket
import sys
import traceback
from typing import Any

import numpy as np
import tree

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.envs import process_state
from seed_acme.envs import registry
from seed_acme.envs.interpreters import messages
from seed_acme.envs.interpreters import spec_json
from seed_acme.libraries import parent_process

# Kinds of errors.
MISSING, NOT_FINITE, USER_ERROR, FAILURE, OTHER = (
  'missing',
  'not_finite',
  'user_error',
  'failure',
  'other',
)
_Answer = tuple[dict[str, Any], list[Any]]


class _Server:
  """Holds at most one vector of environments."""

  def __init__(self) -> None:
    self._made: core.VectorEnvironment | None = None

  def answer(self, header: dict[str, Any], arrays: list[np.ndarray]) -> _Answer:
    """Answers one request; the caller sends any error to the other end."""
    actions: dict[str, Callable[[], _Answer]] = {
      'check': lambda: self._check(header),
      'known': self._known,
      'ids': lambda: ({'ids': registry.known_ids(header['suite'])}, []),
      'make': lambda: self._make(header),
      'reset': lambda: _row(self._environment.reset()),
      'step': lambda: self._step(arrays),
      'render': self._render,
      'close': self._closed,
    }
    return actions[header['do']]()

  @property
  def _environment(self) -> core.VectorEnvironment:
    assert self._made is not None, 'nothing was made'
    return self._made

  def _check(self, header: dict[str, Any]) -> _Answer:
    registry.check(_config(header))
    return {}, []

  def _known(self) -> _Answer:
    return {'known': [list(known) for known in registry.known_environments()]}, []

  def _make(self, header: dict[str, Any]) -> _Answer:
    self._made = registry.make(
      _config(header), header['num_environments'], header['seed'], renders=header['renders']
    )
    can_render = hasattr(self._made, 'render') and getattr(self._made, 'can_render', True)
    return {'spec': spec_json.encode(self._made.spec), 'can_render': bool(can_render)}, []

  def _step(self, arrays: list[np.ndarray]) -> _Answer:
    # If the specification is a single array, `unflatten_as` returns the array itself.
    actions = tree.unflatten_as(self._environment.spec.action, arrays)
    return _row(self._environment.step(actions))

  def _render(self) -> _Answer:
    environment: Any = self._environment
    return {}, [environment.render()]

  def _closed(self) -> _Answer:
    self.close()
    return {}, []

  def close(self) -> None:
    """Closes the environments, if there are any."""
    environment, self._made = self._made, None
    if environment is not None:
      environment.close()


def _config(header: dict[str, Any]) -> config_lib.EnvironmentConfig:
  return config_lib.EnvironmentConfig(header['id'], header['settings'])


def _row(row: types.VectorTimeStep) -> _Answer:
  return {}, [row.step_type, row.reward, row.discount, row.score, *tree.flatten(row.observation)]


def _error(error: Exception) -> dict[str, Any]:
  """Encodes an error as a header."""
  kinds = {
    types.MissingPackage: MISSING,
    types.NotFinite: NOT_FINITE,
    types.UserError: USER_ERROR,
    types.Failure: FAILURE,
  }
  for type_, kind in kinds.items():  # the special ones first
    if isinstance(error, type_):
      return {'error': kind, 'message': str(error)}
  frame = traceback.extract_tb(error.__traceback__)[-1]
  place = f'{os.path.basename(frame.filename)}:{frame.lineno}'
  return {'error': OTHER, 'message': f'{type(error).__name__}: {error} ({place})'}


def serve(connection: socket.socket) -> None:
  """Answers requests until the other end closes the connection; then closes the environments."""
  server = _Server()
  try:
    while True:
      header, arrays = messages.receive(connection)
      try:
        answer, rows = server.answer(header, arrays)
      except Exception as error:  # sent to the other end
        answer, rows = _error(error), []
        if answer['error'] == OTHER:
          traceback.print_exc()
      messages.send(connection, answer, rows)
  except messages.Closed:
    try:
      server.close()
    except Exception:
      traceback.print_exc()  # nobody is left to be told


def main() -> None:
  # If the other end has died before this call, the first `receive` finds the connection closed.
  parent_process.die_with_it()
  process_state.ignore_ctrl_c()
  process_state.print_on_standard_error()
  with socket.socket(fileno=int(sys.argv[1])) as connection:
    serve(connection)
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(0)  # without waiting for what environments may have left running


if __name__ == '__main__':
  main()
