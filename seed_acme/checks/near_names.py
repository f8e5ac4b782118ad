"""Suggests known names that are similar to an unknown one."""

from __future__ import annotations

from collections.abc import Iterable
import difflib


def hint(name: str, known: Iterable[str]) -> str:
  """Returns `; did you mean ... or ...?`, the nearest first; '' if no name is similar."""
  close = _close(name, known, 0.5)
  return f'; did you mean {" or ".join(close)}?' if close else ''


def near(name: str, known: Iterable[str], prefix: str = '') -> str:
  """Returns ` (near: a, b)`, to stand behind the name, each with the prefix; '' as `hint`.

  For ids, which are longer and have more in common with each other.
  """
  close = [prefix + one for one in _close(name, known, 0.6)]
  return f' (near: {", ".join(close)})' if close else ''


def _close(name: str, known: Iterable[str], cutoff: float) -> list[str]:
  return difflib.get_close_matches(name, list(known), n=3, cutoff=cutoff)
