"""pytest on a copy of the tree, in forked processes that already have the large libraries loaded.

Loading them takes longer than most tests of a mutant.
"""

from __future__ import annotations

from collections.abc import Sequence
import contextlib
import multiprocessing
import os
import pathlib
import signal
import sys
import tempfile

_LIBRARIES = ('pytest', 'tensorflow', 'sonnet', 'reverb')
_OTHER_TREE = 100  # exit code; pytest's own codes end at 5

# TensorFlow reads it when it is loaded, which here is before the tests' own settings.
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
_processes = multiprocessing.get_context('forkserver')
_processes.set_forkserver_preload(list(_LIBRARIES))


class OtherTree(Exception):
  """An installed `seed_acme` is imported instead of the copy, so no verdict would be valid."""


def run(
  tests: Sequence[str], root: pathlib.Path, timeout_s: float | None, *, keeps_bytecode: bool
) -> tuple[int | None, str]:
  """Runs pytest; returns its exit code, or None after the time-out, and its output.

  tests: files or node ids in `root`, the copy. keeps_bytecode: shortens later runs, but bytecode of
    a fault must not be kept. Raises `OtherTree`.
  """
  with tempfile.NamedTemporaryFile('r') as output:
    process = _processes.Process(target=_run, args=(tests, str(root), output.name, keeps_bytecode))
    process.start()
    try:
      process.join(timeout_s)
      code = process.exitcode
    finally:
      with contextlib.suppress(ProcessLookupError):  # usually no process is left
        os.killpg(process.pid, signal.SIGKILL)
      process.join()
    if code == _OTHER_TREE:
      raise OtherTree(output.read())
    return code, output.read()


def _run(tests: Sequence[str], root: str, output: str, keeps_bytecode: bool) -> None:
  """Runs in the new process."""
  os.setsid()
  descriptor = os.open(output, os.O_WRONLY)
  os.dup2(descriptor, 1)
  os.dup2(descriptor, 2)
  os.chdir(root)
  # A pytest around this one has set its own variables, and programs that tests start have to find
  # the copy, too.
  for name in [name for name in os.environ if name.startswith('PYTEST_')]:
    del os.environ[name]
  os.environ['PYTHONPATH'] = root
  sys.dont_write_bytecode = not keeps_bytecode
  if not keeps_bytecode:
    os.environ['PYTHONDONTWRITEBYTECODE'] = '1'
  for name in [name for name in sys.modules if name.partition('.')[0] in ('tests', 'seed_acme')]:
    del sys.modules[name]  # imported from the repository
  sys.path.insert(0, root)
  _check_tree(root)
  import pytest

  # Tests that are too slow for `make test` may still notice a fault.
  code = pytest.main(['-x', '-q', '-p', 'no:cacheprovider', '-m', 'not learning', *tests])
  sys.stdout.flush()
  os._exit(code)  # without waiting for threads of a mutant


def _check_tree(root: str) -> None:
  import seed_acme

  found = list(seed_acme.__path__)
  if not all(pathlib.Path(path).resolve() == pathlib.Path(root, 'seed_acme') for path in found):
    print(f'seed_acme is imported from {found}, not from the copy in {root}', flush=True)
    os._exit(_OTHER_TREE)
