"""A fault that could get into our code by mistake, and the tests that must notice it."""

from __future__ import annotations

from typing import NamedTuple


class Stale(Exception):
  """The code under a mutation has changed: its old text does not occur exactly once."""


class Mutation(NamedTuple):
  """A mutation. name: unique. file: path in the repository. old: text that occurs in it exactly
  once. new: its replacement. tests: quick files or node ids separated by a space, one of which must
  then fail. fault: what it would do to a run."""

  name: str
  file: str
  old: str
  new: str
  tests: str
  fault: str

  def applied_to(self, text: str) -> str:
    """Returns the file's text with the fault in it; raises `Stale`."""
    count = text.count(self.old)
    if count != 1:
      raise Stale(
        f'mutation {self.name} is stale: its old text occurs {count} times in '
        f'{self.file}, expected once: {self.old!r}'
      )
    return text.replace(self.old, self.new)
