"""Runs a peer's process and measures a window of its training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
from typing import IO

from seed_acme import types
from seed_acme.programs.system import cpu_account

_ROOT = pathlib.Path(__file__).parents[2]
_START_S = 180.0  # longest wait for the first update
_SAMPLE_S = 0.5
_END_S = 10.0  # longest wait for the rest of an ended process's output


class _Updates:
  """A reader of `progress.report`'s lines, which skips other output of the library."""

  def __init__(self, process: subprocess.Popen[str]):
    self._process = process
    self._changed = threading.Condition()
    self._steps: int | None = None
    self._is_over = False
    self._thread = threading.Thread(target=self._read, daemon=True)
    self._thread.start()

  def join(self) -> None:
    """Waits for the reader after the process has ended."""
    self._thread.join(_END_S)

  def _read(self) -> None:
    assert self._process.stdout is not None
    with self._process.stdout as lines:
      for line in lines:
        steps = parse(line)
        if steps is not None:
          with self._changed:
            self._steps = steps
            self._changed.notify_all()
    with self._changed:
      self._is_over = True
      self._changed.notify_all()

  def next(self, timeout_s: float) -> int | None:
    """Waits for the next update and returns the trained steps; None if none came."""
    with self._changed:
      before = self._steps
      self._changed.wait_for(lambda: self._is_over or self._steps != before, timeout_s)
      return None if self._is_over or self._steps == before else self._steps


def parse(line: str) -> int | None:
  """Returns the trained steps of a line of `progress.report`; None for any other line."""
  try:
    record = json.loads(line)
  except ValueError:
    return None
  steps = record.get('trained_steps') if isinstance(record, dict) else None
  return steps if isinstance(steps, int) else None


def measure(command: Sequence[str], seconds: float, warmup_seconds: float) -> dict[str, float]:
  """Measures from the first update after the warm-up to the first one `seconds` later.

  CPU time is that of the whole process tree. Raises `types.UserError` with the end of the peer's
  output if it does not train.
  """
  with tempfile.TemporaryFile('w+') as errors, _started(command, errors) as (process, updates):
    account = cpu_account.CpuAccount(process.pid)
    _wait(updates, _START_S, command, errors)
    time.sleep(warmup_seconds)
    first = _read(updates, account, seconds, command, errors)
    end = first[1] + seconds
    while (left := end - time.monotonic()) > 0:
      time.sleep(min(_SAMPLE_S, left))
      account.sample()  # time used after a process's last sample is lost when it ends
    last = _read(updates, account, seconds, command, errors)
  steps, wall_s, cpu_s = (after - before for before, after in zip(first, last, strict=True))
  return {
    'agent_steps': steps,
    'window_s': wall_s,
    'steps_per_s': steps / wall_s,
    'steps_per_cpu_s': steps / cpu_s,
    'cores_in_use': cpu_s / wall_s,
  }


@contextlib.contextmanager
def _started(
  command: Sequence[str], errors: IO[str]
) -> Iterator[tuple[subprocess.Popen[str], _Updates]]:
  """Starts a peer in a process group of its own, which is killed afterwards."""
  process = subprocess.Popen(
    command,
    stdin=subprocess.DEVNULL,
    stdout=subprocess.PIPE,
    stderr=errors,
    text=True,
    env={**os.environ, 'PYTHONPATH': str(_ROOT)},
    start_new_session=True,
  )
  updates = _Updates(process)
  try:
    yield process, updates
  finally:
    with contextlib.suppress(ProcessLookupError):
      os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    updates.join()


def _wait(updates: _Updates, timeout_s: float, command: Sequence[str], errors: IO[str]) -> int:
  steps = updates.next(timeout_s)
  if steps is None:
    errors.seek(0)
    lines = errors.read().strip().splitlines()
    reason = lines[-1] if lines else 'it wrote no error'
    raise types.UserError(f'{" ".join(command)}: no update within {timeout_s:g} s: {reason}')
  return steps


def _read(
  updates: _Updates,
  account: cpu_account.CpuAccount,
  seconds: float,
  command: Sequence[str],
  errors: IO[str],
) -> tuple[float, float, float]:
  """Returns trained steps, time and CPU-seconds at the moment of an update."""
  steps = _wait(updates, max(60.0, seconds), command, errors)
  account.sample()
  return steps, time.monotonic(), sum(account.seconds().values())
