"""A run of a sweep: `python -m seed_acme.programs.tools.sweep.child train --run_dir=DIR ...`.

The same as `seed-acme train ...`, but it ends with the sweep that started it, however that ends.
"""

from __future__ import annotations

import sys

from seed_acme.programs.system import processes


def main(argv: list[str]) -> int:
  """The exit code of the command."""
  processes.end_with_parent()  # before the imports, which take their time
  from seed_acme.programs import cli

  return cli.main(argv)


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
