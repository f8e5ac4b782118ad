"""The Launchpad program graph: one function for every launch type.

Kinds of node: `learner` (with inference), `replay` if it has a process of its own, and `actor` (the
last one plays the evaluation environments).
"""

from __future__ import annotations

from collections.abc import Callable
import secrets
import socket
import threading
from typing import Any

import launchpad as lp
from launchpad.nodes.python import local_multi_processing

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.graph import entries
from seed_acme.programs.nodes import lives
from seed_acme.programs.nodes import node as node_lib
from seed_acme.programs.system import processes
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.transport import joining
from seed_acme.transport import wire


def replay(shard: int) -> str:
  """Returns the name of the address at which the learner reaches a replay node."""
  return f'replay{shard or ""}'


def inference(learner: int) -> str:
  """Returns the name of the address at which actors reach a learner host."""
  return f'inference{learner or ""}'


def exchange(learner: int) -> str:
  """Returns the name of the address at which the other learner hosts reach this one."""
  return f'exchange{learner}'


class FixedAddress(lp.address.AbstractAddressBuilder):
  """An address known before the launch."""

  def __init__(self, address: str):
    self._address = address

  def build(self) -> str:
    return self._address


class _ServingNode(lp.PyNode):
  """A node with an address of its own, bound where the configuration says.

  Launchpad's CourierNode would open a port that unpickles; this one opens only what its
  function serves.
  """

  def __init__(self, spec: node_lib.NodeSpec[Any], host: str, port: int, *addresses: lp.Address):
    """addresses: its own, and for learner hosts that exchange gradients a second one."""
    super().__init__(entries.run, spec)
    self._host = host
    self._port = port
    self._address, *self._also = addresses
    self._is_also_bound = False
    self._kept: list[socket.socket] = []
    for one in addresses:
      self.allocate_address(one)

  def __getstate__(self) -> dict[str, Any]:
    """Returns the state without the reserved port, which stays with the launching process."""
    return {**self.__dict__, '_kept': []}

  def listen_on(self, port: int) -> None:
    """Sets the port of a separately started node, from its cluster file.

    Its second address, if any, is bound already.
    """
    self._port = port
    self._is_also_bound = True

  def bind_addresses(self, **kwargs) -> None:
    if self._launch_context.launch_type is lp.LaunchType.VERTEX_AI:
      super().bind_addresses(**kwargs)
      return
    self._address.bind(FixedAddress(f'{self._host}:{self._port or self._free_port()}'))
    for one in () if self._is_also_bound else self._also:
      one.bind(FixedAddress(f'{self._host}:{self._free_port()}'))

  def _free_port(self) -> int:
    self._kept.append(kept_port())
    return self._kept[-1].getsockname()[1]


def kept_port() -> socket.socket:
  """Returns a socket bound to a free port, which the kernel gives to nobody else while it is open.

  A node starts to listen seconds after its port was chosen, and without this socket any program
  could get the port in between. A server that sets SO_REUSEADDR, as gRPC's do, can listen on it all
  the same.
  """
  kept = socket.socket()
  kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
  kept.bind(('', 0))
  return kept


def make_program(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  token: str | None = None,
  first_start: wire.Start | None = None,
  life: Callable[[threading.Event], node_lib.Life] = lives.OnThisMachine,
) -> lp.Program:
  """Returns the graph. Raises `types.UserError` for a configuration that cannot work.

  token: the secret that the nodes share; None draws one for this launch. first_start: number of the
    actors' first start; None derives it from the resumptions of the run in `run_dir`. life: the
    class of each node's life.
  """
  config_validation.validate(config)
  if first_start is None:
    first_start = wire.Start(
      number=checkpoint.num_resumptions(run_dir.checkpoints) * joining.STARTS_BETWEEN_RESUMPTIONS
    )
  sections = sections_lib.split(config)
  layout, token = sections.layout, token or secrets.token_hex(16)
  shards = layout.learners[0].shards if layout.has_replay_nodes else ()
  replays = tuple(lp.Address(replay(shard.index)) for shard in shards)
  learners = tuple(lp.Address(inference(host.index)) for host in layout.learners)
  exchanges = tuple(lp.Address(exchange(host.index)) for host in layout.exchanging)
  program = lp.Program(config.name)

  def spec(its: sections_lib.NodeSections, *links: Any) -> node_lib.NodeSpec[Any]:
    return node_lib.NodeSpec(its, node_lib.Links(token, *links), run_dir, life)

  with program.group('replay'):
    for of_shard, address in zip(sections.replays, replays):
      program.add_node(
        _ServingNode(spec(of_shard, address), 'localhost', of_shard.place.port, address)
      )
  with program.group('learner'):
    for of_host, address in zip(sections.learners, learners):
      index, transport = of_host.place.index, config.transport
      its = spec(of_host, address, replays, exchanges)
      port, also = 0 if index else transport.port, exchanges[index : index + 1]
      program.add_node(_ServingNode(its, transport.host, port, address, *also))
  with program.group('actor'):
    for of_actor in sections.actors:
      its_learner = learners[of_actor.place.learner]
      program.add_node(lp.PyNode(entries.run, spec(of_actor, its_learner, (), (), first_start)))
  return program


def local_resources(launcher_pid: int) -> dict[str, local_multi_processing.PythonProcess]:
  """Returns the environment variables of each kind of node, for `lp.launch`."""
  kinds = {'learner': 'learner', 'replay': 'replay', 'actor': 'actor_supervisor'}
  return {
    group: local_multi_processing.PythonProcess(env=processes.environment(kind, launcher_pid))
    for group, kind in kinds.items()
  }
