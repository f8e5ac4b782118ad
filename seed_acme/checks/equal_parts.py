"""Numbers that have to fall into equal parts."""

from __future__ import annotations

from collections.abc import Mapping

from seed_acme import types


def check(values: Mapping[str, int], number: int, given: str) -> None:
  """Raises `types.UserError` for a value, by its field's name, that is no multiple of `number`.

  given: the fields that ask for so many parts, with their values.
  """
  for name, value in values.items():
    if value % number:
      raise types.UserError(
        f'{name} ({value}) is not a multiple of {given}, which have equal shares: change one of '
        'them'
      )
