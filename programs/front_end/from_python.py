"""`seed_acme.train`: a run as a function call, with Python exceptions for its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import signal
from typing import Any

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.files import bucket as bucket_lib
from seed_acme.files import local
from seed_acme.loggers import csv_tail
from seed_acme.loggers import terminal
from seed_acme.programs.front_end import bucket_folder
from seed_acme.programs.front_end import launches
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.front_end import summary as summary_lib
from seed_acme.programs.front_end import train_command
from seed_acme.programs.system import processes
from seed_acme.storage import run_directory

OnLog = Callable[[dict[str, float]], bool | None]


@contextlib.contextmanager
def _documented_errors() -> Iterator[None]:
  """Turns what may fail before a run begins, such as a full disk, into what `train` documents."""
  try:
    with local.explained_length():
      yield
  except types.TrainingFailed:
    raise
  except types.Failure as error:
    raise types.TrainingFailed(str(error)) from error


@_documented_errors()
def train(
  config: config_lib.ExperimentConfig,
  run_dir: str | None,
  launch: str,
  max_restarts: int,
  progress: bool,
  on_log: OnLog | None,
) -> dict[str, Any]:
  """Implements `seed_acme.train`, which documents it."""
  if bucket_lib.is_url(run_dir or ''):
    processes.load_tensorflow(owns_process=False)  # which reads buckets
  launches.check(launch)
  bounds.at_least(0).check('max_restarts', max_restarts)
  config_validation.validate(config)  # first, because a layout takes numbers as they are
  layout, way = layout_lib.Layout.of(config), launches.load(launch)
  way.refuse(layout)
  with bucket_folder.opened(run_dir or '') as existing:
    path, bucket = (str(existing.path), existing.bucket) if existing else (None, '')
    config, folder = lifecycle.prepare(config, path, bucket)
    shown = terminal.Progress() if progress else None
    if shown is not None:
      resuming = 'Resuming' if folder.holds_run() else 'Run'
      shown.message(f'{resuming}: {train_command.shown(folder)}')
    with contextlib.closing(_Rows(folder, on_log, shown)) as rows:
      supervision = launches.Supervision(
        max_restarts, show=train_command.above(shown), progress=shown, should_stop=rows.ask
      )
      outcome = way.start(launches.Run(config, folder), layout, supervision)
      if shown is not None and outcome.exit_code != 128 + signal.SIGPIPE:
        shown.finish()
  if rows.error is not None:
    raise rows.error
  _raise_what_ended_it(outcome, folder)
  return {**outcome.summary, 'run_dir': folder.name}


def _raise_what_ended_it(outcome: launches.Outcome, folder: run_directory.RunDirectory) -> None:
  if outcome.exit_code == 128 + signal.SIGINT:
    raise KeyboardInterrupt
  for number in (signal.SIGTERM, signal.SIGHUP):
    if outcome.exit_code == 128 + number:
      signal.raise_signal(number)  # the caller's own handler is installed again
  if outcome.exit_code == 128 + signal.SIGPIPE:
    raise BrokenPipeError('nobody reads the progress any more')
  if outcome.exit_code == processes.USER_ERROR_EXIT:
    text = summary_lib.failure_text(outcome.failure, folder)
    raise types.UserError(text.removeprefix('error: '))
  if outcome.exit_code == processes.FAILURE_EXIT:
    raise types.TrainingFailed(summary_lib.failure_text(outcome.failure, folder))


class _Rows:
  """Passes each row of the logs to the caller's function, which may stop the run."""

  def __init__(
    self, folder: run_directory.RunDirectory, on_log: OnLog | None, shown: terminal.Progress | None
  ):
    self._on_log = on_log
    self._shown = shown
    self._tail = csv_tail.Tail(folder.metrics)
    self.error: BaseException | None = None

  def ask(self) -> bool:
    """Whether the run is to stop. After an error the function is not called again."""
    if self._on_log is None or self.error is not None:
      return self.error is not None
    try:
      rows = self._tail.new_rows()
      if rows and self._shown is not None:
        self._shown.hide()  # its prints would land on the progress line
      answers = [self._on_log(row) for row in rows]  # all of them, even if the first asks to stop
      return any(answers)
    except BaseException as error:  # ends the run first, then it is raised again
      self.error = error
      return True

  def close(self) -> None:
    self._tail.close()
