"""The reports at the end of a run: summary.json, the plot, and the text of a failure."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
from typing import Any, NamedTuple

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.files import disk
from seed_acme.files import local
from seed_acme.loggers import terminal
from seed_acme.programs.front_end import cpu_record
from seed_acme.programs.pictures import drawing
from seed_acme.programs.pictures import plot
from seed_acme.programs.system import processes
from seed_acme.programs.system import streams
from seed_acme.progress import counting
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory

_MAX_MESSAGE = 400  # characters shown of a failure's message
FINISHED, STOPPED, FAILED = 'finished', 'stopped', 'failed'


def read_status(run: run_directory.RunDirectory) -> dict[str, Any]:
  """Returns the last status of the training loop; empty before the first."""
  return local.read_json(run.status) if run.status.exists() else {}


def status_time_s(run: run_directory.RunDirectory) -> float | None:
  """Returns when the last status was written; None before the first."""
  return read_status(run).get('time_s')


def read_progress(run: run_directory.RunDirectory, earlier_s: float | None) -> dict[str, Any]:
  """Returns what to show of this start: its last status, and its phase if any.

  earlier_s: `status_time_s` when this start began. It identifies the status of an earlier start.
    The order of times says nothing, because a clock may be set back.
  """
  status, phase = read_status(run), ''
  if status.get('time_s') == earlier_s:
    status = {}
  with contextlib.suppress(FileNotFoundError):
    phase = run.phase.read_text(encoding='utf-8')
  return {**status, 'phase': phase}


class Notices:
  """Notices of a run's nodes for the user, each of which is read once."""

  def __init__(self, run: run_directory.RunDirectory):
    self._path = run.notices
    self._num_read = 0

  def new(self) -> list[str]:
    """Returns the notices since the last call."""
    if not self._path.exists():
      return []
    lines = self._path.read_text(encoding='utf-8').splitlines()[self._num_read :]
    self._num_read += len(lines)
    return lines


class Saved(NamedTuple):
  """The contents of the newest whole checkpoint, and how far it is behind the last status.

  name: '' = there is none.
  """

  name: str
  updates: int
  agent_steps: int
  lost_updates: int
  lost_agent_steps: int


def saved(run: run_directory.RunDirectory) -> Saved:
  """Compares the newest checkpoint that can be read with the last status."""
  status = read_status(run)
  try:
    newest = checkpoint.load_newest(run.checkpoints)
  except checkpoint.Damaged:
    newest = None
  counts = (newest.counts if newest else counting.Counts())._asdict()
  return Saved(
    newest.path.name if newest else '',
    counts['updates'],
    counts['agent_steps'],
    *(max(0, status.get(name, 0) - counts[name]) for name in ('updates', 'agent_steps')),
  )


def lost_text(summary: dict[str, Any]) -> str:
  """Describes the training that no checkpoint holds; '' = none. summary: from `summarise`."""
  updates, steps = summary['lost_updates'], summary['lost_agent_steps']
  if not (updates or steps):
    return ''
  since = f'since checkpoint {summary["saved_updates"]:012d}, the newest that is whole'
  if not summary['has_checkpoint']:
    since = 'because no whole checkpoint is on the disk'
  return f'{updates:,} updates and {steps:,} steps are lost {since}'


def _counted(number: int, what: str) -> str:
  return f'{number:,} {what}{"" if number == 1 else "s"}'


def totals_text(summary: dict[str, Any]) -> str:
  """Returns one line with the status and the totals of a run. summary: as from `summarise`."""
  mean_return = summary['episode_return_last_100']
  shown_return = '-' if mean_return is None else terminal.number(mean_return, 3)
  return (
    f'{summary["status"].capitalize()}: {summary["agent_steps"]:,} steps, '
    f'{_counted(summary["updates"], "update")}, {_counted(summary["episodes"], "episode")}, '
    f'return of the last 100: {shown_return}'
  )


