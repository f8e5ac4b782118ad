"""`seed-acme train --launch=vertex_ai`: checks, stages, describes and submits the job."""

from __future__ import annotations

import datetime
import importlib.util
import math
import pathlib
import shlex
import shutil
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.checks import extras
from seed_acme.envs import experiment_environments as environments
from seed_acme.files import bucket
from seed_acme.files import local
from seed_acme.loggers import own
from seed_acme.programs.command_line import own_name
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.front_end import replay_size
from seed_acme.programs.nodes import container_node
from seed_acme.programs.nodes import filming
from seed_acme.programs.system import processes
from seed_acme.programs.trial import door
from seed_acme.programs.vertex import cloud as cloud_lib
from seed_acme.programs.vertex import image as cloud_image
from seed_acme.programs.vertex import missing as vertex_missing
from seed_acme.programs.vertex import stage as cloud_stage
from seed_acme.programs.vertex import user_code
from seed_acme.storage import bucket_fetch
from seed_acme.storage import run_directory
from seed_acme.transport import wire

if TYPE_CHECKING:
  import launchpad as lp

  from seed_acme.programs.vertex import job as vertex_job  # loads xmanager

_KINDS = {
  'learner': 'learner',
  'learners': 'learner',
  'replay': 'replay',
  'actor': 'actor_supervisor',
}
_DRY_RUNS = 'dry_runs'


class Request(NamedTuple):
  """The request, from `TrainArguments`. out: folder that a dry run writes; '' = a new one."""

  config: config_lib.ExperimentConfig
  cloud: cloud_lib.CloudConfig
  run_dir: str
  is_dry_run: bool
  out: str
  arguments: tuple[str, ...]  # the command line after `train`


class _Asked(NamedTuple):
  """A request that has passed the checks. machines, requirements: by group of nodes."""

  request: Request
  config: config_lib.ExperimentConfig
  spec: types.EnvironmentSpec
  url: str
  program: lp.Program
  machines: dict[str, cloud_lib.Machine]
  requirements: dict[str, list[str]]

  def replay_bytes(self) -> int:
    return replay_size.replay_bytes(self.config, lambda: self.spec)


def train(request: Request) -> int:
  """Submits the job, which runs on without this machine; returns the exit code."""
  if request.out and not request.is_dry_run:
    raise types.UserError(f'--out={request.out} is for --dry_run: add it, or leave --out out')
  cloud_lib.check(request.cloud)
  cloud_lib.check_replay(request.cloud, request.config)
  config = cloud_lib.with_cloud(request.config)
  config_validation.validate(config)
  filming.refuse_elsewhere(config.record_every, '--launch=vertex_ai')
  _refuse_tracking(config)
  _refuse_start_from_here(config)
  environments.check(config)
  url = _run_url(request)
  if request.cloud.code:
    # raises its errors before anything is staged
    user_code.find(request.cloud.code, cloud_stage.PACKAGE)
  numbers = _replicas(config)
  machines = {
    group: machine for group, machine in cloud_lib.machines(request.cloud).items() if numbers[group]
  }
  requirements = {
    group: cloud_stage.requirements(
      config, request.cloud.code, request.cloud.requirements, bool(machine.accelerator)
    )
    for group, machine in machines.items()
  }
  if importlib.util.find_spec('xmanager') is None:
    raise types.UserError(
      '--launch=vertex_ai needs xmanager: in the checkout, make setup, or '
      f'{extras.install_command("vertex")}'
    )
  [spec] = door.check([config])  # last, because it takes the longest
  program = _program(cloud_image.with_its_python(config), url)
  replicas = [(machine, numbers[group]) for group, machine in machines.items()]
  needs = vertex_missing.needs(request.cloud, replicas)
  asked = _Asked(request, config, spec, url, program, machines, requirements)
  if request.is_dry_run:
    return _dry_run(asked, needs)
  missing = vertex_missing.blocking(needs)
  if missing is not None:
    raise types.UserError(
      f'{missing.name}: {missing.why}; run: {" && ".join(missing.commands)} (--dry_run needs none)'
    )
  _check_resume(config, url)
  return _launch(asked)


