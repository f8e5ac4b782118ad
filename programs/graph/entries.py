"""The entry of each kind of node, on its main thread.

Light to import: the launcher and the actors' supervisors never load TensorFlow, and a node is
tied to its launcher and hears SIGTERM before the seconds that loading it takes.
"""

from __future__ import annotations

from collections.abc import Sequence

import launchpad as lp

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme.programs.nodes import actor_supervisor
from seed_acme.programs.nodes import host
from seed_acme.programs.system import processes
from seed_acme.storage import run_directory
from seed_acme.transport import transports
from seed_acme.transport import wire
from seed_acme.utils import fence as fence_lib


def learner(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  token: str,
  address: lp.Address,
  replay_addresses: Sequence[str],
  index: int,
  exchange: Sequence[lp.Address],
) -> None:
  """replay_addresses: of the replay nodes; () = the learner serves replay itself. index: among the
  learner hosts. exchange: of all learner hosts, for what they tell each other; () for one alone."""
  here = host.enter()
  if here.is_container:
    from seed_acme.programs.nodes import container_node as vertex_node

    others = [one.resolve() for one in exchange]
    vertex_node.learner(
      config, run_dir, token, address.resolve(), replay_addresses, here, index, others
    )
    return
  name = f'learner/{index}'
  with processes.reported_failures(run_dir, name, name):
    run_dir.set_phase('loading TensorFlow')
    processes.load_tensorflow()
    from seed_acme.programs.nodes import learner_node
  others = [one.resolve() for one in exchange]
  with run_dir.learns():
    learner_node.run(
      config, run_dir, token, address.resolve(), replay_addresses, here, index, others
    )


def replay(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  address: lp.Address,
  shard: int,
) -> None:
  """One shard of replay in a process of its own."""
  here = host.enter()
  port = lp.address.get_port_from_address(address.resolve())
  if here.is_container:
    from seed_acme.programs.nodes import container_node as vertex_node

    vertex_node.replay(config, run_dir, port, here.stop)
    return
  name = f'replay/{shard}'
  with processes.reported_failures(run_dir, name, name):
    processes.load_tensorflow()
    from seed_acme.programs.nodes import replay_service

    def tell(text: str) -> None:  # a node of its own has no front end
      print(text, flush=True)
      run_dir.add_notice(text)

    fence = fence_lib.Fence(here.admitted, tell)
    replay_service.serve(config, run_dir, port, here.stop, fence, shard)


def actor(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  token: str,
  index: int,
  first_start: wire.Start,
  address: str,
) -> None:
  """address: of the inference server of its learner host. first_start: seeds of a resumed run
  differ by it."""
  here = host.enter()
  name = f'actor/{index}'
  if here.is_container:  # and may be started again there, which only the learner knows
    from seed_acme.programs.nodes import container_node as vertex_node

    vertex_node.actor(config, run_dir, token, index, address, here.stop)
    return
  its_learner = layout_lib.Layout.of(config).actors[index].learner
  address = transports.address_beside(config.transport, run_dir.path, address, its_learner)
  with processes.reported_failures(run_dir, name, name):
    actor_supervisor.Supervisor(
      config, run_dir, token, index, first_start, address, is_beside_learner=True
    ).run(here.stop)
