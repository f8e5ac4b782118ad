"""The containers of a job, as processes of this machine."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from seed_acme.programs.vertex import image as cloud_image
from tests import ports
from tests.programs.vertex import launching

# Records at the end of each process of a replica which modules it has loaded, and from where. Slows
# environments down until there is a file, so that a run is not over before a test has done to it
# what it wants, and leaves the machine to other tests.
SITE = """
import atexit, json, os, sys, time

def write():
  files = sorted({getattr(module, '__file__', None) or '' for name, module in sys.modules.items()
                  if name.partition('.')[0] == 'seed_acme'} - {''})
  names = [name for name in ('tensorflow', 'reverb', 'xmanager') if name in sys.modules]
  with open(os.path.join(os.environ['LOADED'], str(os.getpid())), 'w') as file:
    json.dump({'kind': os.environ['SEED_ACME_NODE'], 'files': files, 'heavy': names}, file)

atexit.register(write)

if os.environ['SEED_ACME_NODE'] == 'actor':
  from seed_acme.envs import catch
  step = catch.Catch.step
  def slow_step(environment, actions):
    if not os.path.exists(os.environ['HURRY']):
      time.sleep(0.4)
    return step(environment, actions)
  catch.Catch.step = slow_step
"""


# Vertex AI also sets TF_CONFIG, from which TensorFlow might read a wrong cluster.
_MISLEADING = json.dumps(
  {'cluster': {'chief': ['localhost:1'], 'worker': ['localhost:2']}, 'task': {'type': 'worker'}}
)


class Replicas:
  """Every container of the job as a process of this machine, started by its own entry script.

  Its folder is the context's, and nothing of the checkout is on its path.
  """

  def __init__(self, dry_run, storage, folder):
    self._dry_run = dry_run
    self._folder = folder
    self._loaded = folder / 'loaded'
    self._loaded.mkdir()
    self._hurry = folder / 'hurry'
    (folder / 'site').mkdir()
    (folder / 'site' / 'sitecustomize.py').write_text(SITE)
    self._storage = storage
    pools = dry_run.spec()['workerPoolSpecs']
    self._groups = [
      re.search(r'-([a-z]+):', pool['containerSpec']['imageUri'])[1] for pool in pools
    ]
    self._cluster = {
      # Two consecutive ports, as on a host of Vertex AI.
      f'workerpool{i}': [f'localhost:{ports.unused(2)}' for _ in range(int(pool['replicaCount']))]
      for i, pool in enumerate(pools)
    }
    self.processes = {}

  def start_all(self):
    for index, (pool, addresses) in enumerate(self._cluster.items()):
      for replica in range(len(addresses)):
        self.start(pool, self._groups[index], replica)

  def start(self, pool, group, replica):
    context = self._dry_run.folder / group
    app = context / cloud_image.APP
    task = {'type': pool, 'index': replica}
    variables = {
      'PATH': f'{pathlib.Path(sys.executable).parent}:{os.environ["PATH"]}',
      'HOME': str(self._folder),
      'TMPDIR': str(self._folder),
      'LOADED': str(self._loaded),
      'HURRY': str(self._hurry),
      'PYTHONPATH': f'{app}:{self._folder / "site"}',
      'CLOUD_ML_JOB_ID': '42',
      'CLUSTER_SPEC': json.dumps({'cluster': self._cluster, 'task': task}),
      'TF_CONFIG': _MISLEADING,
      **self._storage.environment,
      **dict(re.findall(r'^ENV (\w+)="(.*)"$', (context / 'Dockerfile').read_text(), re.M)),
    }
    with open(self._folder / f'{group}.{replica}.log', 'a') as log:
      self.processes[group, replica] = subprocess.Popen(
        ['bash', str(context / 'entrypoint.sh')],
        cwd=app,
        env=variables,
        stdout=log,
        stderr=log,
        start_new_session=True,
      )

  def wait(self):
    """Lets the environments run as fast as they can, and waits for the end; returns exit codes by
    group and number."""
    self._hurry.touch()
    give_up = time.monotonic() + launching.HANG_S
    try:
      return {
        key: process.wait(max(1.0, give_up - time.monotonic()))
        for key, process in self.processes.items()
      }
    except subprocess.TimeoutExpired as error:
      raise AssertionError(f'{error}\n{self.logs()}') from error

  def terminate(self, group, replica):
    """Sends SIGTERM, as a preemption does; returns the exit code."""
    self.processes[group, replica].terminate()
    return self.processes[group, replica].wait(launching.HANG_S)

  def log(self, group, replica):
    return (self._folder / f'{group}.{replica}.log').read_text()

  def logs(self):
    return '\n'.join(f'{path.name}\n{path.read_text()}' for path in self._folder.glob('*.log'))

  def loaded(self):
    return [json.loads(path.read_text()) for path in self._loaded.iterdir()]

  def kill(self):
    for process in self.processes.values():
      if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
      process.wait()