def _refuse_start_from_here(config: config_lib.ExperimentConfig) -> None:
  """Raises `types.UserError` for a checkpoint to start from that is no bucket's."""
  name = config.initial_checkpoint
  if name and not name.startswith('gs://'):
    raise types.UserError(
      f'--config.initial_checkpoint={name} with --launch=vertex_ai is on this machine, where its '
      f'nodes cannot read it: copy the run into the bucket (gcloud storage cp -r) and give its gs://'
    )


def _refuse_tracking(config: config_lib.ExperimentConfig) -> None:
  """Raises `types.UserError` for a logger whose server asks for a key, which no image may hold."""
  logger = config.learner.logger
  if logger in own.NAMED:
    raise types.UserError(
      f'--config.learner.logger={logger} with --launch=vertex_ai: the images have neither its '
      'package nor your key. Leave it out: metrics.csv and the files for TensorBoard are in the '
      'bucket while the job runs; or log with a class of your own in --cloud.code'
    )


def _replicas(config: config_lib.ExperimentConfig) -> dict[str, int]:
  """Returns the number of nodes by group."""
  layout = layout_lib.Layout.of(config)
  return {
    'learner': 1,
    'learners': len(layout.learners) - 1,
    'replay': int(layout.has_replay_nodes),
    'actor': len(layout.actors),
  }


def _program(config: config_lib.ExperimentConfig, url: str) -> lp.Program:
  """Returns the graph; raises `UserError` if Vertex AI cannot run it."""
  from seed_acme.programs.graph import program_graph  # loads Launchpad
  from seed_acme.programs.vertex import job as vertex_job  # loads xmanager

  run = run_directory.RunDirectory(pathlib.Path('run'), bucket=url)
  program = program_graph.make_program(
    config, run, first_start=wire.FIRST_START, life=container_node.InContainer
  )
  vertex_job.check_program(program)
  return program


def _dry_run(asked: _Asked, needs: list[vertex_missing.Need]) -> int:
  job = _stage(asked, _out_folder(asked.request, asked.config.name))
  _describe(job, asked)
  print(
    f'Job specification: {own_name.shorter(str(job.path))}\n'
    'Image contexts: ' + ', '.join(own_name.shorter(str(pool.context)) for pool in job.pools)
  )
  print('Nothing was built, sent or started. To run it for real, leave out --dry_run; it takes:')
  _show_needs(needs)
  return 0


def _show_needs(needs: list[vertex_missing.Need]) -> None:
  for need in needs:
    print(f'  {need.name} [{need.state}]: {need.why}')
    for command in need.commands:
      if need.state != vertex_missing.READY:
        print(f'    {command}')


def _launch(asked: _Asked) -> int:
  from seed_acme.programs.vertex import submit as vertex_submit  # loads xmanager

  with tempfile.TemporaryDirectory(prefix='seed-acme-') as folder:
    job = _stage(asked, pathlib.Path(folder))
    _describe(job, asked)
    name, page = vertex_submit.submit(job, asked.request.cloud)
  request, url = asked.request, asked.url
  cloud, number = request.cloud, name.rpartition('/')[2]
  log_folder = f'--logdir={bucket.join(url, "tensorboard")}'
  of_job = shlex.join([number, f'--region={cloud.region}', f'--project={cloud.project}'])
  print(
    f'Job: {name}\n{page}\n'
    f'Logs: gcloud ai custom-jobs stream-logs {of_job}\n'
    f'Stop: gcloud ai custom-jobs cancel {of_job}\n'
    f'TensorBoard: {shlex.join(["tensorboard", log_folder])}\n'
    f'Evaluate: {shlex.join([own_name.command("seed-acme"), "evaluate", url])}\n'
    f'Resume, after a preemption too: the same command with {shlex.quote(f"--run_dir={url}")}\n'
    f'  {_again(request, url)}'
  )
  return 0


def _again(request: Request, url: str) -> str:
  """Returns the command that resumes this run."""
  run_dir = [] if request.run_dir else [f'--run_dir={url}']
  return shlex.join([own_name.command('seed-acme'), 'train', *request.arguments, *run_dir])


