"""The entry of each kind of node, on its main thread.

Light to import: the launcher and the actors' supervisors never load TensorFlow, and a node is
tied to its launcher and hears SIGTERM before the seconds that loading it takes.
"""
from __future__ import annotations

import contextlib
import threading

import launchpad as lp

from seed_acme import config as config_lib
from seed_acme import run_directory
from seed_acme.programs import actor_node
from seed_acme.programs import node_start
from seed_acme.programs import processes

_LOADING = threading.Lock()  # nodes that are threads of one process load TensorFlow in turn


def learner(config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory, token: str,
            address: lp.Address, replay_address: str | None) -> None:
  """replay_address: of a replay node; None = the learner serves replay itself."""
  stop = node_start.enter()
  with _host_folder(run_dir, 'learner/0') as folder:
    with processes.reported_failures(folder, 'learner/0', node_start.log('learner/0')):
      with _LOADING:
        from seed_acme.programs import learner_node
    with _bucket(config, folder):
      learner_node.run(config, folder, token, address.resolve(), replay_address, stop)


def replay(config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory,
           address: lp.Address) -> None:
  """Replay in a process of its own."""
  stop = node_start.enter()
  with _host_folder(run_dir, 'replay/0') as folder:
    with processes.reported_failures(folder, 'replay/0', node_start.log('replay/0')):
      with _LOADING:
        from seed_acme.programs import learner_node
      port = lp.address.get_port_from_address(address.resolve())
      learner_node.serve_replay(config, folder, port, stop)


def actor(config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory, token: str,
          index: int, first_attempt: int, address: str) -> None:
  """address: of the inference server. first_attempt: seeds of a resumed run differ by it."""
  stop = node_start.enter()
  name = f'actor/{index}'
  with _host_folder(run_dir, name) as folder, processes.reported_failures(
      folder, name, node_start.log(name)):
    if node_start.is_thread():
      actor_node.act_in_this_thread(config, token, index, first_attempt, address, stop)
      return
    if node_start.is_elsewhere():  # and may be started again there, which only the learner knows
      from seed_acme.programs.vertex import node as vertex_node
      first_attempt = vertex_node.join(config, token, name, address)
    actor_node.Supervisor(config, folder, token, index, first_attempt, address).run(stop)


def _host_folder(
    run_dir: run_directory.RunDirectory, name: str
) -> contextlib.AbstractContextManager[run_directory.RunDirectory]:
  """The run's folder itself, but for a node on a host of its own."""
  if not node_start.is_elsewhere():
    return contextlib.nullcontext(run_dir)
  from seed_acme.programs.vertex import node as vertex_node
  return vertex_node.folder(run_dir, name)


def _bucket(config: config_lib.ExperimentConfig,
            folder: run_directory.RunDirectory) -> contextlib.AbstractContextManager[None]:
  """Keeps the run in its bucket where that is the only place for it."""
  if not node_start.is_elsewhere():
    return contextlib.nullcontext()
  from seed_acme.programs.vertex import node as vertex_node
  return vertex_node.bucket(config, folder)
