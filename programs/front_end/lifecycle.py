"""The front end of a run: prepares its folder, starts the launcher, watches, and sums up.

It is a light process of its own (no TensorFlow, no Launchpad), because Launchpad's launcher may
kill its whole process tree, itself included, and the user still has to be told what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import dataclasses
import pathlib
import socket
from typing import Any

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.envs import experiment_environments as environments
from seed_acme.files import local
from seed_acme.loggers import own
from seed_acme.loggers import terminal
from seed_acme.programs.front_end import attempt as attempt_lib
from seed_acme.programs.front_end import launches
from seed_acme.programs.front_end import replay_size
from seed_acme.programs.front_end import stall
from seed_acme.programs.front_end import summary as summary_lib
from seed_acme.programs.front_end import warm_start
from seed_acme.programs.pictures import video
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.programs.system import streams
from seed_acme.programs.trial import door
from seed_acme.programs.trial import specification
from seed_acme.storage import checkpoint
from seed_acme.storage import opening
from seed_acme.storage import run_directory
from seed_acme.storage import run_locks
from seed_acme.storage import saved_config

FINISHED, STOPPED, FAILED = summary_lib.FINISHED, summary_lib.STOPPED, summary_lib.FAILED
read_status = summary_lib.read_status


class RunFinished(types.UserError):
  """A run to be resumed has used up its budget. last: its last checkpoint."""

  def __init__(self, message: str, last: checkpoint.Checkpoint):
    super().__init__(message)
    self.last = last


def prepare(
  config: config_lib.ExperimentConfig, path: str | None, bucket: str = ''
) -> tuple[config_lib.ExperimentConfig, run_directory.RunDirectory]:
  """Makes the run folder, or checks that `path` can be resumed with this configuration.

  bucket: where the run is if `path` is a copy. Before anything is written, raises
    `types.UserError`, also for a run that is under way, `door.CannotStart`, and `RunFinished` if
    nothing is left to do.

  Returns the folder, and the configuration with a fixed run to start from (`warm_start`).
  """
  config_validation.validate(config)
  if path is not None:
    run_locks.refuse_if_held(run_directory.RunDirectory(run_directory.located(path)))
  environments.check(config)
  own.check(config)
  if config.record_every:
    video.require_packages('.mp4')
  _check_ports(config)
  if path is not None:
    run = run_directory.RunDirectory(run_directory.located(path))
    config = warm_start.fixed(config, run)
    check_resume(config, run)
    [spec] = door.check([config])
    # The network was built for the specification in the run folder, which may treat choices as mere
    # bounds.
    spec = specification.check_resume(run, spec)
    run_locks.refuse_if_held(run)  # another program may have begun during the trial
    run = dataclasses.replace(run_directory.create(path), bucket=bucket)
  else:
    config = warm_start.fixed(config)
    if config.initial_checkpoint:
      opening.load_checkpoint(config.initial_checkpoint)
    [spec] = door.check([config])
    run = run_directory.new(config.name)
  specification.save(run, spec)
  return config, run


def check_resume(config: config_lib.ExperimentConfig, run: run_directory.RunDirectory) -> None:
  """Raises `types.UserError` if an existing run cannot be resumed with `config`."""
  newest = None
  if run.holds_run():
    saved_config.compare_for_resume(
      saved_config.load(run.config, saved_config.trust_in(config), only_types=True), config
    )
    newest = checkpoint.load_newest(run.checkpoints)
    if newest is None:
      _refuse_lost_checkpoints(run)
  if newest is not None:
    _check_unfinished(config, newest)
  elif config.initial_checkpoint:
    opening.load_checkpoint(config.initial_checkpoint)


def _refuse_lost_checkpoints(run: run_directory.RunDirectory) -> None:
  """Raises `types.UserError` if a run without a checkpoint had one at its end, since a new start
  would also replace its log."""
  last = local.read_json(run.summary) if run.summary.exists() else {}
  if last.get('has_checkpoint'):
    raise types.UserError(
      f'{run.checkpoints} has lost its checkpoints, of {last["saved_agent_steps"]:,} steps: put '
      'them back, or choose a new --run_dir'
    )


def _check_unfinished(config: config_lib.ExperimentConfig, newest: checkpoint.Checkpoint) -> None:
  steps, wall_s = newest.counts.agent_steps, newest.counts.wall_s
  if steps >= config.total_steps:
    raise RunFinished(
      f'this run has made its {config.total_steps:,} steps ({steps:,}): '
      'raise --config.total_steps to extend it',
      newest,
    )
  if config.max_wall_s and wall_s >= config.max_wall_s:
    raise RunFinished(
      f'this run has had its {terminal.number(config.max_wall_s)} seconds ({wall_s:,.0f}): '
      'raise --config.max_wall_s to extend it',
      newest,
    )


def _check_ports(config: config_lib.ExperimentConfig) -> None:
  """Raises `types.UserError` for a port in use, before anything is written."""
  shards = layout_lib.Layout.of(config).learners[0].shards
  for name, host, port in (
    ('transport', config.transport.host, config.transport.port),
    *(('replay', '', shard.port) for shard in shards),
  ):
    with socket.socket() as probe:
      probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
      try:
        probe.bind((host, port))
      except (OSError, OverflowError) as error:
        mend = f'port, or {name}.port 0 for any free one' if port else 'host'
        reason = getattr(error, 'strerror', None) or error
        raise types.UserError(
          f'cannot listen on {host or "localhost"}:{port} ({reason}): choose another {name}.{mend}'
        ) from None


def run(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  launch: Callable[[Callable[[str], None]], Sequence[str]],
  supervision: launches.Supervision,
) -> launches.Outcome:
  """Trains until the end, a signal, or a failure with no restart left.

  launch: returns the arguments of `launches.load` for the launcher's process; may print why.
  """
  show = streams.outliving_output()(supervision.show)
  supervision = supervision._replace(show=show)
  with run_locks.trains(run_dir):
    before = run_dir.config.read_text(encoding='utf-8') if run_dir.config.exists() else None
    latest = pathlib.Path(run_directory.ROOT, run_directory.LATEST)
    latest_before = latest.resolve() if latest.is_symlink() else None
    saved_config.save(config, run_dir.config)
    if pathlib.Path(run_directory.ROOT).absolute() in run_dir.path.parents:
      if not run_directory.point_latest(run_dir):
        show(f'Warning: {latest} is no link, so it does not point to this run')
    _warn_of_lost_steps(run_dir, show)
    num_bytes = _replay_bytes(config, run_dir)
    warning = replay_size.memory_warning(config, num_bytes)
    if warning:
      show(f'Warning: {warning}')
    attempt = attempt_lib.Attempt(
      run_dir,
      launch(show),
      replay_size.saving_seconds(num_bytes),
      supervision,
      stall.limit_s(config.learner),
    )
    with signals.signals_to(attempt.request_stop):
      code, failure = _attempted(attempt, run_dir, supervision)
    outcome = _conclude(config, run_dir, attempt, code, failure, show)
    if not outcome.summary:
      _put_back(run_dir, before, latest_before)
    return outcome


def _warn_of_lost_steps(run: run_directory.RunDirectory, show: Callable[[str], None]) -> None:
  steps = read_status(run).get('agent_steps', 0)
  if steps and checkpoint.newest(run.checkpoints) is None:
    show(
      f'Warning: the run starts anew, without the {steps:,} steps it had made, because it has no '
      'checkpoint'
    )


def _put_back(
  run_dir: run_directory.RunDirectory, config: str | None, latest: pathlib.Path | None
) -> None:
  """Undoes a start that began nothing, since the next may have another configuration.

  config: the saved configuration before it; None = the run is new. latest: where `runs/latest`
  pointed to; None = nowhere.
  """
  link = pathlib.Path(run_directory.ROOT, run_directory.LATEST)
  if latest is not None and link.is_symlink() and link.resolve() == run_dir.path.resolve():
    run_directory.point_latest(run_directory.RunDirectory(latest))
  if config is None:
    run_dir.config.unlink(missing_ok=True)
    run_dir.specification.unlink(missing_ok=True)
  else:
    local.write_text(run_dir.config, config)


def _attempted(
  attempt: attempt_lib.Attempt,
  run_dir: run_directory.RunDirectory,
  supervision: launches.Supervision,
) -> tuple[int, dict[str, Any] | None]:
  """Starts the launcher until no restart is left; returns the last exit code and failure."""
  restarts = meetings = 0
  while True:
    code = attempt.run()
    failure = summary_lib.cause(run_dir, code)
    if code != processes.FAILURE_EXIT or attempt.is_stopped:
      return code, failure
    reason = failure['message'] if failure else 'unknown'
    if processes.is_of_another_that_was_met(failure) and meetings < supervision.max_meetings:
      meetings += 1
      supervision.show(f'Starting once more, because nothing was begun: {reason}')
    elif restarts < supervision.max_restarts:
      restarts += 1
      supervision.show(
        f'Restart {restarts} of {supervision.max_restarts} from the newest checkpoint: {reason}'
      )
    else:
      return code, failure


def _replay_bytes(config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory) -> int:
  """Returns the bytes of a full replay memory; 0 if only other hosts have the environments."""
  try:
    return replay_size.replay_bytes(config, lambda: specification.of_run(config, run_dir))
  except types.MissingPackage:
    return 0


def _conclude(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  attempt: attempt_lib.Attempt,
  code: int,
  failure: dict[str, Any] | None,
  show: Callable[[str], None],
) -> launches.Outcome:
  if attempt.stop_signal:
    is_late = attempt.has_finished and failure is None  # the signal came after the last checkpoint
    status, exit_code = FINISHED if is_late else STOPPED, 128 + attempt.stop_signal
  elif code == 0:
    status, exit_code = STOPPED if attempt.is_stopped else FINISHED, 0
  else:
    status, exit_code = FAILED, code
  if exit_code == processes.USER_ERROR_EXIT and not attempt.has_begun:
    return launches.Outcome(exit_code, {}, failure)  # wrong input at the start writes none
  summary = summary_lib.summarise(config, run_dir, attempt.cpu_s, status)
  lost = summary_lib.lost_text(summary)
  # A start that was stopped before it trained has lost nothing; a kill of an earlier one may have.
  is_earlier = attempt.is_stopped and not attempt.trains
  has_failed = exit_code in (processes.USER_ERROR_EXIT, processes.FAILURE_EXIT)
  if lost and not is_earlier and not has_failed:
    # A stop that could not save is a failure.
    exit_code = processes.FAILURE_EXIT
    summary['status'] = FAILED if status == FINISHED else status
    processes.report_failure(run_dir, processes.LAUNCHER, lost, processes.LAUNCHER)
    failure = failure or summary_lib.known_failure(run_dir)
  unwritten = summary_lib.write_last(run_dir, summary, show)
  failure, exit_code = failure or unwritten, exit_code or int(bool(unwritten))
  return launches.Outcome(exit_code, summary, failure)