def _run_url(request: Request) -> str:
  cloud = request.cloud
  if not request.run_dir:
    run_directory.check_name(request.config.name)
    now = datetime.datetime.now(datetime.timezone.utc)
    return bucket.join(cloud.bucket, request.config.name, now.strftime('%Y%m%d-%H%M%SZ'))
  if not request.run_dir.startswith('gs://'):
    raise types.UserError(
      f'--run_dir={request.run_dir} is not in a bucket, where the nodes could '
      f'reach it: give {bucket.join(cloud.bucket, "FOLDER")}, or leave it out'
    )
  return cloud_lib.checked_url(request.run_dir, '--run_dir')


def _check_resume(config: config_lib.ExperimentConfig, url: str) -> None:
  """Raises errors that the learner would raise only after minutes of waiting for its machine."""
  processes.set_tensorflow_defaults()
  with tempfile.TemporaryDirectory(prefix='seed_acme_') as folder:
    run = bucket_fetch.fetch(url, pathlib.Path(folder), with_replay=False)
    lifecycle.check_resume(config, run)


def _out_folder(request: Request, name: str) -> pathlib.Path:
  if not request.out:
    return run_directory.new_folder(name, _DRY_RUNS)
  folder = local.new_folder(request.out)
  folder.mkdir(parents=True, exist_ok=True)
  return folder


def _stage(asked: _Asked, folder: pathlib.Path) -> vertex_job.Job:
  """Stages the graph, and for each of its groups the code, the requirements and the image."""
  from seed_acme.programs.vertex import job as vertex_job  # loads xmanager

  actor, cloud = cloud_stage.actor_python(asked.config.actor.python), asked.request.cloud
  saving_s = math.ceil(replay_size.saving_seconds(asked.replay_bytes()))
  with tempfile.TemporaryDirectory(prefix='seed-acme-') as scratch:
    of_all = pathlib.Path(scratch) / 'code'
    cloud_stage.stage_package(of_all)
    cloud_stage.stage_launchpad(of_all)
    if cloud.code:
      user_code.find(cloud.code, cloud_stage.PACKAGE).copy_to(of_all)
    parts = {}
    for group, machine in asked.machines.items():
      code = pathlib.Path(shutil.copytree(of_all, pathlib.Path(scratch) / group))
      lines = code.with_suffix('.txt')
      cloud_stage.write_lines(asked.requirements[group], lines)
      if actor.version:
        cloud_stage.write_lines(actor.requirements, code / cloud_image.ACTOR_REQUIREMENTS)
      environment = processes.environment_elsewhere(_KINDS[group], saving_s)
      if machine.accelerator:
        environment |= cloud_image.with_gpus(machine.num_accelerators)
      image = cloud_image.make(environment, actor.version)
      parts[group] = vertex_job.Part(machine, image, code, lines)
    return vertex_job.stage(asked.program, cloud, parts, folder)


def _describe(job: vertex_job.Job, asked: _Asked) -> None:
  config, cloud, layout = asked.config, asked.request.cloud, layout_lib.Layout.of(asked.config)
  print(f'Vertex AI, project {cloud.project}, region {cloud.region}\nRun: {asked.url}')
  if cloud.code:
    print(user_code.find(cloud.code, cloud_stage.PACKAGE).describe())
  for index, pool in enumerate(job.pools):
    what = pool.group
    if pool.group == 'learners':
      what = f'learner hosts 1 ... {pool.replicas}'
    if pool.group == 'actor':
      what = (
        f'actors, {config.environments_per_actor} environments each, {layout.num_training} in all'
      )
      if layout.num_evaluation:
        what += f'; the last one {layout.num_evaluation} for evaluation'
    print(f'Pool {index}: {pool.replicas} x {pool.machine}: {what}\n  {pool.image}')
  learner = job.pools[0].machine
  holder = next((pool.machine for pool in job.pools if pool.group == 'replay'), learner)
  if holder.ram_gib:
    warning = replay_size.memory_warning(
      config, asked.replay_bytes() // len(layout.learners), available=holder.ram_gib << 30
    )
    if warning:
      print(f'Warning: on {holder.type} {warning}')
  for pool in job.pools:
    if pool.machine.accelerator and _KINDS[pool.group] != 'learner':
      print(
        f'Notice: only your own environments can use the {pool.machine.accelerator} of the '
        f'{pool.group} nodes; they run no network'
      )
