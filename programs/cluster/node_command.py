"""`seed-acme node ROLE`: one node of a run, in the foreground; the others run elsewhere.

The learner has a front end, a run folder and a summary, as `train` has. An actor or a replay
node runs in this process, writes to standard error, and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Collection
import dataclasses
import sys
from typing import Annotated, Literal

import tyro

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.checks import distribution
from seed_acme.envs import experiment_environments as environments
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.cluster import host as cluster_host
from seed_acme.programs.command_line import given as given_lib
from seed_acme.programs.front_end import launches
from seed_acme.programs.nodes import filming


@dataclasses.dataclass(frozen=True)
class NodeArguments:
  """Run one node of a run on this host, with the same cluster file and configuration on every host.

  role: which node.
  cluster: JSON file with the addresses of all nodes (docs/scaling.md).
  index: which actor, or which of several learner hosts, from 0; can be left out if the cluster file
    lists this host once.
  run_dir: run folder of the (first) learner, also gs://BUCKET/FOLDER; a run in it is resumed. '' =
    runs/<config>/<cluster file>.
  max_restarts: times that a failed learner is restarted automatically.
  json: print the learner's summary as JSON.
  """

  role: tyro.conf.Positional[Literal['learner', 'replay', 'actor']]
  cluster: str = ''
  index: int = -1
  run_dir: str = ''
  max_restarts: Annotated[int, bounds.at_least(0)] = 0
  json: bool = False


def node(arguments: NodeArguments, given: given_lib.Given) -> int:
  """Runs the node and returns the exit code; raises `UserError`."""
  if arguments.role != 'actor':
    distribution.require_whole(f'node {arguments.role}')
  given.require_name()
  return run(arguments, given.config(), given.fields)


def run(
  arguments: NodeArguments, config: config_lib.ExperimentConfig, overridden: Collection[str]
) -> int:
  """Checks the options and runs the node.

  overridden: fields of the configuration that the command line sets.
  """
  if not arguments.cluster:
    raise types.UserError(
      'node needs --cluster=FILE with the addresses of all nodes: see docs/scaling.md'
    )
  cluster = cluster_file.load(arguments.cluster)
  learner = _learner_index(arguments, cluster)
  saves_replay = config.checkpoint.replay
  config = cluster_file.with_cluster(config, overridden, cluster, arguments.role, learner)
  config_validation.validate(config)
  launches.refuse_shards_elsewhere(layout_lib.Layout.of(config))
  filming.refuse_elsewhere(config.record_every, 'nodes of a cluster file')
  environments.check(config)
  if cluster.has_open_token:
    _show(f'Warning: everybody on this host can read the token of {cluster.path}: chmod 600')
  if arguments.role == 'replay' and cluster.replay is None:
    raise types.UserError(
      f'the cluster file {cluster.path} has no "replay": the learner serves '
      'it; add "replay": "HOST:PORT" for a node of its own'
    )
  if arguments.run_dir and (arguments.role != 'learner' or learner):
    raise types.UserError(
      f"--run_dir={arguments.run_dir}: the run folder is the (first) learner's; "
      f'leave it out for {arguments.role}{f"/{learner}" if learner else ""}'
    )
  if arguments.role == 'learner':
    from seed_acme.programs.cluster import learner_command

    options = learner_command.Options(
      config,
      cluster,
      learner,
      arguments.run_dir,
      arguments.max_restarts,
      arguments.json,
      saves_replay,
    )
    return learner_command.run(options)
  sections = sections_lib.split(config)
  if arguments.role == 'actor':
    from seed_acme.programs.cluster import actor_node  # loads gRPC, which completion does not need

    index = _actor_index(arguments, sections.layout, cluster)
    return actor_node.run(sections.actors[index], cluster)
  from seed_acme.programs.cluster import replay_node  # as above

  assert cluster.replay is not None
  cluster_host.check_port(cluster, 'replay', cluster.replay)
  [replay] = sections.replays
  return replay_node.run(replay, cluster)


def _learner_index(arguments: NodeArguments, cluster: cluster_file.Cluster) -> int:
  number = len(cluster.learners)
  if arguments.role == 'actor':
    return 0
  if arguments.role == 'replay' or number == 1:
    if arguments.index > 0:
      raise types.UserError(
        f'--index={arguments.index}: there is one {arguments.role} only; leave it out'
      )
    return 0
  if arguments.index == -1:
    return cluster_host.own_learner_index(cluster)
  if not 0 <= arguments.index < number:
    raise types.UserError(
      f'--index={arguments.index}: the learner hosts of {cluster.path} are 0 ... {number - 1}'
    )
  return arguments.index


def _actor_index(
  arguments: NodeArguments, layout: layout_lib.Layout, cluster: cluster_file.Cluster
) -> int:
  number = len(layout.actors)
  if arguments.index == -1:
    return cluster_host.own_index(cluster, number)
  if not 0 <= arguments.index < number:
    evaluates = (
      f' ({number - 1} plays the evaluation environments)' if layout.num_evaluation else ''
    )
    raise types.UserError(
      f'--index={arguments.index}: the actors of {cluster.path} are 0 ... {number - 1}{evaluates}'
    )
  return arguments.index


def _show(text: str) -> None:
  print(text, file=sys.stderr, flush=True)
