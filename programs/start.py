"""The entry point of `seed-acme`."""

from __future__ import annotations

import signal


def main() -> int:
  """Runs `cli.main`. Ctrl-C during its imports is no traceback, but exit code 130 as always."""
  try:
    from seed_acme.programs import cli
  except KeyboardInterrupt:
    return 128 + signal.SIGINT
  return cli.main()
