"""The commands of the program, as its help lists them."""

from __future__ import annotations

import contextlib
import io

from seed_acme.programs import cli


def listed() -> list[str]:
  """Names of all commands."""
  shown = io.StringIO()
  with contextlib.redirect_stdout(shown):
    cli.main(['--help'])
  _, _, rows = shown.getvalue().partition('\n\n')
  return [row.split()[0] for row in rows.splitlines()]
