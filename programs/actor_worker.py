"""The process that really acts: `python -m seed_acme.programs.actor_worker`.

Started by the supervisor in the actor's node, with a `WorkerSpec` on its standard input.
Imports no TensorFlow, Reverb, Sonnet or Launchpad: it costs its environments and little more.
"""
from __future__ import annotations

import dataclasses
import json
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


def make_remote_actor(config: config_lib.ExperimentConfig, index: int, attempt: int,
                      address: str, token: str) -> actor_lib.Actor:
  """An actor whose groups are connected to the inference server at `address`."""
  spec = environments.environment_spec(config.environment)

  def connect(env_ids: np.ndarray) -> core.InferenceChannel:
    return transports.connect(
        config.transport.kind, address, token, wire.GroupCodec(spec, env_ids.size), env_ids,
        config.actor.connect_timeout_s)

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
  """Acts until the server ends its work, or SIGTERM; returns whether it was SIGTERM."""
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
  except core.ChannelClosed:
    pass
  finally:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if actor is not None:
      actor.close()
  return stopped


def main() -> int:
  """Exit code 0 when the server ended its work, 143 after SIGTERM; after a failure 1 or 2, and
  the reason is on `report_fd`."""
  processes.end_with_parent()
  spec: WorkerSpec = pickle.load(sys.stdin.buffer)  # from our own supervisor, not a network
  try:
    return 128 + signal.SIGTERM if run(spec) else 0
  except Exception as error:  # reported to the supervisor
    traceback.print_exc()
    is_user_error = isinstance(error, types.UserError)
    os.write(spec.report_fd, json.dumps({
        'message': processes.describe(error)[:2000], 'is_user_error': is_user_error}).encode())
    return processes.USER_ERROR_EXIT if is_user_error else processes.FAILURE_EXIT


if __name__ == '__main__':
  sys.exit(main())
