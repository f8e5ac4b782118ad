"""Names that are near to one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
import difflib


def hint(name: str, known: Iterable[str]) -> str:
  """`; did you mean ... or ...?`, the nearest first; '' where nothing is near."""
  close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
  return f'; did you mean {" or ".join(close)}?' if close else ''
