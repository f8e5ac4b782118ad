"""The assignment of actors to learners, devices and replay, as the code computes it today.

Only this module depends on how the code does that: after a redesign, rewrite this module and keep
the recording. A run is built by the same code as real ones, from the stand-ins of `bricks.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import functools
import io
import itertools
import json
import math
import os
import pathlib
import tempfile
import threading
from typing import Any, NamedTuple

import launchpad as lp
import numpy as np
import pytest
import yaml

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.acting import activity as activity_lib
from seed_acme.learning import peers as peers_lib
from seed_acme.programs import single_process
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.cluster import learner_command
from seed_acme.programs.cluster import membership
from seed_acme.programs.cluster import node_command
from seed_acme.programs.front_end import from_python
from seed_acme.programs.front_end import launch_choice
from seed_acme.programs.front_end import launches
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.graph import program_graph
from seed_acme.programs.nodes import actor_worker
from seed_acme.programs.nodes import container_node
from seed_acme.programs.nodes import host
from seed_acme.programs.nodes import learner_node
from seed_acme.programs.nodes import lives
from seed_acme.programs.nodes import node as node_lib
from seed_acme.programs.nodes import replay_service
from seed_acme.programs.tools.manifests import command as manifest_command
from seed_acme.programs.vertex import cloud as cloud_lib
from seed_acme.programs.vertex import command as vertex_command
from seed_acme.programs.vertex import missing as vertex_missing
from seed_acme.programs.vertex import stage as vertex_stage
from seed_acme.storage import run_directory
from seed_acme.transport import fence as fence_lib
from seed_acme.transport import wire
from tests.topology import bricks as bricks_lib
from tests.topology import cases as cases_lib

_TOKEN = 'a-token-for-the-topology'
_LOCAL = lp.LaunchType.LOCAL_MULTI_PROCESSING


def describe(case: cases_lib.Case) -> dict[str, Any]:
  """Returns the record of a run: `refused`, or its parts."""
  bricks = bricks_lib.Bricks(case.gpus, case.resumptions)
  with tempfile.TemporaryDirectory() as path, bricks.in_place() as patch:
    folder = run_directory.create(pathlib.Path(path) / 'run')
    try:
      return _LAUNCHES[case.launch](case, _Run(bricks, patch, folder))
    except types.UserError as error:
      return {'refused': str(error).replace(path, 'FOLDER')}


class _Started(Exception):
  """The checks before a run are passed."""


class _Run:
  """A collector of nodes, which describes them."""

  def __init__(
    self, bricks: bricks_lib.Bricks, patch: pytest.MonkeyPatch, folder: run_directory.RunDirectory
  ):
    self.bricks = bricks
    self.patch = patch
    self.folder = folder
    self.nodes: list[node_lib.Node[Any]] = []
    self._owners: dict[str, str] = {}  # owner by address
    self._described: dict[str, Any] = {}
    self._learner_of: dict[str, Any] = {}  # data by learner, for the rows of environments
    self._groups: list[tuple[str, int, str, bricks_lib.GroupOfEnvironments]] = []

  def start_nodes(self) -> None:
    """Makes started nodes be recorded instead."""
    patch = self.patch
    patch.setattr(host, 'enter', threading.Event)
    patch.setattr(lp.context, 'set_context', lambda context: None)
    for life in (lives.OnThisMachine, container_node.InContainer):
      for kind in ('learner', 'replay', 'actor'):
        patch.setattr(life, kind, lambda _, node: self.nodes.append(node))

  def owns(self, name: str, address: str) -> None:
    self._owners[address] = name

  def owner(self, address: str) -> str:
    """Returns the owner of an address, or the address itself."""
    return self._owners.get(address, self.shown(address))

  def shown(self, address: str) -> str:
    """Returns an address without free ports and the folder, which differ from run to run."""
    name = address.replace(f'{self.folder.path}/', '')
    front, _, port = name.rpartition(':')
    is_free = port == '0' or port.isdigit() and int(port) >= bricks_lib.FIRST_FREE_PORT
    return f'{front}:any' if is_free else name

  def describe(self, place: Any) -> dict[str, Any]:
    """Describes the nodes that were started. place: returns where the node of a name runs."""
    kinds = {'learner': self._learner, 'replay': self._replay, 'actor': self._actor}
    kind_of = lambda node: node.name.partition('/')[0]
    for node in sorted(self.nodes, key=lambda node: list(kinds).index(kind_of(node))):
      # On Vertex AI all nodes have the same bucket, and on other hosts a folder each.
      node = dataclasses.replace(node, folder=self.folder)
      described = kinds[kind_of(node)](node)
      self._described[node.name] = {'place': place(node.name), **described}
    return {'nodes': self._described, 'environments': self._rows()}

  def _learner(self, node: node_lib.Node[sections_lib.LearnerSections]) -> dict[str, Any]:
    links, admitted = node.links, node.life.admitted
    with contextlib.ExitStack() as cleanup:
      fence = fence_lib.Fence(admitted)
      timeout_s = node.sections.learner.host_timeout_s
      peers = peers_lib.make(node.sections.place.index, links.exchange, timeout_s, fence)
      greeting = node_lib.Greeting(bricks_lib.SPEC)
      learner_node.LearnerNodeProcess(node, greeting, cleanup, fence, peers)
      [desk] = self.bricks.take('desk')
      batchers = self.bricks.take('batcher')
      described = self._learning(node.name, links.replay)
    acting = self._learner_of[node.name]
    acting['device of'] = lambda env_id: batchers.index(desk.batcher_of(env_id))
    waits = [batcher.arguments[0] for batcher in batchers]
    described['waits for'] = dict(zip(acting['devices'], waits))
    [network] = [*self.bricks.take('GrpcServer'), *self.bricks.take('CourierServer')]
    if len(network.arguments) > 3:  # gRPC
      _, bound, port, streams, *_ = network.arguments
    else:
      (_, port, streams), bound = network.arguments, 'localhost'
    listens = [self.shown(f'{bound}:{port}')]
    for beside in self.bricks.take('UnixServer'):
      self.owns(node.name, str(beside.arguments[2]))
      listens.append(self.shown(str(beside.arguments[2])))
    extra: dict[str, Any] = {'listens': ', '.join(listens), 'streams': streams}
    if admitted:
      extra['admits'] = ', '.join(admitted)
    if admitted is None:
      extra['admits'] = 'everybody'
    if links.exchange:
      extra['exchanges'] = [self.owner(one) for one in links.exchange]
    return {**extra, **described}

  def _learning(self, name: str, replay_addresses: Sequence[str] = ()) -> dict[str, Any]:
    """Describes the learner that was built last: devices, batches and replay."""
    [acting], servers = self.bricks.take('acting'), self.bricks.take('server')
    writers = self.bricks.take('writer')
    # A local queue prefetches nothing.
    samples = self.bricks.take('samples') or [
      (writer.address, *writer.items.arguments, 0) for writer in writers
    ]
    memories = self.bricks.take('memory') or [None] * len(writers)
    here = {server.address: server for server in self.bricks.take('replay')}
    shards = []
    for inserts, draws, memory in zip(writers, samples, memories):
      address, batch, item, num_ahead = draws
      assert inserts.address == address and inserts.item == item
      shards.append(
        {
          **({} if address not in here else self._stored(here[address])),
          **({'served by': self.owner(address)} if address in replay_addresses else {}),
          'batch': batch,
          'item': item,
          'backlog': inserts.backlog,
          'ahead': num_ahead,
          **({} if memory is None else {'saves in': self.shown(str(memory.arguments[2]))}),
        }
      )
    devices = acting.devices
    rows, first = {}, servers[0].named
    for device, server in zip(devices.inference, servers):
      assert server.named['seed'] == first['seed']
      assert server.named['num_training'] == first['num_training']
      rows[device] = server.named['batch_size']
    self._learner_of[name] = {
      'devices': devices.inference,
      'servers': servers,
      'num_training': first['num_training'],
      'shard of': functools.partial(_shard, first['sink'], writers),
    }
    quota = first['quota']
    return {
      'trains on': ', '.join(devices.training),
      'acts on': rows,
      'environments': first['num_environments'],
      'seed': first['seed'],
      **({} if quota is None else {'unrolls of each environment': quota.arguments[1]}),
      'shards': shards,
    }

  def _stored(self, server: bricks_lib.ReplayServer) -> dict[str, Any]:
    """Describes the contents of a table."""
    spec, made = server.spec, {'port': server.port or 'any'}
    if not spec.is_memory:
      return {**made, 'queue': server.queue_size}
    return {
      **made,
      spec.kind: spec.capacity,
      'min_size': spec.min_size,
      'ratio': spec.ratio,
      'draws': server.batch,
    }

  def _replay(self, node: node_lib.Node[sections_lib.ReplaySections]) -> dict[str, Any]:
    node.life.stop.set()
    replay_service.serve(node)
    [server] = self.bricks.take('replay')
    self.bricks.take('acting')
    listens = self.shown(f':{node.links.port}').removeprefix(':')
    return {**self._stored(server), 'port': listens, 'item': server.item}

  def _actor(self, node: node_lib.Node[sections_lib.ActorSections]) -> dict[str, Any]:
    patience, activity = node.life.patience(60.0), activity_lib.Activity()
    address, start = node.life.learner_of(node), node.links.start
    actor_worker.make_remote_actor(node.sections, start, address, _TOKEN, patience, activity)
    return self.acts(node.sections.place.index, is_beside_learner=math.isinf(patience.first_s))

  def acts(self, index: int, is_beside_learner: bool) -> dict[str, Any]:
    """Describes the actor that was built last."""
    groups = self.bricks.take('group')
    [address] = {group.channel for group in groups}
    learner = self.owner(address) if isinstance(address, str) else 'learner/0'
    self._groups += [(f'actor/{index}', i, learner, one) for i, one in enumerate(groups)]
    return {
      'sends to': f'{learner}, {self.shown(address)}',
      'groups': [int(one.env_ids.size) for one in groups],
      'beside it': is_beside_learner,
    }

  def _rows(self) -> list[str]:
    """Returns a line for environments of one group that have the same description."""
    found = []
    for actor, number, learner, group in self._groups:
      of = self._learner_of[learner]
      for env_id in group.env_ids.tolist():
        device = of['devices'][of['device of'](env_id)]
        is_training = env_id < of['num_training']
        shard = f'shard {of["shard of"](env_id)}' if is_training else 'evaluates'
        where = f'{actor} group {number}, {learner}, {device}, {shard}, seed {group.seed}'
        found.append((env_id, where))
    assert [env_id for env_id, _ in found] == list(range(len(found)))
    rows = []
    for where, same in itertools.groupby(found, key=lambda one: one[1]):
      ids = [env_id for env_id, _ in same]
      rows.append(f'{ids[0]} ... {ids[-1]}: {where}')
    return rows

  def single_process(self, config: config_lib.ExperimentConfig) -> dict[str, Any]:
    """Describes a run in one thread."""
    program = single_process.SingleProcess(config, self.folder)
    learner = self._learning('learner/0')
    of = self._learner_of['learner/0']
    groups = self.bricks.take('group')
    device_of = {
      env_id: of['servers'].index(group.channel) for group in groups for env_id in group.env_ids
    }
    of['device of'] = lambda env_id: device_of[env_id]
    for index in range(len(program.actors)):
      env_ids = layout_lib.Layout.of(config).actors[index].env_ids
      its = [one for one in groups if one.env_ids[0] in env_ids]
      self._groups += [(f'actor/{index}', i, 'learner/0', one) for i, one in enumerate(its)]
    [run_seed] = {*self.bricks.take('run seed')}
    program.close()
    return {
      'place': 'one process',
      'seed of run ids': run_seed,
      'nodes': {'learner/0': learner},
      'environments': self._rows(),
    }


def _shard(sink: Any, writers: Sequence[bricks_lib.Writer], env_id: int) -> int:
  """Returns the shard to which an unroll of this environment goes."""
  sink.put(np.array([env_id]), np.zeros(1))
  [shard] = [i for i, writer in enumerate(writers) if writer.has_got]
  writers[shard].has_got = False
  return shard


def _pass_door(case: cases_lib.Case, run: _Run) -> config_lib.ExperimentConfig:
  """Runs the checks of `seed_acme.train` on a configuration and a launch that need nothing else."""

  def prepare(config: config_lib.ExperimentConfig, *_: Any) -> None:
    raise _Started

  run.patch.setattr(lifecycle, 'prepare', prepare)
  config = case.config()
  with contextlib.suppress(_Started):
    from_python.train(config, None, case.launch, 0, False, None)
  return config


def _single_process(case: cases_lib.Case, run: _Run) -> dict[str, Any]:
  return run.single_process(_pass_door(case, run))


def _auto(case: cases_lib.Case, run: _Run) -> dict[str, Any]:
  config = _pass_door(case, run)
  free = lambda: launch_choice.Stepping(0.0, 0.0)
  choice = launch_choice.decide(config, 4, bool(case.gpus), free)
  return {'launch': choice.launch, 'because': choice.reason}


def _local_mp(case: cases_lib.Case, run: _Run) -> dict[str, Any]:
  config = _pass_door(case, run)
  run.start_nodes()
  port = lambda: _KeptPort(next(run.bricks.ports))
  run.patch.setattr(program_graph, 'kept_port', port)
  program = program_graph.make_program(config, run.folder, _TOKEN)
  for node in program.get_all_nodes():
    node.launch_context.initialize(_LOCAL, None, None)
    node.bind_addresses()
  _own_addresses(program, run)
  for node in program.get_all_nodes():
    node.function()
  return run.describe(lambda name: 'process')


def _own_addresses(program: lp.Program, run: _Run) -> None:
  for kind in ('learner', 'replay'):
    for index, node in enumerate(program.groups.get(kind, ())):
      own, *exchange = node.addresses
      run.owns(f'{kind}/{index}', own.resolve())
      for address in exchange:
        run.owns(f'exchange of {kind}/{index}', address.resolve())


class _KeptPort(NamedTuple):
  port: int

  def getsockname(self) -> tuple[str, int]:
    return '', self.port


def _cluster(case: cases_lib.Case, run: _Run) -> dict[str, Any]:
  """Starts each node by its own command, as `seed-acme node` is called on its host."""
  path = run.folder.path / 'cluster.json'
  path.write_text(json.dumps({**case.cluster, 'token': _TOKEN}), encoding='utf-8')
  path.chmod(0o600)
  cluster = cluster_file.load(str(path))
  commands: list[tuple[str, int]] = [('learner', i) for i in range(len(cluster.learners))]
  if cluster.replay is not None:
    commands.append(('replay', 0))
  run.start_nodes()
  patch = run.patch
  patch.setattr(membership, 'member', lambda *_: _Member())
  patch.setattr(membership, 'say', lambda name, text: None)
  patch.setattr(learner_command, 'run', functools.partial(_cluster_learner, run))
  for i, address in enumerate(cluster.learners):
    run.owns(f'learner/{i}', address)
  if cluster.replay is not None:
    run.owns('replay/0', cluster.replay)
  commands += [('actor', i) for i in range(_num_actors(case, cluster))]
  for role, index in commands:
    config = case.config()
    arguments = node_command.NodeArguments(role, str(path), index)
    node_command.run(arguments, config, case.overridden)
  return run.describe(lambda name: f'seed-acme node {name.replace("/", " --index=")}')


def _num_actors(case: cases_lib.Case, cluster: cluster_file.Cluster) -> int:
  given = cluster_file.with_cluster(case.config(), case.overridden, cluster, 'actor')
  return len(layout_lib.Layout.of(given).actors)


def _cluster_learner(run: _Run, options: learner_command.Options) -> int:
  launch = launches.load('hosts', options.cluster.path, str(options.learner_index))
  part = launch.program(options.config, run.folder)
  [node] = part.get_all_nodes()
  node.launch_context.initialize(_LOCAL, None, None)
  node.bind_addresses()
  node.function()
  return 0


class _Member(bricks_lib.Quiet):
  def join(self) -> wire.Start:
    return wire.FIRST_START


def _kubernetes(case: cases_lib.Case, run: _Run) -> dict[str, Any]:
  """Describes the Jobs, and their cluster file; the nodes themselves are a cluster's."""
  text = io.StringIO()
  with contextlib.redirect_stdout(text):
    manifest_command.write(
      manifest_command.ManifestArguments(image='image', token_secret='token'), case.config()
    )
  objects = list(yaml.safe_load_all(text.getvalue()))
  [settings] = [one['data'] for one in objects if one['kind'] == 'ConfigMap']
  jobs = {}
  for one in objects:
    if one['kind'] == 'Job':
      [container] = one['spec']['template']['spec']['containers']
      call = [*container.get('command', []), *container.get('args', [])]
      jobs[one['metadata']['name']] = ' '.join(call)
  return {'cluster': json.loads(settings['cluster.json']), 'jobs': jobs}


