"""Puts each mutation into a copy of the tree and runs its tests there, one of which must fail.

A mutant is killed if they fail, lives if they pass, and hangs if they take longer than the limit.
The share of killed mutants shows how much of the code that the tests run they also check.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
import contextlib
import difflib
import enum
import os
import pathlib
import shutil
import tempfile
import time

from tests.mutations import pytest_process
from tests.mutations import record

LEAST_SHARE = 0.95  # share of the mutants that the tests have to kill
_TIMEOUT_S = 300.0
# The package and its link targets, the tests, and other files that they read.
_COPIED = ('seed_acme', 'agents', 'configs', 'programs', 'replay', 'tests', 'pyproject.toml')
_TESTS_FAILED = 1  # pytest's exit code


class Unusable(Exception):
  """There is no valid verdict: the tests fail without a fault, or another tree is imported."""


class Verdict(enum.Enum):
  KILLED = 'killed'
  LIVED = 'LIVED'
  HUNG = 'HUNG'


class Tree:
  """A copy of the repository's code and tests."""

  def __init__(self, root: pathlib.Path, folder: pathlib.Path, timeout_s: float):
    """root: of the repository. folder: new, for the copy. timeout_s: for one mutant's tests."""
    self._root = folder.resolve()
    self._timeout_s = timeout_s
    folder.mkdir()
    for name in _COPIED:
      source, target = root / name, folder / name
      if source.is_dir():
        # The package's links stay links, to folders of the copy.
        shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns('__pycache__'))
      elif source.exists():
        shutil.copy2(source, target)

  def check_tests(self, tests: Sequence[str]) -> None:
    """Runs the tests without a fault; raises `Unusable` if one fails."""
    # No time-out: all of them together may take long, and the user can see a hang.
    code, output = self._run(tests, None, keeps_bytecode=True)
    if code:
      raise Unusable(f'the tests do not pass without a mutation:\n{output}')

  def verdict(self, mutation: record.Mutation) -> Verdict:
    """Returns the verdict; raises `record.Stale`, and `Unusable` if its tests cannot be run."""
    with self._with_fault(mutation):
      code, output = self._run(mutation.tests.split(), self._timeout_s)
    if code is None:
      return Verdict.HUNG
    if code not in (0, _TESTS_FAILED):
      raise Unusable(f'pytest ended with {code} for mutation {mutation.name}:\n{output}')
    return Verdict.KILLED if code else Verdict.LIVED

  @contextlib.contextmanager
  def _with_fault(self, mutation: record.Mutation) -> Iterator[None]:
    path = self._root / mutation.file
    original, status = path.read_bytes(), path.stat()
    try:
      path.write_text(mutation.applied_to(original.decode()), encoding='utf-8')
      # Python reuses this file's bytecode if time, in seconds, and size are the same.
      os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10 * 10**9))
      yield
    finally:
      path.write_bytes(original)
      os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

  def _run(
    self, tests: Sequence[str], timeout_s: float | None, keeps_bytecode: bool = False
  ) -> tuple[int | None, str]:
    try:
      return pytest_process.run(tests, self._root, timeout_s, keeps_bytecode=keeps_bytecode)
    except pytest_process.OtherTree as error:
      raise Unusable(str(error)) from None


def main(arguments: Sequence[str], mutations: Sequence[record.Mutation], root: pathlib.Path) -> int:
  """Returns 0 if enough of the mutants are killed, 1 if not, 2 if there is no verdict."""
  options = _parse(arguments)
  try:
    chosen = _chosen(options.names, mutations)
    if options.list:
      for mutation in chosen:
        print(f'{mutation.name:42} {mutation.file}: {mutation.fault}')
      return 0
    with tempfile.TemporaryDirectory(prefix='seed_acme_mutations_') as folder:
      verdicts = _judge(chosen, root, pathlib.Path(folder) / 'tree', options.timeout_s)
  except (record.Stale, Unusable) as error:
    print(f'error: {error}')
    return 2
  return _report(verdicts)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
  parser = argparse.ArgumentParser(prog='python -m tests.mutations', description=__doc__)
  parser.add_argument('names', nargs='*', help='of mutations, or beginnings of names; default: all')
  parser.add_argument('--list', action='store_true', help='name the mutations and run nothing')
  parser.add_argument(
    '--timeout_s',
    type=float,
    default=_TIMEOUT_S,
    help='after which a mutant hangs (default: %(default)g)',
  )
  return parser.parse_args(arguments)


def _chosen(names: Sequence[str], mutations: Sequence[record.Mutation]) -> list[record.Mutation]:
  for name in names:
    if not any(mutation.name.startswith(name) for mutation in mutations):
      near = difflib.get_close_matches(name, [mutation.name for mutation in mutations])
      raise Unusable(
        f'no mutation {name!r}: choose one of --list'
        + (f' (near: {", ".join(near)})' if near else '')
      )
  return [mutation for mutation in mutations if mutation.name.startswith(tuple(names) or '')]


def _judge(
  mutations: Sequence[record.Mutation], root: pathlib.Path, folder: pathlib.Path, timeout_s: float
) -> dict[record.Mutation, Verdict]:
  for mutation in mutations:  # before the first mutant, rather than after an hour
    _check_applies(mutation, root)
  tree = Tree(root, folder, timeout_s)
  tree.check_tests(sorted({test for mutation in mutations for test in mutation.tests.split()}))
  verdicts = {}
  for mutation in mutations:
    start = time.monotonic()
    verdicts[mutation] = tree.verdict(mutation)
    print(
      f'{verdicts[mutation].value:6} {mutation.name} ({time.monotonic() - start:.0f} s)', flush=True
    )
  return verdicts


def _check_applies(mutation: record.Mutation, root: pathlib.Path) -> None:
  path = root / mutation.file
  if not path.is_file():
    raise record.Stale(f'mutation {mutation.name} is stale: there is no {mutation.file}')
  mutation.applied_to(path.read_text(encoding='utf-8'))


def _report(verdicts: dict[record.Mutation, Verdict]) -> int:
  counts = {kind: list(verdicts.values()).count(kind) for kind in Verdict}
  share = counts[Verdict.KILLED] / len(verdicts)
  print(
    f'{counts[Verdict.KILLED]} of {len(verdicts)} mutants killed ({share:.1%}), '
    f'{counts[Verdict.LIVED]} lived, {counts[Verdict.HUNG]} hung'
  )
  for mutation, verdict in verdicts.items():
    if verdict != Verdict.KILLED:
      print(
        f'{verdict.value} {mutation.name}, {mutation.file}: {mutation.fault}\n'
        f'  {mutation.old!r}\n  -> {mutation.new!r}\n  {mutation.tests}'
      )
  if share < LEAST_SHARE:
    print(f'error: fewer than {LEAST_SHARE:.0%} of the mutants were killed')
    return 1
  return 0
