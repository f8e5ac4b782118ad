"""Keeps a run folder in a bucket: the run uses a local folder, which a thread copies.

All other code reads and writes local files, with the renames, links and locks that an object
store lacks. After a preemption the run continues from the copy in the bucket, which has the same
layout:

* A checkpoint is copied with `meta.json` last and deleted with it first, so a folder without it is
  not a checkpoint. A checkpoint is never overwritten: if it is saved again at the same update, it
  gets the other of two names, `000000000042` and `000000000042.again`, and the first is then
  deleted.
* Other files are replaced as a whole. A file of n MB is sent at most every n seconds.
* Logs of an earlier start are moved to `logs/attempt_<n>` in the bucket, and are not fetched.
* `lock.json` is a lease (`lease.py`), renewed by a separate thread, because a copy may take long.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import pathlib
import shutil
import sys
import threading
import time
from typing import NamedTuple

from seed_acme import types
from seed_acme.files import bucket
from seed_acme.files import local
from seed_acme.storage import bucket_fetch
from seed_acme.storage import checkpoint
from seed_acme.storage import lease
from seed_acme.storage import run_directory

PERIOD_S = 10.0
_GIVE_UP_S = 900.0  # time without one successful round
_SILENT_S = 3.0  # of the last copy, after which it is announced
_LOCK = 'lock.json'
_BYTES_PER_S = 1e6  # average rate for one file
_OF_AN_ATTEMPT = ('failure.json', 'notices.txt')  # obsolete once another attempt starts
_LOGS = 'logs'
ATTEMPT = 'attempt_'  # followed by a number: folder with the logs of an earlier start


class _Sent(NamedTuple):
  """State of a file when it was copied."""

  state: tuple[int, int]  # size and time of change
  at_s: float


class Mirror:
  """Copies a run's local folder to its bucket, from `start` to `stop`, in its own thread.

  on_round: called on that thread after each round. on_failure: called on one of its threads if the
  bucket was unreachable for long or another program took over the folder; the run must then end.
  """

  def __init__(
    self,
    run: run_directory.RunDirectory,
    *,
    period_s: float = PERIOD_S,
    on_round: Callable[[], None] = lambda: None,
    on_failure: Callable[[Exception], None] = lambda error: None,
  ):
    self._run = run
    self._url = run.bucket
    self._on_round = on_round
    self._on_failure = on_failure
    self._period_s = period_s
    self._sent: dict[str, _Sent] = {}
    self._checkpoint_state: tuple[str, int, int] | None = None
    self._earlier_logs: list[tuple[str, str]] = []  # URLs: now, and when this start has logs
    self._lease = lease.Lease(bucket.join(self._url, _LOCK), period_s)
    self._lease_lock = threading.Lock()
    self._stop, self._lets_go = threading.Event(), threading.Event()
    self._copier, self._renewer = (
      threading.Thread(target=loop, name='mirror', daemon=True)
      for loop in (self._copy_on, self._renew_on)
    )

  def start(self) -> None:
    """Takes the lease, fetches the run and starts copying. Raises `types.UserError`."""
    try:
      self._lease.acquire()
      self._renewer.start()  # now, because fetching a replay memory may take long
      bucket_fetch.fetch(self._url, self._run.path)
      for name in _OF_AN_ATTEMPT:
        bucket.delete(bucket.join(self._url, name))
      self._earlier_logs = self._find_earlier_logs()
    except BaseException:
      self._lets_go.set()
      if self._renewer.is_alive():
        self._renewer.join()
      self._lease.release()
      raise
    for name in bucket_fetch.FETCHED:
      if (self._run.path / name).exists():
        self._sent[name] = _Sent(_state(self._run.path / name), 0.0)
    newest = checkpoint.newest(self._run.checkpoints)
    self._checkpoint_state = None if newest is None else _checkpoint_state(newest)
    self._copier.start()

  def _find_earlier_logs(self) -> list[tuple[str, str]]:
    """Returns the logs of the last start, and where each is to be moved. Makes an empty local
    folder for every `attempt_<n>`, so that counting the local folders gives the next number."""
    url = bucket.join(self._url, _LOGS)
    attempts = [name for name in bucket.names(url) if name.startswith(ATTEMPT)]
    earlier = [name for name in bucket.files_below(url) if not name.startswith(ATTEMPT)]
    if earlier:
      number = 1
      while f'{ATTEMPT}{number}' in attempts:
        number += 1
      attempts.append(f'{ATTEMPT}{number}')
    for name in attempts:
      (self._run.logs / name).mkdir(exist_ok=True)
    return [(bucket.join(url, name), bucket.join(url, attempts[-1], name)) for name in earlier]

  def stop(self) -> None:
    """Copies what is left and releases the lease; raises any error that prevents it. If it takes
    long, a line on standard error says so."""
    announcement = threading.Timer(_SILENT_S, self._announce_last_copy)
    announcement.daemon = True
    announcement.start()
    try:
      self._end(self._stop, self._copier)
      self._renew()
      self._copy(is_last=True)  # meanwhile the lease is renewed, because this may take long
      self._end(self._lets_go, self._renewer)
      self._lease.release()
    finally:
      self._lets_go.set()
      announcement.cancel()

  def _announce_last_copy(self) -> None:
    with contextlib.suppress(OSError):  # all may be copied and deleted by now
      print(
        f'Copying the end of the run to {self._url}: {self._num_bytes_left() / 1e6:,.1f} MB',
        file=sys.stderr,
        flush=True,
      )

  def _num_bytes_left(self) -> int:
    """Returns the size of what the bucket does not have yet, or has only a part of."""
    left = 0
    for path in self._files():
      state, sent = _state(path), self._sent.get(self._name(path))
      left += 0 if sent is not None and sent.state == state else state[0]
    newest = checkpoint.newest(self._run.checkpoints)
    if newest is not None and _checkpoint_state(newest) != self._checkpoint_state:
      left += sum(local.sizes(newest).values())
    return left

  def abandon(self) -> None:
    """Ends without copying anything more; an alternative to `stop`."""
    self._end_threads()
    self._lease.release()

  def _end_threads(self) -> None:
    self._end(self._stop, self._copier)
    self._end(self._lets_go, self._renewer)

  def _end(self, stop: threading.Event, thread: threading.Thread) -> None:
    stop.set()
    thread.join()

  def _renew(self) -> None:
    with self._lease_lock:
      self._lease.renew()

  def _copy_on(self) -> None:
    last_s = time.monotonic()
    while not self._stop.wait(self._period_s):
      try:
        self._copy(is_last=False)
        last_s = time.monotonic()
      except (bucket.BucketError, OSError, types.UserError, types.Failure) as error:
        with contextlib.suppress(OSError):  # the terminal is gone
          print(f'bucket: {error}', flush=True)
        if time.monotonic() - last_s > _GIVE_UP_S:
          self._on_failure(error)
          return
      # Where nothing can be printed, or the disk is full, the copies matter all the more.
      with contextlib.suppress(OSError, types.Failure):
        self._on_round()

  def _renew_on(self) -> None:
    while not self._lets_go.wait(self._period_s):
      try:
        self._renew()
      except lease.TakenOver as error:
        self._on_failure(error)
        return
      except bucket.BucketError:  # the other thread gets the same error, and measures how long
        continue

  def _copy(self, is_last: bool) -> None:
    newest = checkpoint.newest(self._run.checkpoints)
    if newest is not None:
      self._copy_checkpoint(newest)
    now = time.monotonic()
    present = set()
    files = self._files()
    if any(self._run.logs in path.parents for path in files):
      self._set_earlier_logs_aside()
    for path in files:
      name = self._name(path)
      present.add(name)
      try:
        self._copy_file(path, name, now, is_last)
      except FileNotFoundError:
        continue  # it was moved meanwhile
    for name in set(self._sent) - present:
      bucket.delete(bucket.join(self._url, name))
      del self._sent[name]

  def _set_earlier_logs_aside(self) -> None:
    while self._earlier_logs:
      bucket.rename(*self._earlier_logs[-1])
      self._earlier_logs.pop()

  def _copy_file(self, path: pathlib.Path, name: str, now: float, is_last: bool) -> None:
    state, sent = _state(path), self._sent.get(name)
    if sent is not None:
      if sent.state == state:
        return
      # A file that is being rewritten is short for a moment, not small.
      size = max(state[0], sent.state[0])
      if not is_last and now - sent.at_s < size / _BYTES_PER_S:
        return
    bucket.upload(path, bucket.join(self._url, name))
    self._sent[name] = _Sent(state, now)

  def _files(self) -> list[pathlib.Path]:
    """Returns all files except checkpoints and those being written."""
    return [
      path
      for path in sorted(self._run.path.rglob('*'))
      if path.is_file()
      and not path.name.startswith('.')
      and path.relative_to(self._run.path).parts[0] != bucket_fetch.CHECKPOINTS
    ]

  def _name(self, path: pathlib.Path) -> str:
    return path.relative_to(self._run.path).as_posix()

  def _copy_checkpoint(self, newest: pathlib.Path) -> None:
    """Copies the newest checkpoint, after the best one that it names, which may never have been the
    newest one in any round."""
    try:
      state = _checkpoint_state(newest)
      if state == self._checkpoint_state:
        return
      best = checkpoint.best_of(checkpoint.load_meta(newest))
    except FileNotFoundError:  # it was deleted meanwhile: a newer one is whole
      return
    except checkpoint.Damaged:
      best = None
    if best is not None:
      self._copy_best(best.updates, newest)
    target = self._send(newest)
    if target is not None:
      self._checkpoint_state = state
      self._delete_old_checkpoints(target, None if best is None else best.updates)

  def _copy_best(self, updates: int, newest: pathlib.Path) -> None:
    """Copies the best checkpoint, unless the bucket has it or it is the one that is sent next."""
    path = checkpoint.at(self._run.checkpoints, updates)
    there = bucket_fetch.whole_checkpoints(self._url)
    if path not in (None, newest) and updates not in map(bucket_fetch.updates_of, there):
      self._send(path)

  def _send(self, path: pathlib.Path) -> str | None:
    """Copies a checkpoint and returns its name in the bucket; None if it is gone.

    It copies hard links to the files, or copies of them, because the loop may delete them
    meanwhile.
    """
    frozen = self._run.checkpoints / '.sending'
    try:
      return self._send_frozen(frozen, path.name) if _freeze(path, frozen) else None
    finally:
      shutil.rmtree(frozen, ignore_errors=True)

  def _send_frozen(self, frozen: pathlib.Path, of: str) -> str:
    """Copies the files of the checkpoint with the local name `of`; returns its name there."""
    folder = bucket.join(self._url, bucket_fetch.CHECKPOINTS)
    name = of.partition('.')[0]
    target = f'{name}{bucket_fetch.AGAIN}' if name in bucket.names(folder) else name
    _delete_checkpoint(bucket.join(folder, target))
    parts = sorted(
      (part for part in frozen.rglob('*') if part.is_file()),
      key=lambda part: part.name == bucket_fetch.META,
    )
    for part in parts:
      bucket.upload(part, bucket.join(folder, target, part.relative_to(frozen).as_posix()))
    return target

  def _delete_old_checkpoints(self, newest: str, best: int | None) -> None:
    """Deletes old checkpoints. Those that the run keeps remain, although a start fetches fewer, and
    so do the best one and the one with the newest replay memory; the others lose their memory, as
    they do locally. best: update of the best one."""
    folder = bucket.join(self._url, bucket_fetch.CHECKPOINTS)
    update = newest.removesuffix(bucket_fetch.AGAIN)
    old = [
      name
      for name in bucket_fetch.whole_checkpoints(self._url)
      if name.removesuffix(bucket_fetch.AGAIN) != update
    ]
    num_kept = local.read_json(self._run.config)['checkpoint']['keep'] - 1
    with_replay = bucket_fetch.with_replay_memory(folder, [*old, newest])
    kept = {newest, *with_replay[-1:], *old[max(0, len(old) - num_kept) :]}
    kept.update([name for name in old if bucket_fetch.updates_of(name) == best][-1:])
    for name in bucket.names(folder):
      if name not in kept:
        _delete_checkpoint(bucket.join(folder, name))
    for name in kept.intersection(with_replay[:-1]):
      bucket.delete_folder(bucket.join(folder, name, bucket_fetch.REPLAY))


def _freeze(path: pathlib.Path, frozen: pathlib.Path) -> bool:
  """Links or copies the files of a checkpoint; False if some are gone: a newer one is whole."""
  shutil.rmtree(frozen, ignore_errors=True)  # left by a kill
  try:
    shutil.copytree(path, frozen, copy_function=local.link_or_copy)
  except (FileNotFoundError, shutil.Error) as error:
    failed = error.args[0] if isinstance(error, shutil.Error) else []  # (from, to, reason) each
    if not path.exists() or not all(pathlib.Path(source).exists() for source, *_ in failed):
      return False
    reason = failed[0][-1] if failed else error
    raise OSError(f'cannot copy {path}: {reason}') from error
  return True


def _delete_checkpoint(url: str) -> None:
  bucket.delete(bucket.join(url, bucket_fetch.META))
  bucket.delete_folder(url)


def _state(path: pathlib.Path) -> tuple[int, int]:
  status = path.stat()
  return status.st_size, status.st_mtime_ns


def _checkpoint_state(path: pathlib.Path) -> tuple[str, int, int]:
  return (path.name.partition('.')[0], *_state(path / bucket_fetch.META))
