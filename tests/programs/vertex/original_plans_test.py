"""A dry run of each of the original's eight scripts, compared with plans/NAME.json.

After an intended change, `SEED_ACME_WRITE_PLANS=1 python -m pytest
tests/programs/vertex/original_plans_test.py` rewrites the files. Read their diff.
"""

import json
import os
import pathlib
import re
import signal
import sys

import pytest

from seed_acme.programs import cli
from seed_acme.programs.vertex import command as vertex_command
from seed_acme.programs.vertex import stage as cloud_stage
from tests.configs import original_scripts
from tests.envs import dmlab_stand_in
from tests.programs.vertex import launching

pytestmark = pytest.mark.slow

_PLANS = pathlib.Path(__file__).with_name('plans')
_PYTHON = cloud_stage.ActorPython('3.10', ['gfootball==2.10.2'])


@pytest.fixture(autouse=True)
def _packages(monkeypatch, empty_images):
  """Replaces DMLab and Football, which are not installed here; a plan does not depend on them."""
  monkeypatch.setattr(signal, 'signal', lambda *_: None)
  monkeypatch.setitem(sys.modules, 'deepmind_lab', dmlab_stand_in.module())
  trial = vertex_command.door.check  # its result matters only if a replay memory is to be saved
  monkeypatch.setattr(
    vertex_command.door,
    'check',
    lambda configs: [
      trial([config])[0] if config.agent.replay_spec().is_memory else None for config in configs
    ],
  )
  check, actor_python = vertex_command.environments.check, cloud_stage.actor_python
  monkeypatch.setattr(
    vertex_command.environments, 'check', lambda c: None if c.actor.python else check(c)
  )
  monkeypatch.setattr(
    cloud_stage, 'actor_python', lambda python: _PYTHON if python else actor_python(python)
  )


@pytest.mark.parametrize(
  'script', original_scripts.SCRIPTS, ids=[s.name for s in original_scripts.SCRIPTS]
)
def test_the_plan_is_the_one_on_file(script, tmp_path, monkeypatch, capsys, without_docker):
  monkeypatch.chdir(tmp_path)
  arguments = [
    'train',
    '--launch=vertex_ai',
    f'--config={script.config}',
    *launching.CLOUD,
    f'--cloud.learner={script.learner}',
    f'--cloud.actors={original_scripts.ACTORS}',
    f'--run_dir=gs://bucket/{script.config}/1',
    '--dry_run',
  ]
  assert cli.main([*arguments, '--out=out']) == 0
  described, found, rest = capsys.readouterr().out.partition('Job specification: ')
  assert found
  plan = {
    'script': f'gcp/train_{script.name}.sh',
    'arguments': arguments,
    'described': _without_tags(described).splitlines(),
    'quota': re.findall(r'^  quota .*\]: (.*?)(?: in |$)', rest, re.M),
    'job': json.loads(_without_tags((tmp_path / 'out' / 'job.json').read_text())),
  }
  _check_pools(script, plan['job']['workerPoolSpecs'])
  path = _PLANS / f'{script.name}.json'
  if os.environ.get('SEED_ACME_WRITE_PLANS'):
    path.write_text(json.dumps(plan, indent=2) + '\n')
  assert plan == json.loads(path.read_text())


def _without_tags(text):
  """Replaces image tags, which are the time at which an image was made."""
  return re.sub(r':\d{8}-\d{6}', ':TAG', text)


def _check_pools(script, pools):
  """Checks numbers independently of the files, which might have been rewritten carelessly."""
  learner, actors = pools
  assert int(learner['replicaCount']) == 1
  assert int(actors['replicaCount']) == script.workers + ('eval/' in script.metric)
  assert actors['machineSpec'] == {'machineType': original_scripts.ACTORS}
  type_, _, accelerators = script.learner.partition('+')
  assert learner['machineSpec'] == {
    'machineType': type_,
    'acceleratorType': 'NVIDIA_TESLA_P100',
    'acceleratorCount': int(accelerators[0]),
  }


def test_every_file_is_of_a_script():
  assert sorted(path.stem for path in _PLANS.iterdir()) == sorted(
    script.name for script in original_scripts.SCRIPTS
  )
