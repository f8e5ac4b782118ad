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
from seed_acme.programs.graph import entries
from seed_acme.programs.nodes import actors
from seed_acme.programs.system import processes
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.transport import joining
from seed_acme.transport import wire

INFERENCE, REPLAY = 'inference', 'replay'  # names of addresses


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

  def __init__(self, function, name: str, host: str, port: int, **arguments):
    address = lp.Address(name)
    super().__init__(function, address=address, **arguments)
    self._host = host
    self._port = port
    self._address = address
    self._kept: socket.socket | None = None
    self.allocate_address(address)

  def __getstate__(self) -> dict[str, Any]:
    """Without the port, which stays with the process that launches."""
    return {**self.__dict__, '_kept': None}

  def create_handle(self) -> _AddressHandle:
    return self._track_handle(_AddressHandle(self._address))

  def bind_addresses(self, **kwargs) -> None:
    if self._launch_context.launch_type is lp.LaunchType.VERTEX_AI:
      super().bind_addresses(**kwargs)
      return
    port = self._port
    if not port:
      self._kept = kept_port()
      port = self._kept.getsockname()[1]
    self._address.bind(FixedAddress(f'{self._host}:{port}'))


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
  replay = None
  if config.replay.separate_process:
    with program.group('replay'):
      node = _ServingNode(
        entries.replay, REPLAY, 'localhost', config.replay.port, config=config, run_dir=run_dir
      )
      replay = program.add_node(node)
  with program.group('learner'):
    node = _ServingNode(
      entries.learner,
      INFERENCE,
      config.transport.host,
      config.transport.port,
      config=config,
      run_dir=run_dir,
      token=token,
      replay_address=replay,
    )
    learner = program.add_node(node)
  with program.group('actor'):
    for index in range(actors.num_actor_nodes(config)):
      program.add_node(
        lp.PyNode(entries.actor, config, run_dir, token, index, first_start, learner)
      )
  return program


def local_resources(launcher_pid: int) -> dict[str, local_multi_processing.PythonProcess]:
  """Environment variables of each kind of node, for `lp.launch`."""
  kinds = {'learner': 'learner', 'replay': 'replay', 'actor': 'actor_supervisor'}
  return {
    group: local_multi_processing.PythonProcess(env=processes.environment(kind, launcher_pid))
    for group, kind in kinds.items()
  }
