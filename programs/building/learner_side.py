"""The learner's end of a run, wired once for all programs: inference, replay and training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import contextlib
from typing import NamedTuple

from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.files import local
from seed_acme.inference import server as server_lib
from seed_acme.inference import server_statistics
from seed_acme.learning import peers as peers_lib
from seed_acme.learning import training_loop
from seed_acme.networks import requirements
from seed_acme.parallel import devices as devices_lib
from seed_acme.programs.building import build
from seed_acme.programs.building import build_replay
from seed_acme.programs.building import sections as sections_lib
from seed_acme.progress import counting
from seed_acme.progress import waiting
from seed_acme.replay import local_items as local_items_lib
from seed_acme.replay import local_queue as local_queue_lib
from seed_acme.replay import tables as tables_lib
from seed_acme.replay.shards import accounts
from seed_acme.replay.shards import memories
from seed_acme.replay.shards import samples
from seed_acme.replay.shards import writers
from seed_acme.storage import run_directory
from seed_acme.transport import fence as fence_lib


class LearnerSide(NamedTuple):
  """The parts of the learner's process, connected with each other; no thread is started yet."""

  layout: layout_lib.Layout  # with this host's devices
  acting: build.Acting
  replay_addresses: tuple[str, ...]  # of each shard
  memory: memories.Memories | None
  writer: writers.Writers
  counters: counting.Counters
  servers: tuple[server_lib.InferenceServer, ...]
  statistics: server_statistics.ServerStatistics
  loop: training_loop.TrainingLoop
  samples: samples.Samples
  account: accounts.Accounts
  shown_counts: tuple[local_queue_lib.ShownCounts, ...]  # of local queues


def make(
  sections: sections_lib.LearnerSections,
  run_dir: run_directory.RunDirectory,
  spec: types.EnvironmentSpec,
  cleanup: contextlib.ExitStack,
  *,
  on_failure: Callable[[BaseException], None],
  num_ahead: int,
  takes_turns: bool = False,
  replay_addresses: Sequence[str] = (),
  peers: peers_lib.Peers = peers_lib.ALONE,
  fence: fence_lib.Fence,
) -> LearnerSide:
  """Builds the parts, and restores the run from its newest checkpoint if there is one.

  spec: of the environments. cleanup: receives the calls that stop the parts.
  on_failure: called from the threads of the parts. num_ahead: samples to prefetch.
    takes_turns: whether one thread steps environments, acts and trains. A queue is no Reverb table
    then, and time steps are checked only once.
    replay_addresses: of replay nodes; () = this process serves replay. peers: the learner hosts
    that train together. fence: who may connect to replay served by this process.
  """
  _start_telling(sections, spec, run_dir, cleanup, peers)
  index, place, layout = peers.index, sections.place, sections.layout
  devices = devices_lib.choose(sections.learner, place.batch_size, len(layout.actors_of(index)))
  layout = layout.with_devices(index, devices.inference)
  acting = build.make_acting(sections.agent, sections.network, spec, devices)
  items: list[local_queue_lib.Keeper | None] = [None for _ in place.shards]
  if replay_addresses:
    build_replay.take_over(place.shards[0], acting, run_dir, replay_addresses)
  else:
    items = _new_items(place.shards, takes_turns)
    replay_addresses = _serve(sections, layout, run_dir, acting, takes_turns, cleanup, fence)
  is_saved = sections.loop.checkpoint.replay
  memory = build_replay.make_memories(layout, run_dir, is_saved, replay_addresses, index)
  writer = build_replay.make_writers(layout, acting, replay_addresses, memory, items, index)
  cleanup.callback(writer.stop)
  counters = peers.new_counters()
  statistics = server_statistics.ServerStatistics(
    layout.num_environments, lambda: counters.agent_steps
  )
  servers = build.make_inference_servers(
    sections.environment.id,
    layout,
    acting,
    writer,
    counters,
    statistics,
    index,
    checks_values=not takes_turns,
  )
  loop = build.make_training_loop(sections, run_dir, acting, statistics, counters, memory, peers)
  loop.restore()
  its_samples, account = build_replay.make_samples(
    place.shards, acting, replay_addresses, writer, num_ahead, on_failure, items, run_dir.add_notice
  )
  loop.watch_replay(writer.seconds, account)
  return LearnerSide(
    layout,
    acting,
    tuple(replay_addresses),
    memory,
    writer,
    counters,
    servers,
    statistics,
    loop,
    its_samples,
    account,
    _show_counts(place.shards, items, replay_addresses, cleanup),
  )


