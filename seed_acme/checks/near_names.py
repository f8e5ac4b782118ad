"""Suggests known names that are similar to an unknown one."""

from __future__ import annotations

from collections.abc import Iterable
import difflib


def hint(name: str, known: Iterable[str]) -> str:
  """Returns `; did you mean ... or ...?`, the nearest first; '' if no name is similar."""
  close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
  return f'; did you mean {" or ".join(close)}?' if close else ''
