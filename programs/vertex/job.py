"""The program on Vertex AI: Launchpad's launcher and xmanager make the job's specification.

Both run unchanged on this machine up to the point where they would need an account, Docker or the
network. There they call stand-ins, which record the request. A dry run is therefore the launch
itself without its last step, which is `submit.py`. Importing this module needs xmanager.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
import contextlib
import copy
import datetime
import json
import pathlib
import shutil
import signal
import sys
import tempfile
import types as python_types
from typing import Any, NamedTuple
from unittest import mock

from absl import flags
import launchpad as lp
from launchpad.nodes.python import xm_docker
from xmanager import xm
from xmanager import xm_local  # noqa: F401 - before its own parts, which import each other
from xmanager.cloud import auth
from xmanager.cloud import build_image
from xmanager.cloud import docker_lib
from xmanager.cloud import vertex as xm_vertex
from xmanager.xm_local.storage import database

from seed_acme import types
from seed_acme.programs.system import signals
from seed_acme.programs.vertex import cloud as cloud_lib
from seed_acme.programs.vertex import exchange
from seed_acme.programs.vertex import image as cloud_image
from seed_acme.programs.vertex import stand_ins

LEARNER = 'learner'
OTHER_LEARNERS = 'learners'  # all learner hosts but the first
_MAX_KINDS = 4  # worker pools of a job
_JOB, _LOG = 'job.json', 'launch.log'
_NAMES_OF_XMANAGER = {'l4': 'l4_24th'}


class Pool(NamedTuple):
  """A worker pool of the job: its replicas are the nodes of one group, containers of one image.

  context: folder that the image is built from.
  """

  group: str
  replicas: int
  machine: cloud_lib.Machine
  image: str
  context: pathlib.Path


class Job(NamedTuple):
  """A staged job. display_name, specs: as aiplatform.CustomJob takes them. path: the specification
  as JSON, as `gcloud ai custom-jobs create --config` takes it."""

  display_name: str
  specs: list[Any]
  pools: tuple[Pool, ...]
  path: pathlib.Path


class Part(NamedTuple):
  """The input for the nodes of a group. code: folder with their modules; requirements: file."""

  machine: cloud_lib.Machine
  image: cloud_image.Image
  code: pathlib.Path
  requirements: pathlib.Path


def check_program(program: lp.Program) -> None:
  """Raises `types.UserError` for a graph that Vertex AI cannot run."""
  learners = program.groups.get(LEARNER, [])
  kinds = [*program.groups, *([OTHER_LEARNERS] if len(learners) > 1 else [])]
  if len(kinds) > _MAX_KINDS:
    raise types.UserError(
      f'the program has {len(kinds)} kinds of node ({", ".join(kinds)}); '
      f'Vertex AI takes at most {_MAX_KINDS}: put nodes that need the same '
      'machine into one group'
    )
  if not learners:
    raise types.UserError(
      f'the program needs a group {LEARNER!r}, by whose first node Vertex AI '
      f'reports the job; it has {", ".join(kinds) or "no nodes"}'
    )
  for kind, nodes in program.groups.items():
    # the second is for the exchange between learner hosts
    most = 2 if kind == LEARNER and len(learners) > 1 else 1
    if any(len(node.addresses) > most for node in nodes):
      raise types.UserError(
        f'a node of the group {kind!r} has several addresses; on Vertex AI a '
        'node has one port: split it'
      )


def stage(
  program: lp.Program, cloud: cloud_lib.CloudConfig, parts: Mapping[str, Part], folder: pathlib.Path
) -> Job:
  """Writes the image contexts and the job's specification into an empty folder.

  parts: by group of the program, which `check_program` has passed.
  """
  program = _in_pools(program)
  stand_in = _StandIn(program, cloud, parts, folder)
  xm_resources = {
    group: xm_docker.DockerConfig(
      code_directory=str(part.code),
      docker_requirements=str(part.requirements),
      hw_requirements=_job_requirements(part.machine),
    )
    for group, part in parts.items()
  }
  if not flags.FLAGS.is_parsed():
    flags.FLAGS(sys.argv[:1])
  with (
    open(folder / _LOG, 'w', encoding='utf-8') as log,
    stand_in.installed(),
    contextlib.redirect_stdout(log),
  ):
    lp.launch(program, launch_type=lp.LaunchType.VERTEX_AI, xm_resources=xm_resources)
  assert stand_in.job is not None
  return _write_job(stand_in.job, stand_in.pools, cloud, folder)


def _in_pools(program: lp.Program) -> lp.Program:
  """Returns the same nodes with a group for each pool.

  Pool 0 has one node, whose end is the job's: the learner, or the first learner host. Other learner
  hosts are pool 1.
  """
  ordered = lp.Program(program.name)
  groups = dict(program.groups)
  first, *others = groups.pop(LEARNER)
  for group, nodes in ((LEARNER, [first]), (OTHER_LEARNERS, others), *groups.items()):
    for node in nodes:
      ordered.add_node(node, group)
  if others:
    _bind_exchange(first, 0, 0)
    for replica, node in enumerate(others):
      _bind_exchange(node, 1, replica)
  return ordered


def _bind_exchange(node: Any, pool: int, replica: int) -> None:
  """Leaves the node one address, since Launchpad binds only one on Vertex AI."""
  for address in node.addresses[1:]:
    address.bind(exchange.NextPort(f'workerpool{pool}', replica))
  del node.addresses[1:]


def _job_requirements(machine: cloud_lib.Machine) -> xm.JobRequirements:
  accelerators = {}
  if machine.accelerator:
    name = machine.accelerator.lower()
    accelerators[_NAMES_OF_XMANAGER.get(name, name)] = machine.num_accelerators
  # xmanager finds a machine by its resources, and some by their accelerators alone.
  wanted = {'cpu': machine.cpu, 'ram': machine.ram_gib * xm.GiB}
  known = {name: amount for name, amount in wanted.items() if amount}
  return xm.JobRequirements(**known, **accelerators)


def _write_job(
  recorded: stand_ins.RecordedJob,
  pools: list[Pool],
  cloud: cloud_lib.CloudConfig,
  folder: pathlib.Path,
) -> Job:
  specs = recorded.arguments['worker_pool_specs']
  spec: dict[str, Any] = {'workerPoolSpecs': [_to_json(pool) for pool in specs]}
  if cloud.service_account:
    spec['serviceAccount'] = cloud.service_account
  path = folder / _JOB
  path.write_text(json.dumps(spec, indent=2) + '\n', encoding='utf-8')
  return Job(recorded.arguments['display_name'], specs, tuple(pools), path)


def _to_json(message: Any) -> dict[str, Any]:
  """Returns a message of Google's client library as gcloud reads it."""
  return type(message).to_dict(
    message,
    use_integers_for_enums=False,
    preserving_proto_field_name=False,
    including_default_value_fields=False,
  )


