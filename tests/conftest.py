"""Settings that every test needs before TensorFlow is loaded; a storage service."""

import gc
import json
import multiprocessing.util
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple
import urllib.parse

import pytest

for _name, _value in {
  'TF_CPP_MIN_LOG_LEVEL': '2',
  'TF_ENABLE_ONEDNN_OPTS': '1',  # as in every process of a run
  'TF_NUM_INTRAOP_THREADS': '1',  # small networks, and two cores at most
  'TF_NUM_INTEROP_THREADS': '1',
  'GRPC_VERBOSITY': 'ERROR',
  'GRPC_ENABLE_FORK_SUPPORT': '0',  # tests that load gRPC before seed_acme start programs, too
}.items():
  os.environ.setdefault(_name, _value)
os.environ['MPLBACKEND'] = 'agg'  # overrides the shell's setting, since there may be no display
# What libraries leave in the temporary folder goes with the tests. pytest's own folders stay where
# they are. The path is short, because Unix sockets are in it, and has no `_`, which some refuse.
os.environ.setdefault('PYTEST_DEBUG_TEMPROOT', tempfile.gettempdir())
_TEMPORARY = os.path.join(
  os.environ['PYTEST_DEBUG_TEMPROOT'], f'tests-{os.getpid()}-{secrets.token_hex(3)}'
)
os.mkdir(_TEMPORARY, mode=0o700)
os.environ['TMPDIR'] = tempfile.tempdir = _TEMPORARY
# After multiprocessing has removed its own folder in there, whose priority is -100.
multiprocessing.util.Finalize(
  None, shutil.rmtree, (_TEMPORARY,), {'ignore_errors': True}, exitpriority=-1000
)


def pytest_collection_modifyitems(items):
  """Runs files with slow tests first, or with tests on several hosts.

  Each file belongs to one of several processes, and the others would wait for a slow one that
  starts last.
  """
  marks = ('slow', 'scale')
  slow = {item.path for item in items if any(map(item.get_closest_marker, marks))}
  items.sort(key=lambda item: item.path not in slow)


# Under `nohup` the tests' programs would inherit that it is ignored, and some tests send it.
if threading.current_thread() is threading.main_thread():
  signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection(session):
  """Disables the garbage collector during imports, where it would take a fifth of the time."""
  gc.disable()


def pytest_collection_finish(session):
  """Excludes imported objects from garbage collection; only objects of tests are walked over."""
  gc.freeze()
  gc.enable()


class Storage(NamedTuple):
  """A stand-in for Google Cloud Storage. environment: variables for processes that use it."""

  environment: dict[str, str]
  objects: pathlib.Path

  def path(self, url: str) -> pathlib.Path:
    """Returns the file that holds an object."""
    bucket, _, name = url.removeprefix('gs://').partition('/')
    return self.objects / bucket / urllib.parse.quote(name, safe='')

  def names(self, url: str) -> list[str]:
    """Returns the names of the objects below a folder, relative to it."""
    bucket, _, prefix = url.removeprefix('gs://').partition('/')
    found = (urllib.parse.unquote(path.name) for path in (self.objects / bucket).glob('[!.]*'))
    return sorted(
      name.removeprefix(f'{prefix}/')
      for name in found
      if name.startswith(f'{prefix}/') and not name.endswith('/')
    )


@pytest.fixture(scope='session')
def storage(tmp_path_factory):
  """Serves gs:// to TensorFlow in processes that have its environment variables."""
  folder = tmp_path_factory.mktemp('storage')
  script = pathlib.Path(__file__).with_name('fake_gcs.py')
  server = subprocess.Popen([sys.executable, script, folder])
  variables = folder / 'environment.json'
  give_up = time.monotonic() + 60
  while not variables.exists():
    assert server.poll() is None and time.monotonic() < give_up, 'the storage does not start'
    time.sleep(0.05)
  yield Storage(json.loads(variables.read_text()), folder / 'objects')
  server.kill()
  server.wait()
