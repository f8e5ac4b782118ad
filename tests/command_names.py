"""The commands of the program."""

from __future__ import annotations

from seed_acme.programs.command_line import command


def listed() -> list[str]:
  """Returns the names of all commands."""
  return list(command.every())
