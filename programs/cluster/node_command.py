"""`seed-acme node ROLE`: one node of a run, here, in the foreground; the others elsewhere.

The learner has a front end, a run folder and a summary, as `train` has. An actor or a replay
node runs in this process, writes to standard error, and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Collection
import dataclasses
import json
import pathlib
import sys
import threading
from typing import Literal

import tyro

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import types
from seed_acme.checks import numbers
from seed_acme.envs import experiment_environments as environments
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.cluster import host as cluster_host
from seed_acme.programs.cluster import progress as cluster_progress
from seed_acme.programs.front_end import bucket_folder
from seed_acme.programs.front_end import launcher_process
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.front_end import summary as summary_lib
from seed_acme.programs.front_end import train_command
from seed_acme.programs.nodes import actors
from seed_acme.programs.nodes import end_notice
from seed_acme.programs.system import processes
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory

ROLES = ('learner', 'replay', 'actor')


@dataclasses.dataclass(frozen=True)
class NodeArguments:
  """Run one node of a run on this host, with the same cluster file and configuration on every host.

  role: which node.
  cluster: JSON file with the addresses of all nodes (docs/scaling.md).
  index: which actor, from 0; can be left out where the cluster file lists this host once.
  run_dir: of the learner, gs://BUCKET/FOLDER too; one that holds a run is resumed.
    '' = runs/<config>/<cluster file>.
  max_restarts: of the learner: times that a failed run is resumed by itself.
  json: the learner prints its summary as JSON.
  """

  role: tyro.conf.Positional[Literal['learner', 'replay', 'actor']]
  config: tyro.conf.FlagConversionOff[config_lib.ExperimentConfig]
  cluster: str = ''
  index: int = -1
  run_dir: str = ''
  max_restarts: int = 0
  json: bool = False


def node(arguments: NodeArguments, overridden: Collection[str]) -> int:
  """overridden: fields of the configuration that the command line gives. Returns the exit code."""
  if not arguments.cluster:
    raise types.UserError(
      'node needs --cluster=FILE with the addresses of all nodes: see docs/scaling.md'
    )
  numbers.check_at_least_zero({'--max_restarts': arguments.max_restarts})
  cluster = cluster_file.load(arguments.cluster)
  config = cluster_file.with_cluster(arguments.config, overridden, cluster, arguments.role)
  config_validation.validate(config)
  environments.check(config)
  if cluster.has_open_token:
    _show(f'Warning: everybody on this host can read the token of {cluster.path}: chmod 600')
  if arguments.role != 'actor' and arguments.index > 0:
    raise types.UserError(
      f'--index={arguments.index}: there is one {arguments.role} only; leave it out'
    )
  if arguments.role == 'replay' and cluster.replay is None:
    raise types.UserError(
      f'the cluster file {cluster.path} has no "replay": the learner serves '
      'it; add "replay": "HOST:PORT" for a node of its own'
    )
  if arguments.role == 'learner':
    return _run_learner(arguments, config, cluster)
  if arguments.run_dir:
    raise types.UserError(
      f"--run_dir={arguments.run_dir}: the run folder is the learner's; "
      f'leave it out for {arguments.role}'
    )
  # Only now: Launchpad takes a second to load, and wrong input is answered before.
  from seed_acme.programs.cluster import node as cluster_node

  if arguments.role == 'replay':
    return cluster_node.run_replay(config, cluster)
  return cluster_node.run_actor(config, cluster, _actor_index(arguments, config, cluster))


def _actor_index(
  arguments: NodeArguments, config: config_lib.ExperimentConfig, cluster: cluster_file.Cluster
) -> int:
  number = actors.num_actor_nodes(config)
  if arguments.index == -1:
    return cluster_host.own_index(cluster, number)
  if not 0 <= arguments.index < number:
    evaluates = (
      f' ({number - 1} plays the evaluation environments)'
      if config.num_evaluation_environments
      else ''
    )
    raise types.UserError(
      f'--index={arguments.index}: the actors of {cluster.path} are 0 ... {number - 1}{evaluates}'
    )
  return arguments.index


def _run_learner(
  arguments: NodeArguments, config: config_lib.ExperimentConfig, cluster: cluster_file.Cluster
) -> int:
  cluster_host.check_listens(cluster)
  path = arguments.run_dir or str(
    pathlib.Path(run_directory.ROOT) / config.name / pathlib.Path(cluster.path).stem
  )
  with bucket_folder.opened(path) as run:
    assert run is not None
    try:
      folder = lifecycle.prepare(config, str(run.path), run.bucket)
    except lifecycle.RunFinished as error:
      return _end_again(run, arguments, config, cluster, error)
    return _run_learner_in(folder, arguments, config, cluster)


def _end_again(
  run: run_directory.RunDirectory,
  arguments: NodeArguments,
  config: config_lib.ExperimentConfig,
  cluster: cluster_file.Cluster,
  reason: lifecycle.RunFinished,
) -> int:
  """Of a run that was over: a scheduler has started the learner again, because it was lost after
  its last checkpoint and before its end. Does what it did not come to."""
  with run_directory.lock(run):
    summary = summary_lib.complete(config, run, reason.last)
    if not arguments.json:
      print(
        f'Over: {reason}\nTelling the actors at {cluster.learner}, for up to '
        f'{end_notice.PATIENCE_S:g} s',
        flush=True,
      )
    end_notice.serve(config, cluster.token, config.transport.port, threading.Event())
  print(json.dumps(summary) if arguments.json else _summary_text(summary, run), flush=True)
  return 0


def _run_learner_in(
  folder: run_directory.RunDirectory,
  arguments: NodeArguments,
  config: config_lib.ExperimentConfig,
  cluster: cluster_file.Cluster,
) -> int:
  progress = None
  if not arguments.json:
    print(
      f'{"Resuming" if folder.holds_run() else "Run"}: {train_command.shown(folder)}\n'
      f'Learner for {actors.num_actor_nodes(config)} actors at {cluster.learner}, '
      f'listening on {cluster.listen}',
      flush=True,
    )
    progress = cluster_progress.ClusterProgress()
  if cluster.replay and arguments.config.checkpoint.replay:
    _show(
      'Notice: checkpoints hold weights and counters only: the replay memory stays on '
      f'{cluster.replay}'
    )
  outcome = lifecycle.run(
    config,
    folder,
    launch=launcher_process.cluster_launch(cluster.path),
    max_restarts=arguments.max_restarts,
    show=train_command.above(progress),
    progress=progress,
  )
  if progress is not None:
    progress.finish()
  if outcome.failure is not None or outcome.exit_code in (
    processes.FAILURE_EXIT,
    processes.USER_ERROR_EXIT,
  ):
    _show(summary_lib.failure_text(outcome.failure, folder))
  if outcome.exit_code != processes.USER_ERROR_EXIT:
    print(
      json.dumps(outcome.summary) if arguments.json else _summary_text(outcome.summary, folder),
      flush=True,
    )
  return outcome.exit_code


def _summary_text(summary: dict, folder: run_directory.RunDirectory) -> str:
  mean_return = summary['episode_return_last_100']
  text = (
    f'{summary["status"].capitalize()}: {summary["agent_steps"]:,} steps, '
    f'{summary["updates"]:,} updates, {summary["episodes"]:,} episodes, return of the '
    f'last 100: {"-" if mean_return is None else format(mean_return, ".3g")}\n'
  )
  if checkpoint.newest(folder.checkpoints) is None:
    return text.rstrip()  # nothing to play or to go on from
  if summary['status'] == lifecycle.FINISHED:
    return f'{text}Evaluate: seed-acme evaluate {train_command.shown(folder)}'
  return f'{text}Resume: the same command again; the actors wait for it'


def _show(text: str) -> None:
  print(text, file=sys.stderr, flush=True)
