"""A run of a sweep: `python -m seed_acme.programs.tools.sweep.child train --run_dir=DIR ...`.

It is the same as `seed-acme train ...`, except that it ends with the sweep that started it, even if
that is killed.
"""

from __future__ import annotations

import sys

from seed_acme.programs.system import processes


def main(argv: list[str]) -> int:
  """Runs the command; returns its exit code."""
  processes.end_with_parent()  # before the imports, which take seconds
  from seed_acme.programs import cli

  return cli.main(argv)


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
