"""The learner's end of a run, wired once for all programs: inference, replay and training."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
from typing import NamedTuple

from seed_acme import config as config_lib
from seed_acme import sizes
from seed_acme.acting import activity as activity_lib
from seed_acme.inference import server as server_lib
from seed_acme.inference import server_statistics
from seed_acme.learning import training_loop
from seed_acme.programs.building import build
from seed_acme.programs.building import build_replay
from seed_acme.replay import account as account_lib
from seed_acme.replay import dataset as dataset_lib
from seed_acme.replay import local_items as local_items_lib
from seed_acme.replay import memory as memory_lib
from seed_acme.replay import writer as writer_lib
from seed_acme.storage import run_directory
from seed_acme.utils import collectives
from seed_acme.utils import counting
from seed_acme.utils import devices as devices_lib
from seed_acme.utils import waiting


class LearnerSide(NamedTuple):
  """The parts, connected with each other; none of their threads is started."""

  acting: build.Acting
  replay_address: str
  memory: memory_lib.ReplayMemory | None
  writer: writer_lib.ReplayWriter
  counters: counting.Counters
  servers: tuple[server_lib.InferenceServer, ...]
  statistics: server_statistics.ServerStatistics
  loop: training_loop.TrainingLoop
  prefetcher: dataset_lib.Prefetcher
  account: account_lib.Account


def make(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  activity: activity_lib.Activity,
  cleanup: contextlib.ExitStack,
  *,
  on_failure: Callable[[BaseException], None],
  num_ahead: int,
  replay_address: str | None = None,
  hosts: collectives.Group | None = None,
) -> LearnerSide:
  """Restores the run from its newest checkpoint, if there is one.

  activity: where it says that an environment is being made. cleanup: gets what stops the parts.
  on_failure: called from the threads of the parts. num_ahead: samples to fetch before the learner
  asks. replay_address: of a replay node; None = replay is served here. hosts: that learn together.
  """
  waits = waiting.Watch(run_dir.add_notice)
  waits.start()
  cleanup.callback(waits.stop)
  run_dir.set_phase('building the network')
  share = sizes.share(config)
  index = 0 if hosts is None else hosts.index
  acting = build.make_acting(config, activity, devices_lib.choose(share))
  items = None
  if replay_address is None:
    if not config.agent.replay_spec().is_memory:
      items = local_items_lib.LocalItems()
    port = config.replay.port if hosts is None or hosts.is_chief else 0
    replay = build_replay.make_replay_server(share, run_dir, acting, port, items, index)
    cleanup.callback(replay.stop)
    replay_address = replay.address
  else:
    build_replay.take_over(config, replay_address)
  memory = build_replay.make_memory(share, replay_address)
  writer = build_replay.make_writer(share, acting, replay_address, memory, items)
  cleanup.callback(writer.stop)
  counters = counting.Counters() if hosts is None else counting.AgreedCounters()
  statistics = server_statistics.ServerStatistics(sizes.num_environments(config))
  servers = build.make_inference_servers(config, acting, writer, counters, statistics, index)
  loop = build.make_training_loop(config, run_dir, acting, statistics, counters, memory, hosts)
  loop.restore()
  prefetcher, account = build_replay.make_samples(
    share, replay_address, writer, num_ahead, on_failure, items
  )
  loop.watch_replay(writer.timer, account)
  return LearnerSide(
    acting, replay_address, memory, writer, counters, servers, statistics, loop, prefetcher, account
  )
