"""Replay in a process of its own."""

from __future__ import annotations

import threading

from seed_acme import config as config_lib
from seed_acme.programs.building import build
from seed_acme.programs.building import build_replay
from seed_acme.programs.system import descriptors
from seed_acme.programs.system import processes
from seed_acme.storage import run_directory


def serve(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  port: int,
  stop: threading.Event,
) -> None:
  """Main thread of a replay node of its own, called by `graph/entries.py`."""
  descriptors.prepare()
  processes.configure_tensorflow(num_threads=1)
  server = build_replay.make_replay_server(config, run_dir, build.make_acting(config), port)
  stop.wait()
  server.stop()
