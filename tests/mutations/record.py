"""A fault that a programmer's slip could put into our code, and the tests that must notice it."""

from __future__ import annotations

from typing import NamedTuple


class Stale(Exception):
  """The code has changed under a mutation: its old text is not there exactly once."""


class Mutation(NamedTuple):
  """name: unique. file: path in the repository. old: text that occurs in it exactly once.

  new: what stands in its place. tests: files or node ids with a space between, of which one must
    fail then; quick ones. fault: what the slip would do to a run.
  """

  name: str
  file: str
  old: str
  new: str
  tests: str
  fault: str

  def applied_to(self, text: str) -> str:
    """The file's text with the fault in it; raises `Stale`."""
    count = text.count(self.old)
    if count != 1:
      raise Stale(
        f'mutation {self.name} is stale: its old text occurs {count} times in '
        f'{self.file}, expected once: {self.old!r}'
      )
    return text.replace(self.old, self.new)
