"""Replay in a process of its own."""

from __future__ import annotations

import threading
import time

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme.programs.building import build
from seed_acme.programs.building import build_replay
from seed_acme.programs.system import descriptors
from seed_acme.programs.system import processes
from seed_acme.programs.trial import specification
from seed_acme.storage import run_directory
from seed_acme.utils import fence as fence_lib

_POLL_S = 0.1


def serve(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  port: int,
  stop: threading.Event,
  fence: fence_lib.Fence,
  shard: int = 0,
) -> None:
  """Main thread of a replay node of its own, called by `graph/entries.py`.

  All nodes hear of a stop at the same moment. A learner on this machine saves then what this node
  holds, so this node goes on until that learner has ended.
  """
  descriptors.prepare()
  processes.configure_tensorflow(num_threads=1)
  acting = build.make_acting(config, specification.of_run(config, run_dir))
  server = build_replay.make_replay_server(
    config, run_dir, layout_lib.Layout.of(config), acting, port, fence, shard=shard
  )
  stop.wait()
  while run_dir.has_learner():
    time.sleep(_POLL_S)
  server.stop()
