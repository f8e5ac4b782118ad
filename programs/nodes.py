"""The entry of each kind of node, on its main thread.

Light to import: the launcher and the actors' supervisors never load TensorFlow, and a node is
tied to its launcher and hears SIGTERM before the seconds that loading it takes.
"""

from __future__ import annotations

import threading

import launchpad as lp

from seed_acme import config as config_lib
from seed_acme import run_directory
from seed_acme.programs import actor_node
from seed_acme.programs import node_start
from seed_acme.programs import processes

_LOADING = threading.Lock()  # nodes that are threads of one process load TensorFlow in turn


def learner(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  token: str,
  address: lp.Address,
  replay_address: str | None,
) -> None:
  """replay_address: of a replay node; None = the learner serves replay itself."""
  stop = node_start.enter()
  if node_start.is_elsewhere():
    from seed_acme.programs.vertex import node as vertex_node

    vertex_node.learner(config, run_dir, token, address.resolve(), replay_address, stop)
    return
  with processes.reported_failures(run_dir, 'learner/0', node_start.log('learner/0')):
    with _LOADING:
      from seed_acme.programs import learner_node
  learner_node.run(config, run_dir, token, address.resolve(), replay_address, stop)


def replay(
  config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory, address: lp.Address
) -> None:
  """Replay in a process of its own."""
  stop = node_start.enter()
  port = lp.address.get_port_from_address(address.resolve())
  if node_start.is_elsewhere():
    from seed_acme.programs.vertex import node as vertex_node

    vertex_node.replay(config, run_dir, port, stop)
    return
  with processes.reported_failures(run_dir, 'replay/0', node_start.log('replay/0')):
    with _LOADING:
      from seed_acme.programs import learner_node
    learner_node.serve_replay(config, run_dir, port, stop)


def actor(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  token: str,
  index: int,
  first_attempt: int,
  address: str,
) -> None:
  """address: of the inference server. first_attempt: seeds of a resumed run differ by it."""
  stop = node_start.enter()
  name = f'actor/{index}'
  if node_start.is_elsewhere():  # and may be started again there, which only the learner knows
    from seed_acme.programs.vertex import node as vertex_node

    vertex_node.actor(config, run_dir, token, index, address, stop)
    return
  with processes.reported_failures(run_dir, name, node_start.log(name)):
    if node_start.is_thread():
      actor_node.act_in_this_thread(config, token, index, first_attempt, address, stop)
      return
    actor_node.Supervisor(config, run_dir, token, index, first_attempt, address).run(stop)
