"""The process that steps environments: `python -m seed_acme.programs.nodes.actor_worker`.

The supervisor in the actor's node starts it with a `WorkerSpec` on its standard input. It imports
no TensorFlow, Reverb, Sonnet or Launchpad, so it costs little more than its environments.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import dataclasses
import enum
import faulthandler
import json
import logging
import os
import pathlib
import signal
import sys
import time
import traceback

import numpy as np

from seed_acme import core
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.acting import activity as activity_lib
from seed_acme.acting import actor as actor_lib
from seed_acme.envs import closing as closing_lib
from seed_acme.envs import process_state
from seed_acme.files import local
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.nodes import actors
from seed_acme.programs.nodes import filming
from seed_acme.programs.system import leftovers
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import transports
from seed_acme.transport import wire

_REPORT_PERIOD_S = 1.0
SHOW_STACK = signal.SIGUSR1  # makes a worker write its stack to its log


class End(enum.Enum):
  """How a worker ended, as far as its supervisor has to distinguish it."""

  OVER = 'over'  # the run is over
  FAILED = 'failed'
  HUNG = 'hung'  # stuck in an environment and killed; never reported by the worker
  NOT_FINITE = 'not_finite'  # an environment returned NaN or infinity, which a restart may fix
  WRONG_INPUT = 'wrong_input'  # no restart would fix it
  SERVER_LOST = 'server_lost'  # it did not come back in time
  SERVER_RESTARTED = 'server_restarted'  # not a failure of the worker: start again


@dataclasses.dataclass(frozen=True)
class WorkerSpec:
  """The arguments of a worker.

  address: of the inference server. start: number of this start of the actor. first_wait_s: time to
    wait for a server that is not up yet; infinite if the launcher ends this program with the
    learner.
  report_fd: receives the reason of a failure, as one JSON object. activity_fd: shared memory in
    which the worker says what it is doing.
  It is sent as JSON, since the worker may run under another version of Python (`actor.python`).
  """

  sections: sections_lib.ActorSections
  run_dir: run_directory.RunDirectory
  start: wire.Start
  address: str
  token: str
  first_wait_s: float
  report_fd: int
  activity_fd: int

  def dumps(self) -> str:
    """Returns the spec as JSON, with ranges as pairs."""
    place = self.sections.place
    groups = tuple((group.start, group.stop) for group in place.groups)
    sections = {**vars(self.sections), 'place': {**vars(place), 'groups': groups}}
    run_dir = [str(self.run_dir.path), self.run_dir.bucket]
    record = {'sections': saved_config.to_json(sections), 'run_dir': run_dir}
    return json.dumps({**vars(self), **record})

  @classmethod
  def loads(cls, text: str) -> WorkerSpec:
    """Parses the result of `dumps` in the worker.

    It clears `actor.python`, because the worker already runs under that interpreter, unless the
    worker films (see `python_of`).
    """
    record = json.loads(text)
    sections = saved_config.from_json(record['sections'])
    place = sections['place']
    place['groups'] = tuple(range(*group) for group in place['groups'])
    sections['place'] = layout_lib.Actor(**place)
    if not sections['record_every']:  # if it films, only its environments run under that Python
      sections['actor'] = dataclasses.replace(sections['actor'], python='')
    path, bucket = record['run_dir']
    record.update(
      sections=sections_lib.ActorSections(**sections),
      run_dir=run_directory.RunDirectory(pathlib.Path(path), bucket),
      start=wire.Start(*record['start']),
    )
    return cls(**record)


def python_of(sections: sections_lib.ActorSections) -> str:
  """Returns the interpreter of a worker; '' = the learner's own.

  A worker that films runs under the learner's, which has the video packages; its environments are
  in a process under `actor.python`.
  """
  return '' if sections.record_every else sections.actor.python


def make_remote_actor(
  sections: sections_lib.ActorSections,
  start: wire.Start,
  address: str,
  token: str,
  patience: patience_lib.Patience,
  activity: activity_lib.Activity,
  films: filming.Films | None = None,
  closing: contextlib.ExitStack | None = None,
) -> actor_lib.Actor:
  """Returns an actor whose groups are connected to the inference server at `address`.

  films, closing: as in `actors.make_actor`.
  """

  def connect(env_ids: np.ndarray, spec: types.EnvironmentSpec) -> core.InferenceChannel:
    try:
      return transports.connect(
        sections.transport.kind,
        address,
        token,
        wire.GroupCodec(spec, env_ids.size, sections.shared),
        env_ids,
        patience,
        start,
      )
    except core.Refused as error:  # as for a setting that differs, which no restart mends
      raise types.UserError(str(error)) from None

  return actors.make_actor(
    sections,
    start.number,
    run_seed=None,
    connect=connect,
    activity=activity,
    films=films,
    closing=closing,
  )


class _Reports:
  """A writer of the actor's phase times, about once a second; called between steps."""

  def __init__(self, actor: actor_lib.Actor, run_dir: run_directory.RunDirectory, index: int):
    self._actor = actor
    self._path = run_dir.logs / f'actor_{index}_seconds.json'
    self._next_s = 0.0

  def maybe_write(self) -> None:
    now = time.monotonic()
    if now >= self._next_s:
      self._next_s = now + _REPORT_PERIOD_S
      # the learner reports a full disk, since it has more to lose
      with contextlib.suppress(types.Failure):
        local.write_json(self._path, self._actor.timer.snapshot())