class _StandIn:
  """The stand-ins that Launchpad and xmanager call instead of the outside world."""

  def __init__(
    self,
    program: lp.Program,
    cloud: cloud_lib.CloudConfig,
    parts: Mapping[str, Part],
    folder: pathlib.Path,
  ):
    self._program = program
    self._cloud = cloud
    self._parts = parts
    self._folder = folder
    self._tag = datetime.datetime.now(datetime.timezone.utc).strftime('%Y%m%d-%H%M%S')
    self._group_of = {id(node): group for group, nodes in program.groups.items() for node in nodes}
    self._to_executables = xm_docker.to_docker_executables
    self._image_of: dict[str, str] = {}  # by folder of the code
    self.pools: list[Pool] = []
    self.job: stand_ins.RecordedJob | None = None

  @contextlib.contextmanager
  def installed(self) -> Iterator[None]:
    """Puts the stand-ins into Launchpad and xmanager, and removes them at the end."""
    platform = python_types.SimpleNamespace(init=lambda **_: None, CustomJob=self._make_job)
    client = None

    def get_client() -> Any:
      nonlocal client
      client = client or xm_vertex.Client(self._cloud.project, self._cloud.region)
      return client

    loops: list[asyncio.AbstractEventLoop] = []
    new_event_loop = asyncio.new_event_loop

    def remember_event_loop() -> asyncio.AbstractEventLoop:
      loops.append(new_event_loop())
      return loops[-1]

    with contextlib.ExitStack() as stack:
      # xmanager stops them but does not close them
      stack.callback(lambda: [loop.close() for loop in loops])
      scratch = stack.enter_context(stand_ins.scratch_folder())
      for module, name, value in (
        (xm_docker, 'to_docker_executables', self._make_container),
        (asyncio, 'new_event_loop', remember_event_loop),
        (auth, 'get_project_name', lambda: self._cloud.project),
        (auth, 'get_service_account', lambda: self._cloud.service_account),
        (auth, 'get_bucket', lambda: cloud_lib.bucket_name(self._cloud)),
        (build_image, 'build_by_dockerfile', self._keep_context),
        (build_image, '_get_image_name', lambda container: self._image_of[container.path]),
        (docker_lib, 'is_docker_installed', lambda: False),
        (xm_vertex, 'aiplatform', platform),
        (xm_vertex, 'get_default_client', get_client),
        (database, 'database', stand_ins.Nothing),
        # Their temporary files are created in a folder that is deleted.
        (tempfile, 'tempdir', scratch),
      ):
        stack.enter_context(mock.patch.object(module, name, value))
      stack.enter_context(signals.kept(signal.SIGINT, signal.SIGQUIT))  # Launchpad sets handlers
      yield

  def _make_job(self, **arguments: Any) -> stand_ins.RecordedJob:
    self.job = stand_ins.RecordedJob(**arguments)
    return self.job

  def _make_container(self, nodes: list[Any], label: str, docker_config: Any) -> Any:
    """Makes a container as Launchpad does, but with our image, and nodes that need no xmanager."""
    group = self._group_of[id(nodes[0])]
    part = self._parts[group]
    contexts = [node._launch_context for node in nodes]
    for node in nodes:  # their launch configuration has a type of xmanager's
      node._launch_context = copy.copy(node._launch_context)
      node._launch_context._launch_config = None
    try:
      [(container, requirements)] = self._to_executables(nodes, label, docker_config)
    finally:
      for node, context in zip(nodes, contexts):
        node._launch_context = context
    app = pathlib.Path(container.path).with_name(f'{label}-{cloud_image.APP}') / cloud_image.APP
    app.parent.mkdir()
    shutil.move(container.path, app)
    image = self._image_name(group)
    self._image_of[str(app)] = image
    self.pools.append(Pool(group, len(nodes), part.machine, image, self._folder / group))
    # `exec`, so that it gets SIGTERM
    commands = [f'exec {command}' for command in container.entrypoint.commands]
    ours = xm.PythonContainer(
      path=str(app),
      base_image=part.image.base,
      entrypoint=xm.CommandList(commands),
      docker_instructions=list(part.image.instructions),
    )
    return [(ours, requirements)]

  def _image_name(self, group: str) -> str:
    cloud = self._cloud
    name = ''.join(
      c if c.isascii() and c.isalnum() else '-' for c in f'{self._program.name}-{group}'.lower()
    )
    return (
      f'{cloud_lib.registry(cloud)}/{cloud.project.replace(":", "/")}/{cloud.repository}/'
      f'{name.strip("-")}:{self._tag}'
    )

  def _keep_context(self, path: str, dockerfile: str, image_name: str, *_: Any, **__: Any) -> str:
    [pool] = [pool for pool in self.pools if pool.image == image_name]
    shutil.copytree(path, pool.context)
    _run_as_user(pool.context / 'Dockerfile')
    return image_name


def _run_as_user(dockerfile: pathlib.Path) -> None:
  """Sets the user after the steps that xmanager runs as root."""
  lines = dockerfile.read_text(encoding='utf-8').splitlines()
  [entry] = [i for i, line in enumerate(lines) if line.startswith('ENTRYPOINT')]
  lines.insert(entry, f'USER {cloud_image.USER}')
  dockerfile.write_text('\n'.join(lines) + '\n', encoding='utf-8')
