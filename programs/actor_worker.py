"""The process that really acts: `python -m seed_acme.programs.actor_worker`.

Started by the supervisor in the actor's node, with a `WorkerSpec` on its standard input.
Imports no TensorFlow, Reverb, Sonnet or Launchpad: it costs its environments and little more.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import logging
import os
import pickle
import signal
import sys
import time
import traceback

import numpy as np

from seed_acme import actor as actor_lib
from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import run_directory
from seed_acme import types
from seed_acme.envs import registry as environments
from seed_acme.inference import transports
from seed_acme.inference import wire
from seed_acme.programs import actors
from seed_acme.programs import processes

_REPORT_PERIOD_S = 1.0


class End(enum.Enum):
  """How a worker ended, as its supervisor has to know it."""

  OVER = 'over'  # with the run
  FAILED = 'failed'
  WRONG_INPUT = 'wrong_input'  # no new start would mend it
  SERVER_LOST = 'server_lost'  # and waited for in vain
  SERVER_RESTARTED = 'server_restarted'  # nobody's fault: begin anew


@dataclasses.dataclass(frozen=True)
class WorkerSpec:
  """All that a worker is told.

  address: of the inference server. attempt: how often this actor was started before.
  report_fd: where the reason of a failure goes, as one JSON object.
  """

  config: config_lib.ExperimentConfig
  run_dir: run_directory.RunDirectory
  index: int
  attempt: int
  address: str
  token: str
  report_fd: int


def make_remote_actor(
  config: config_lib.ExperimentConfig, index: int, attempt: int, address: str, token: str
) -> actor_lib.Actor:
  """An actor whose groups are connected to the inference server at `address`."""
  spec = environments.environment_spec(config.environment)

  def connect(env_ids: np.ndarray) -> core.InferenceChannel:
    return transports.connect(
      config.transport.kind,
      address,
      token,
      wire.GroupCodec(spec, env_ids.size),
      env_ids,
      config.actor.connect_timeout_s,
    )

  return actors.make_actor(config, index, attempt, run_seed=None, connect=connect)


class _Reports:
  """Writes where the actor's time goes, about once a second; called between its steps."""

  def __init__(self, actor: actor_lib.Actor, run_dir: run_directory.RunDirectory, index: int):
    self._actor = actor
    self._path = run_dir.logs / f'actor_{index}_seconds.json'
    self._next_s = 0.0

  def maybe_write(self) -> None:
    now = time.monotonic()
    if now >= self._next_s:
      self._next_s = now + _REPORT_PERIOD_S
      run_directory.write_json(self._path, self._actor.timer.snapshot())


def run(spec: WorkerSpec) -> bool:
  """Acts until the run is over, or SIGTERM; returns whether it was SIGTERM."""
  stopped = False
  actor: actor_lib.Actor | None = None

  def stop(*_: object) -> None:
    nonlocal stopped
    stopped = True
    raise core.ChannelClosed  # out of whatever call the main thread is in

  signal.signal(signal.SIGTERM, stop)
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher decides what Ctrl-C means
  try:
    actor = make_remote_actor(spec.config, spec.index, spec.attempt, spec.address, spec.token)
    reports = _Reports(actor, spec.run_dir, spec.index)

    def should_stop() -> bool:
      reports.maybe_write()
      return stopped

    actor.run(should_stop)
  except core.ChannelTaken:
    raise types.UserError(
      f'another actor has taken over the environments of actor/{spec.index}: '
      'give every actor of a run another --index'
    ) from None
  except core.ChannelClosed:
    pass
  finally:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if actor is not None:
      actor.close()
  return stopped


def main() -> int:
  """Exit code 0 when the run is over, 143 after SIGTERM, 1 or 2 after a failure; but for
  SIGTERM the end is on `report_fd`, too."""
  processes.end_with_parent()
  spec: WorkerSpec = pickle.load(sys.stdin.buffer)  # from our own supervisor, not a network
  logging.basicConfig(format=f'actor/{spec.index}: %(message)s', level=logging.WARNING)
  try:
    if run(spec):
      return 128 + signal.SIGTERM
    _report(spec, End.OVER, '')
    return 0
  except Exception as error:  # reported to the supervisor
    end = _end(error)
    if end is End.FAILED:
      traceback.print_exc()
    _report(spec, end, processes.describe(error)[:2000])
    return processes.USER_ERROR_EXIT if end is End.WRONG_INPUT else processes.FAILURE_EXIT


def _report(spec: WorkerSpec, end: End, message: str) -> None:
  os.write(spec.report_fd, json.dumps({'end': end.value, 'message': message}).encode())


def _end(error: Exception) -> End:
  ends = {
    types.UserError: End.WRONG_INPUT,
    core.ServerLost: End.SERVER_LOST,
    core.ServerRestarted: End.SERVER_RESTARTED,
  }
  return next((end for kind, end in ends.items() if isinstance(error, kind)), End.FAILED)


if __name__ == '__main__':
  sys.exit(main())
