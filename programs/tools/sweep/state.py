"""The progress of each run of a sweep, read from its folder while or after it trains."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.files import local
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.system import processes
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.storage import checkpoint

FINISHED = 'finished'  # its budget is used up
UNFINISHED = 'unfinished'  # running, stopped or killed
FAILED = 'failed'  # with an error; its checkpoint keeps the progress
WAITING = 'waiting'  # never started
PRUNED = 'pruned'  # a search has given it up
_PRUNED_FILE = 'pruned.json'  # in the folder of the combination


class State(NamedTuple):
  """The state of one run.

  share: of its budget, 0 to 1. mean_return: of the last 100 training episodes.
  evaluation_return, mean_return, cpu_s: None if unknown. message: why it failed. failure_file:
    what identifies its failure.json; None = there is none.
  """

  status: str
  share: float = 0.0
  mean_return: float | None = None
  evaluation_return: float | None = None
  agent_steps: int = 0
  episodes: int = 0
  wall_s: float = 0.0
  cpu_s: float | None = None
  message: str = ''
  failure_file: tuple[int, int] | None = None


def read(run: sweep_plan.Run, before: State | None = None) -> State:
  """Reads the state from summary.json if the run is finished, else from status.json.

  before: the state before a start of the run. A start that was refused leaves the failure of an
    earlier one in the folder, which is then not reported as its own.
  """
  if not run.run_dir.holds_run():
    return State(PRUNED if _is_pruned(run) else WAITING)
  summary = local.read_json(run.run_dir.summary) if run.run_dir.summary.exists() else {}
  record = lifecycle.read_status(run.run_dir)
  if summary.get('status') == lifecycle.FINISHED and share_of(run.config, summary) >= 1:
    return _state(FINISHED, run.config, summary, summary)
  if _is_pruned(run):
    return _state(PRUNED, run.config, record, summary)
  failure = processes.read_failure(run.run_dir)
  if failure is not None:
    failure_file = _failure_file(run)
    if before is not None and failure_file == before.failure_file:
      return _state(UNFINISHED, run.config, record, summary)
    return _state(FAILED, run.config, record, summary)._replace(
      message=failure['message'], failure_file=failure_file
    )
  status = FINISHED if _has_used_its_budget(run) else UNFINISHED
  return _state(status, run.config, record, summary)


def _failure_file(run: sweep_plan.Run) -> tuple[int, int] | None:
  with contextlib.suppress(FileNotFoundError):
    status = run.run_dir.failure.stat()
    return status.st_ino, status.st_mtime_ns
  return None


def is_finished(run: sweep_plan.Run) -> bool:
  """Whether the run has used up its budget."""
  return read(run).status == FINISHED


def is_over(run: sweep_plan.Run) -> bool:
  """Whether the run needs no more work."""
  return read(run).status in (FINISHED, PRUNED)


def prune(run: sweep_plan.Run, percent: int) -> None:
  """Records in the combination's folder that it was pruned at this percentage of a run's budget."""
  path = run.run_dir.path.parent / _PRUNED_FILE
  local.write_json(path, {'seed': run.seed, 'percent': percent})


def _is_pruned(run: sweep_plan.Run) -> bool:
  return (run.run_dir.path.parent / _PRUNED_FILE).exists()


def share(run: sweep_plan.Run) -> float:
  """Returns the share of its budget that a running run has used."""
  return share_of(run.config, lifecycle.read_status(run.run_dir))


def _state(
  status: str, config: config_lib.ExperimentConfig, record: dict[str, Any], summary: dict[str, Any]
) -> State:
  cpu_s = summary.get('cpu_s')
  return State(
    status,
    1.0 if status == FINISHED else share_of(config, record),
    record.get('episode_return_last_100'),
    record.get('evaluation_return'),
    record.get('agent_steps', 0),
    record.get('episodes', 0),
    record.get('wall_s', 0.0),
    sum(cpu_s.values()) if cpu_s else None,
  )


def share_of(config: config_lib.ExperimentConfig, record: dict[str, Any]) -> float:
  """Returns the used share of the budget, in steps or in seconds, whichever is greater."""
  share = record.get('agent_steps', 0) / config.total_steps
  if config.max_wall_s:
    share = max(share, record.get('wall_s', 0.0) / config.max_wall_s)
  return min(1.0, share)


def _has_used_its_budget(run: sweep_plan.Run) -> bool:
  """Whether a run made its last step, but its front end was killed before it wrote the summary.

  Such a run has nothing to resume.
  """
  try:
    newest = checkpoint.load_newest(run.run_dir.checkpoints)
  except (types.UserError, checkpoint.Damaged):  # training will report it
    return False
  return newest is not None and share_of(run.config, newest.counts._asdict()) >= 1
