"""The launcher's process: `python -m seed_acme.programs.launcher RUN_DIR LAUNCH [ARGUMENT ...]`.

The front end starts it in a session of its own, so that Ctrl-C reaches the front end alone, and
stops it with SIGTERM. The launcher runs the configuration that is saved in the run folder. It exits
with 0, with 2 for wrong input, or with 1.
"""

from __future__ import annotations

import pathlib
import sys

from seed_acme import layout as layout_lib
from seed_acme.programs.front_end import launches
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config


def main(argv: list[str]) -> None:
  """Runs to the end and exits with the run's exit code."""
  processes.end_with_parent()
  signals.leave_hangup_to_parent()
  run_dir = run_directory.RunDirectory(pathlib.Path(argv[1]))
  launch = launches.load(*argv[2:])
  try:
    with processes.reported_failures(run_dir, launch.node, processes.LAUNCHER):
      config = saved_config.load(run_dir.config)
      launch.refuse(layout_lib.Layout.of(config))
      code = launch.lead(config, run_dir)
  except SystemExit as exit_:
    code = int(exit_.code or 0)
  launch.end(code)


if __name__ == '__main__':
  main(sys.argv)