def hold_back(
  side: LearnerSide, server: server_lib.InferenceServer
) -> Callable[[types.ActorRequest], bool]:
  """Returns a function that says whether a request has to wait although replay has room.

  It has to if its own shard is full, or if it needs the next weights first.
  """
  if not side.layout.is_sharded:
    return server.hold_back
  num_training = side.layout.num_training

  def holds(request: types.ActorRequest) -> bool:
    is_training = bool(request.env_ids[0] < num_training)
    if is_training and not side.writer.has_room_for(request.env_ids):
      return True
    return server.hold_back(request)

  return holds


def write_addresses(run_dir: run_directory.RunDirectory, side: LearnerSide, **others: str) -> None:
  """Writes the addresses of the run's servers to the run folder, for commands such as `inspect`.

  With them go the ends of earlier starts, any other than which is the end of these servers.
  """
  replay: str | list[str] = side.replay_addresses[0]
  if len(side.replay_addresses) > 1:
    replay = list(side.replay_addresses)
  record = {**others, 'replay': replay, 'earlier_ends': run_dir.ends()}
  local.write_json(run_dir.addresses, record)


def _start_telling(
  sections: sections_lib.LearnerSections,
  spec: types.EnvironmentSpec,
  run_dir: run_directory.RunDirectory,
  cleanup: contextlib.ExitStack,
  peers: peers_lib.Peers,
) -> None:
  """Tells the user what is odd about the settings, and from now on what this process waits for."""
  run_dir.set_phase('building the network')
  waits = waiting.Watch(run_dir.add_notice)
  waits.start()
  cleanup.callback(waits.stop)
  if peers.is_chief:
    of_network = requirements.notices(sections.network, spec, sections.learner.xla)
    for notice in (*sections.agent.notices(spec), *of_network):
      run_dir.add_notice(notice)


def _new_items(
  shards: Sequence[layout_lib.Shard], takes_turns: bool
) -> list[local_queue_lib.Keeper | None]:
  """Makes what keeps the unrolls of each queue in this process; None for a replay memory."""
  if shards[0].spec.is_memory:
    return [None for _ in shards]
  if takes_turns:
    return [local_queue_lib.LocalQueue(s.batch_size, s.unrolls_per_item) for s in shards]
  return [local_items_lib.LocalItems() for _ in shards]


def _show_counts(
  shards: Sequence[layout_lib.Shard],
  items: Sequence[local_queue_lib.Keeper | None],
  addresses: Sequence[str],
  cleanup: contextlib.ExitStack,
) -> tuple[local_queue_lib.ShownCounts, ...]:
  """Makes what shows the counts of each local queue to `seed-acme inspect`."""
  shown_counts = tuple(
    local_queue_lib.ShownCounts(queue, address, shard.queue_size // shard.unrolls_per_item)
    for queue, address, shard in zip(items, addresses, shards)
    if isinstance(queue, local_queue_lib.LocalQueue)
  )
  for shown in shown_counts:
    cleanup.callback(shown.stop)
  return shown_counts


def _serve(
  sections: sections_lib.LearnerSections,
  layout: layout_lib.Layout,
  run_dir: run_directory.RunDirectory,
  acting: build.Acting,
  takes_turns: bool,
  cleanup: contextlib.ExitStack,
  fence: fence_lib.Fence,
) -> list[str]:
  """Starts replay servers in this process; returns the address of each shard."""
  queue_of: tables_lib.QueueOf = 'counts' if takes_turns else 'tickets'
  addresses, host, is_saved = [], sections.place.index, sections.loop.checkpoint.replay
  for shard in sections.place.shards:
    server = build_replay.make_replay_server(
      run_dir, layout, acting, is_saved, shard.port, fence, queue_of, host, shard.index
    )
    cleanup.callback(server.stop)
    addresses.append(server.address)
  return addresses
