"""Interpreters other than the learner's, with actors' packages, made only once.

The newest has envpool, too, which takes longer to install than all the others.

A machine without Python 3.12 and 3.13 fails here, because actors are promised to run under them.
"""

import contextlib
import fcntl
import os
import pathlib
import subprocess
import sys

VERSIONS = ('3.12', '3.13')
_EXTRAS = {'3.13': ('--extras', 'envpool')}
_COMMAND = pathlib.Path(sys.executable).with_name('seed-acme')
_HANG_S = 900.0


@contextlib.contextmanager
def _only_one(path):
  """Locks a file, so that one test process at a time makes an interpreter."""
  with open(path, 'w') as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    yield


def make(folder, version):
  """Returns the path of an interpreter. folder: shared by all processes of this test run."""
  made = pathlib.Path(folder) / f'actor-{version}'
  stamp = made / 'complete'
  with _only_one(pathlib.Path(folder) / f'actor-{version}.lock'):
    if not stamp.exists():
      done = subprocess.run(
        [_COMMAND, 'actor-env', made, f'--python={version}', *_EXTRAS.get(version, ())],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Only some of what is installed is ever imported.
        env={**os.environ, 'PIP_NO_COMPILE': '1'},
        timeout=_HANG_S,
        check=False,
      )
      assert done.returncode == 0, done.stdout[-3000:]
      assert f'Actors run there with --config.actor.python={made}/bin/python' in done.stdout
      stamp.touch()
  return str(made / 'bin' / 'python')


def shared_folder(tmp_path_factory):
  """Returns a folder that all workers of pytest-xdist share."""
  base = tmp_path_factory.getbasetemp()
  return base.parent if base.name.startswith('popen-') else base