def summarise(
  config: config_lib.ExperimentConfig,
  run: run_directory.RunDirectory,
  cpu_s: dict[str, float],
  how: str,
) -> dict[str, Any]:
  """Returns the record of summary.json, from the last status.

  cpu_s: CPU-seconds of all starts by kind of node, from `cpu_record`.
  """
  status, kept = read_status(run), saved(run)
  steps, wall_s = status.get('agent_steps', 0), status.get('wall_s', 0.0)
  total_cpu_s = sum(cpu_s.values())
  return {
    'status': how,
    'config': config.name,
    'seed': config.seed,
    **{
      name: status.get(name, 0)
      for name in ('agent_steps', 'frames', 'updates', 'episodes', 'trained_steps', 'wall_s')
    },
    'has_checkpoint': bool(kept.name),
    'saved_updates': kept.updates,
    'saved_agent_steps': kept.agent_steps,
    'lost_updates': kept.lost_updates,
    'lost_agent_steps': kept.lost_agent_steps,
    'cpu_s': cpu_s,
    'steps_per_s': steps / wall_s if wall_s else 0.0,
    'steps_per_cpu_s': steps / total_cpu_s if total_cpu_s else 0.0,
    **{
      name: status.get(name)
      for name in (
        'episode_return_last_100',
        'evaluation_return',
        'best_checkpoint',
        'policy_lag_mean',
        'policy_lag_max',
      )
    },
  }


def write(
  run: run_directory.RunDirectory, summary: dict[str, Any], tell: Callable[[str], None]
) -> None:
  """Writes summary.json, and draws the curve of a finished run; `tell` gets errors of drawing."""
  local.write_json(run.summary, summary)
  if summary['status'] == FINISHED:
    drawing.or_notice(lambda: _draw(run), 'Notice: the plot', tell)


def _draw(run: run_directory.RunDirectory) -> None:
  with contextlib.suppress(plot.NoEpisode):
    plot.plot([str(run.path)], str(run.plot))


def write_last(
  run: run_directory.RunDirectory, summary: dict[str, Any], tell: Callable[[str], None]
) -> dict[str, Any] | None:
  """Calls `write` with the reserved disk space; returns the failure if that is not enough."""
  disk.release_reserve(run.path)
  try:
    write(run, summary, tell)
  except types.Failure as error:
    return processes.failure_record(run, processes.LAUNCHER, error, processes.LAUNCHER)
  return None


def complete(
  config: config_lib.ExperimentConfig,
  run: run_directory.RunDirectory,
  last: checkpoint.Checkpoint,
  tell: Callable[[str], None],
) -> dict[str, Any]:
  """Returns the summary of a run that had already finished before this start, and writes files that
  its end did not get to write.

  last: its last checkpoint, which is written before the last status. tell: as for `write`.
  """
  counts, status = last.counts._asdict(), read_status(run)
  if status.get('status') != FINISHED or status['agent_steps'] < counts['agent_steps']:
    status = {**status, **counts, 'status': FINISHED}
    local.write_json(run.status, status)
  if run.summary.exists():
    summary = local.read_json(run.summary)
    if (
      summary['status'] == FINISHED
      and summary['agent_steps'] == status['agent_steps']
      and run.plot.exists()
    ):
      return summary
  summary = summarise(config, run, cpu_record.CpuRecord(run).seconds, FINISHED)
  write(run, summary, tell)
  return summary


def failure_text(failure: dict[str, Any] | None, run: run_directory.RunDirectory) -> str:
  """Returns up to four lines on what failed, where, and its log. failure: from `known_failure`."""
  if failure is None:
    logs = as_known(str(run.logs), run)
    return f'error: the run ended without a reason; look into {logs}'
  if failure['is_user_error']:
    lines = f'error: {failure["message"]}'.splitlines()[:4]
    return '\n'.join(map(streams.printable, lines))
  message = failure['message'].strip().splitlines() or ['']
  said = streams.printable(message[0][:_MAX_MESSAGE])
  return f'error in {failure["node"]}: {said}\nlog: {failure["log"]}'


def cause(run: run_directory.RunDirectory, code: int) -> dict[str, Any] | None:
  """Returns `known_failure` after this exit code, also if the disk was too full to write it."""
  failure = known_failure(run)
  if failure is None and code == processes.FAILURE_EXIT and disk.has_no_room(run.path):
    failure = {
      'node': processes.LAUNCHER,
      'message': processes.full_disk(run),
      'is_user_error': False,
      'log': str(run.logs),
    }
  return failure


def known_failure(run: run_directory.RunDirectory) -> dict[str, Any] | None:
  """Returns the contents of failure.json, or None.

  For a run in a bucket, its paths are replaced, because they named the temporary local copy.
  """
  failure = processes.read_failure(run)
  if failure is None:
    return None
  known = {
    name: as_known(value, run) if isinstance(value, str) else value
    for name, value in failure.items()
  }
  if known != failure:
    local.write_json(run.failure, known)
  return known


def as_known(text: str, run: run_directory.RunDirectory) -> str:
  """Returns a text with the path of a run's local copy replaced by the bucket's URL."""
  return text.replace(str(run.path), run.bucket) if run.bucket else text
