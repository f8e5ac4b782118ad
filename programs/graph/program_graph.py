"""The Launchpad program graph: one function for every launch type.

Kinds of node: `learner` (with inference), `replay` where it has a process of its own, and
`actor` (the last one plays the evaluation environments).
"""

from __future__ import annotations

import secrets
import socket
from typing import Any

import launchpad as lp
from launchpad.nodes import base as lp_base
from launchpad.nodes.python import local_multi_processing

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import layout as layout_lib
from seed_acme.programs.graph import entries
from seed_acme.programs.system import processes
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.transport import joining
from seed_acme.transport import wire


def replay(shard: int) -> str:
  """Name of the address by which the learner reaches a replay node."""
  return f'replay{shard or ""}'


def inference(learner: int) -> str:
  """Name of the address by which actors reach a learner host."""
  return f'inference{learner or ""}'


def exchange(learner: int) -> str:
  """Name of that by which the other learner hosts reach it."""
  return f'exchange{learner}'


class FixedAddress(lp.address.AbstractAddressBuilder):
  """An address known before the launch."""

  def __init__(self, address: str):
    self._address = address

  def build(self) -> str:
    return self._address


class _AddressHandle(lp_base.Handle[str]):
  """Dereferences to the `host:port` that a node listens on."""

  def __init__(self, address: lp.Address):
    self._address = address

  def dereference(self) -> str:
    return self._address.resolve()


class _ServingNode(lp.PyNode):
  """A node with an address of its own, bound where the configuration says.

  Launchpad's CourierNode would open a port that unpickles; this one opens only what its
  function serves.
  """

  def __init__(
    self, function, name: str, host: str, port: int, also: lp.Address | None = None, **arguments
  ):
    """also: one more address of the node, at a port of its own."""
    address = lp.Address(name)
    super().__init__(function, address=address, **arguments)
    self._host = host
    self._port = port
    self._address = address
    self._also = also
    self._is_also_bound = False
    self._kept: list[socket.socket] = []
    for one in (address, *([also] if also else [])):
      self.allocate_address(one)

  def __getstate__(self) -> dict[str, Any]:
    """Without the port, which stays with the process that launches."""
    return {**self.__dict__, '_kept': []}

  def listen_on(self, port: int) -> None:
    """Of a node that is started by itself: the port that its cluster file says. Its other address
    is bound already."""
    self._port = port
    self._is_also_bound = True

  def create_handle(self) -> _AddressHandle:
    return self._track_handle(_AddressHandle(self._address))

  def bind_addresses(self, **kwargs) -> None:
    if self._launch_context.launch_type is lp.LaunchType.VERTEX_AI:
      super().bind_addresses(**kwargs)
      return
    self._address.bind(FixedAddress(f'{self._host}:{self._port or self._free_port()}'))
    if self._also is not None and not self._is_also_bound:
      self._also.bind(FixedAddress(f'{self._host}:{self._free_port()}'))

  def _free_port(self) -> int:
    self._kept.append(kept_port())
    return self._kept[-1].getsockname()[1]


def kept_port() -> socket.socket:
  """Bound to a free port, which nobody is given while the socket is open.

  A node listens only seconds after its port was chosen; by then the kernel could have given it to
  a connection of any program. A server that sets SO_REUSEADDR, as gRPC's do, listens beside it.
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
) -> lp.Program:
  """The graph. Raises `types.UserError` for a configuration that cannot work.

  token: what the nodes show each other; None draws one for this launch. first_start: of the
  actors; None counts the resumptions of the run in `run_dir`.
  """
  config_validation.validate(config)
  if token is None:
    token = secrets.token_hex(16)
  if first_start is None:
    first_start = wire.Start(
      number=checkpoint.num_resumptions(run_dir.checkpoints) * joining.STARTS_BETWEEN_RESUMPTIONS
    )
  program = lp.Program(config.name)
  replays: tuple[Any, ...] = ()
  layout = layout_lib.Layout.of(config)
  if layout.has_replay_nodes:
    with program.group('replay'):
      replays = tuple(
        program.add_node(_replay_node(config, run_dir, shard))
        for shard in layout.learners[0].shards
      )
  with program.group('learner'):
    learners = _add_learners(program, config, layout, run_dir, token, replays)
  with program.group('actor'):
    for actor in layout.actors:
      its_learner = learners[actor.learner]
      program.add_node(
        lp.PyNode(entries.actor, config, run_dir, token, actor.index, first_start, its_learner)
      )
  return program


def _replay_node(
  config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory, shard: layout_lib.Shard
) -> _ServingNode:
  return _ServingNode(
    entries.replay,
    replay(shard.index),
    'localhost',
    shard.port,
    config=config,
    run_dir=run_dir,
    shard=shard.index,
  )


def _add_learners(
  program: lp.Program,
  config: config_lib.ExperimentConfig,
  layout: layout_lib.Layout,
  run_dir: run_directory.RunDirectory,
  token: str,
  replays: tuple[Any, ...],
) -> list[Any]:
  """The handle of each learner host; several know where the others exchange what they learn."""
  addresses = tuple(lp.Address(exchange(i)) for i in range(len(layout.learners)))
  if not layout.is_shared:
    addresses = ()
  handles = []
  for index in range(len(layout.learners)):
    node = _ServingNode(
      entries.learner,
      inference(index),
      config.transport.host,
      0 if index else config.transport.port,
      addresses[index] if addresses else None,
      config=config,
      run_dir=run_dir,
      token=token,
      replay_addresses=replays,
      index=index,
      exchange=addresses,
    )
    handles.append(program.add_node(node))
  return handles


def local_resources(launcher_pid: int) -> dict[str, local_multi_processing.PythonProcess]:
  """Environment variables of each kind of node, for `lp.launch`."""
  kinds = {'learner': 'learner', 'replay': 'replay', 'actor': 'actor_supervisor'}
  return {
    group: local_multi_processing.PythonProcess(env=processes.environment(kind, launcher_pid))
    for group, kind in kinds.items()
  }