def run(spec: WorkerSpec, activity: activity_lib.Activity, closing: contextlib.ExitStack) -> bool:
  """Acts until the run is over or SIGTERM arrives; returns whether it was SIGTERM.

  closing: receives the actor's `close`, or that of the part of it that was made, to be called after
    the end was reported, because environments may hang in it.
  """
  stopped = False

  def stop() -> None:
    nonlocal stopped
    signals.ignore(signal.SIGTERM)  # a second SIGTERM may follow
    stopped = True
    raise core.ChannelClosed  # leaves whatever call the main thread is in

  signals.terminate(stop)
  signals.ignore(signal.SIGINT)  # the launcher decides what Ctrl-C means
  with contextlib.suppress(core.ChannelClosed):  # `stop` may raise it even in `finally`
    try:
      _act(spec, activity, closing, lambda: stopped)
    finally:
      signals.ignore(signal.SIGTERM)
  return stopped


def _act(
  spec: WorkerSpec,
  activity: activity_lib.Activity,
  closing: contextlib.ExitStack,
  is_stopped: Callable[[], bool],
) -> None:
  """Acts until the run is over or the worker is stopped."""
  sections, folder = spec.sections, spec.run_dir
  films = filming.of_run(folder) if sections.record_every else None
  patience = patience_lib.Patience(spec.first_wait_s, sections.actor.connect_timeout_s)
  try:
    actor = make_remote_actor(
      sections, spec.start, spec.address, spec.token, patience, activity, films, closing
    )
    closing.callback(actor.close)
    reports = _Reports(actor, folder, sections.place.index)

    def should_stop() -> bool:
      reports.maybe_write()
      return is_stopped()

    actor.run(should_stop)
  except core.ChannelTaken:
    raise types.UserError(
      f'another actor has taken over the environments of {sections.name}, one that was '
      'started later: give every actor of a run another --index'
    ) from None


def main() -> int:
  """Runs the worker; returns 0 when the run is over, 143 after SIGTERM, 1 or 2 after a failure.

  Unless it was SIGTERM, it also writes how it ended to `report_fd`.
  """
  processes.end_with_parent()
  signals.leave_hangup_to_parent()
  process_state.print_on_standard_error()
  faulthandler.register(SHOW_STACK)
  spec = WorkerSpec.loads(sys.stdin.read())
  logging.basicConfig(format=f'{spec.sections.name}: %(message)s', level=logging.WARNING)
  activity = activity_lib.at(spec.activity_fd)
  os.close(spec.activity_fd)
  closing = contextlib.ExitStack()
  code = _run_and_report(spec, activity, closing)

  def tell(text: str) -> None:
    text = f'{spec.sections.name}: {text}'
    print(text, flush=True)
    # Once for the training environments is enough. The evaluation environments may render.
    if not spec.sections.place.index or spec.sections.place.shard is None:
      spec.run_dir.add_notice(text)

  with closing_lib.told(spec.sections.environment.id, tell):  # how the run ended is reported
    try:
      closing.close()
    except Exception:
      traceback.print_exc()  # for the log
      raise
  if left := leftovers.describe():
    tell(f'{left} still ran after the environments were closed, and ended')
  return code


def _run_and_report(
  spec: WorkerSpec, activity: activity_lib.Activity, closing: contextlib.ExitStack
) -> int:
  try:
    if run(spec, activity, closing):
      return 128 + signal.SIGTERM
    _report(spec, End.OVER, '')
    return 0
  except Exception as error:  # reported to the supervisor
    end = _end(error)
    if end is End.FAILED and not isinstance(error, types.Failure):
      traceback.print_exc()
    _report(spec, end, processes.describe(error)[:2000])
    return processes.USER_ERROR_EXIT if end is End.WRONG_INPUT else processes.FAILURE_EXIT


def _report(spec: WorkerSpec, end: End, message: str) -> None:
  os.write(spec.report_fd, json.dumps({'end': end.value, 'message': message}).encode())


def _end(error: Exception) -> End:
  ends = {  # special cases first
    types.NotFinite: End.NOT_FINITE,
    types.UserError: End.WRONG_INPUT,
    core.ServerLost: End.SERVER_LOST,
    core.ServerRestarted: End.SERVER_RESTARTED,
  }
  return next((end for kind, end in ends.items() if isinstance(error, kind)), End.FAILED)


if __name__ == '__main__':
  leftovers.end(main())
