"""Whole files that are written at once, by several threads or processes."""

import errno
import fcntl
import os
import threading

import pytest

from seed_acme.files import local


@pytest.mark.parametrize('has_hard_links', [True, False])
def test_a_file_that_exists_is_kept(tmp_path, monkeypatch, has_hard_links):
  def refuse(source, target):
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))

  if not has_hard_links:
    monkeypatch.setattr(os, 'link', refuse)
  path = tmp_path / 'failure.json'
  for value in ('first', 'second'):
    local.write_json(path, value, keeps_first=True)
  assert local.read_json(path) == 'first'
  local.write_json(path, 'third')
  assert local.read_json(path) == 'third' and os.listdir(tmp_path) == [path.name]


def test_two_threads_write_one_file(tmp_path, monkeypatch):
  """Each has a temporary file of its own; the last one stays."""
  sync, both_have_written = os.fsync, threading.Barrier(2, timeout=60)

  def fsync(file):
    sync(file)
    both_have_written.wait()

  monkeypatch.setattr(os, 'fsync', fsync)
  path, errors = tmp_path / 'status.json', []

  def write(value):
    try:
      local.write_json(path, value)
    except Exception as error:
      errors.append(error)

  threads = [threading.Thread(target=write, args=[[i] * 1000]) for i in range(2)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert not errors and os.listdir(tmp_path) == [path.name]
  assert local.read_json(path) in ([0] * 1000, [1] * 1000)


def test_locks_on_a_network_disk(tmp_path, monkeypatch):
  """NFS refuses a shared lock on what is not open for reading, and another if not for writing."""

  def flock(file, operation):
    mode = fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE
    if mode == (os.O_WRONLY if operation & fcntl.LOCK_SH else os.O_RDONLY):
      raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    take(file, operation)

  take = fcntl.flock
  monkeypatch.setattr(fcntl, 'flock', flock)
  path = tmp_path / 'learner.lock'
  assert not local.is_held(path)
  with local.lock_with_others(path), local.lock_with_others(path):
    assert local.is_held(path)
  assert not local.is_held(path)
  with local.lock(path, str):
    assert local.is_held(path)