def _vertex_ai(case: cases_lib.Case, run: _Run) -> dict[str, Any]:
  """Makes a dry run with Launchpad's and xmanager's launchers; then runs each node's entry."""
  staged: list[Any] = []
  with _recorded_stage(run.patch, staged):
    cloud = cloud_lib.CloudConfig(
      project='my-project-123', bucket='gs://bucket', **dict(case.settings)
    )
    run.patch.setattr(vertex_missing, 'needs', lambda *_: [])
    # What the images hold takes seconds to copy, and does not matter here.
    run.patch.setattr(vertex_stage, 'stage_package', lambda folder: folder.mkdir())
    run.patch.setattr(vertex_stage, 'stage_launchpad', lambda folder: None)
    run.patch.setattr(vertex_stage, 'requirements', lambda *_: [])
    out = str(run.folder.path / 'dry_run')
    config = case.config()
    launches.load('vertex_ai').refuse(layout_lib.Layout.of(config))
    request = vertex_command.Request(config, cloud, '', True, out, ())
    with contextlib.redirect_stdout(io.StringIO()):
      vertex_command.train(request)
  [(program, job)] = staged
  addresses = {
    f'workerpool{i}': [f'{pool.group}-{replica}:2222' for replica in range(pool.replicas)]
    for i, pool in enumerate(job.pools)
  }
  run.patch.setitem(os.environ, 'CLUSTER_SPEC', json.dumps({'cluster': addresses}))
  run.start_nodes()
  _own_addresses(program, run)
  places = {}
  for i, pool in enumerate(job.pools):
    nodes = program.groups['learner' if pool.group == 'learners' else pool.group]
    first = int(pool.group == 'learners')
    for replica, node in enumerate(nodes[first : first + pool.replicas]):
      node.function()
      places[run.nodes[-1].name] = f'workerpool{i} replica {replica} ({pool.group})'
  return run.describe(lambda name: places[name])


@contextlib.contextmanager
def _recorded_stage(patch: pytest.MonkeyPatch, staged: list[Any]) -> Iterator[None]:
  """Records the program and the job. xmanager is loaded only if a run gets that far."""
  make_program = program_graph.make_program
  programs: list[lp.Program] = []

  def remember(*arguments: Any, **named: Any) -> lp.Program:
    from seed_acme.programs.vertex import job as vertex_job  # loads xmanager

    stage = vertex_job.stage

    def stage_and_remember(*arguments: Any) -> Any:
      staged.append((programs[-1], stage(*arguments)))
      return staged[-1][1]

    patch.setattr(vertex_job, 'stage', stage_and_remember)
    programs.append(make_program(*arguments, **named))
    return programs[-1]

  patch.setattr(program_graph, 'make_program', remember)
  yield


_LAUNCHES = {
  cases_lib.SINGLE: _single_process,
  cases_lib.LOCAL: _local_mp,
  cases_lib.AUTO: _auto,
  cases_lib.CLUSTER: _cluster,
  cases_lib.KUBERNETES: _kubernetes,
  cases_lib.VERTEX: _vertex_ai,
}
