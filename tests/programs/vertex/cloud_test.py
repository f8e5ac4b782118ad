"""Valid values of --cloud.…, and the contents of an image."""

import ast
import dataclasses
import pathlib
import re
import subprocess
import sys
import zipfile

import launchpad
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import launchpad_wheel
from seed_acme.configs import registry
from seed_acme.programs.vertex import cloud as cloud_lib
from seed_acme.programs.vertex import image as cloud_image
from seed_acme.programs.vertex import missing as vertex_missing
from seed_acme.programs.vertex import stage as cloud_stage
from seed_acme.programs.vertex import user_code
from tests.envs.interpreters import pythons

_ROOT = pathlib.Path(__file__).parents[3]
_GOOD = cloud_lib.CloudConfig(project='my-project-123', bucket='gs://my-bucket')


@pytest.mark.slow
def test_the_tables_are_what_xmanager_can_ask_for():
  # Read, not imported: with its module come all of Google's clients, which takes seconds.
  from xmanager import xm

  path = pathlib.Path(xm.__file__).parents[1] / 'cloud' / 'vertex.py'
  tables = {
    statement.targets[0].id: eval(ast.unparse(statement.value), {'xm': xm})
    for statement in ast.parse(path.read_text()).body
    if isinstance(statement, ast.Assign) and 'MACHINE_TYPE' in ast.unparse(statement.targets[0])
  }
  known = tables['_MACHINE_TYPE_TO_CPU_RAM']
  assert {name: (cpu, ram // xm.GiB) for name, (cpu, ram) in known.items()} == cloud_lib.MACHINES
  with_a100 = tables['_A100_GPUS_TO_MACHINE_TYPE']
  with_l4 = tables['_L4_GPUS_TO_MACHINE_TYPE']
  apart = {name: ('A100', number, 0) for number, name in with_a100.items()}
  apart |= {name: ('L4', number, cpu) for (number, cpu), name in with_l4.items()}
  assert apart == cloud_lib.WITH_ACCELERATORS
  # It does not know the machines of later accelerators.
  assert {*cloud_lib.ACCELERATORS, 'A100', 'L4_24TH'} <= {str(gpu) for gpu in xm.GpuType}


@pytest.mark.parametrize(
  'text, expected',
  [
    ('n1-standard-8', ('n1-standard-8', 8, 30, '', 0)),
    ('n1-standard-8+1xT4', ('n1-standard-8', 8, 30, 'T4', 1)),
    ('N1-highmem-32+2xnvidia_tesla_t4', ('n1-highmem-32', 32, 208, 'T4', 2)),
    ('n1-standard-4+V100', ('n1-standard-4', 4, 15, 'V100', 1)),
    ('a2-highgpu-1g', ('a2-highgpu-1g', 0, 0, 'A100', 1)),
    ('a2-highgpu-2g+2xA100', ('a2-highgpu-2g', 0, 0, 'A100', 2)),
    ('g2-standard-8', ('g2-standard-8', 8, 0, 'L4', 1)),
    ('g2-standard-24+2xL4', ('g2-standard-24', 24, 0, 'L4', 2)),
  ],
)
def test_machines_by_name(text, expected):
  assert cloud_lib.parse_machine(text, '--cloud.learner') == expected


@pytest.mark.parametrize(
  'text, expected',
  [
    ('n1-standrad-8', "unknown machine type 'n1-standrad-8'; did you mean n1-standard-8"),
    ('e2-standard-4', 'unknown machine type'),
    ('', 'unknown machine type'),
    ('n1-standard-8+1xL5', "unknown accelerator 'L5'; did you mean L4"),
    ('n1-standard-8+1xL4', 'L4 come with machines of their own: write g2-standard-4'),
    ('g2-standard-8+2xL4', 'g2-standard-8 comes with 1 L4 and takes no others'),
    ('n1-standard-8+', "'' is no NUMBERxACCELERATOR"),
    ('n1-standard-8+3xT4', 'takes 1 or 2 or 4 T4, not 3: write n1-standard-8+1xT4'),
    ('n1-standard-64+1xV100', 'takes 8 V100, not 1: write n1-standard-64+8xV100'),
    ('n1-standard-64+4xP100', 'n1-standard-64 takes no P100'),
    ('n1-standard-8+2xA100', 'A100 come with machines of their own: write a2-highgpu-2g'),
    ('a2-highgpu-1g+1xT4', 'a2-highgpu-1g comes with 1 A100 and takes no others'),
  ],
)
def test_machines_that_there_are_not(text, expected):
  with pytest.raises(types.UserError) as caught:
    cloud_lib.parse_machine(text, '--cloud.learner')
  assert str(caught.value).startswith(f'--cloud.learner={text}: ')
  assert expected in str(caught.value) and '\n' not in str(caught.value)


@pytest.mark.parametrize(
  'change, expected',
  [
    ({'project': ''}, 'needs --cloud.project=PROJECT_ID'),
    ({'project': 'My Project'}, "--cloud.project='My Project' is not of the right form"),
    ({'bucket': ''}, 'needs --cloud.bucket=gs://NAME'),
    ({'bucket': 'my-bucket'}, "--cloud.bucket='my-bucket' is not of the right form: write gs://"),
    ({'bucket': 's3://my-bucket'}, 'write gs://NAME'),
    ({'region': 'Iowa'}, "--cloud.region='Iowa'"),
    ({'repository': 'Seed_Acme'}, "--cloud.repository='Seed_Acme'"),
    ({'actors': 'n1'}, '--cloud.actors=n1: unknown machine type'),
    ({'replay': 'n1'}, '--cloud.replay=n1: unknown machine type'),
    ({'code': '/absent'}, '--cloud.code=/absent is no folder'),
    ({'requirements': '/absent'}, '--cloud.requirements=/absent is no file'),
  ],
)
def test_wrong_settings_are_named(change, expected):
  cloud_lib.check(_GOOD)
  with pytest.raises(types.UserError) as caught:
    cloud_lib.check(dataclasses.replace(_GOOD, **change))
  assert expected in str(caught.value) and '\n' not in str(caught.value)


def test_nodes_on_hosts_of_their_own_need_another_configuration():
  config = registry.load('catch_vtrace')
  changed = cloud_lib.with_cloud(config)
  assert changed.transport.host == '0.0.0.0' and changed.actor.connect_timeout_s == 600
  patient = dataclasses.replace(config, actor=config_lib.ActorConfig(connect_timeout_s=5))
  assert cloud_lib.with_cloud(patient).actor.connect_timeout_s == 5
  apart = dataclasses.replace(config, replay=config_lib.ReplayConfig(separate_process=True))
  assert changed.checkpoint.replay and not cloud_lib.with_cloud(apart).checkpoint.replay
  courier = dataclasses.replace(config, transport=config_lib.TransportConfig(kind='courier'))
  with pytest.raises(types.UserError, match='use --config.transport.kind=grpc'):
    cloud_lib.with_cloud(courier)


def _pins(lines):
  return {
    re.sub(r'[-_.]+', '-', line.partition('==')[0]).lower(): line.partition('==')[2].split(';')[0]
    for line in lines
    if '==' in line and not line.startswith('#')
  }


@pytest.mark.parametrize(
  'name, brings',
  [('catch_vtrace', 'dm-reverb'), ('atari_vtrace', 'ale-py'), ('cartpole_vtrace', 'gym')],
)
def test_requirements_are_the_versions_of_constraints_txt(name, brings):
  wanted = _pins(cloud_stage.requirements(registry.load(name), '', '', has_accelerator=False))
  constraints = _pins((_ROOT / 'constraints.txt').read_text().splitlines())
  assert brings in wanted
  assert wanted.items() <= constraints.items()
  assert not {'pytest', 'ruff', 'xmanager', 'seed-acme'} & wanted.keys()


def test_a_learner_with_an_accelerator_has_tensorflow_with_cuda():
  config = registry.load('catch_vtrace')
  plain = _pins(cloud_stage.requirements(config, '', '', has_accelerator=False))
  wanted = _pins(cloud_stage.requirements(config, '', '', has_accelerator=True))
  assert wanted.pop('tensorflow[and-cuda]') == plain.pop('tensorflow')
  assert wanted == plain


def test_more_requirements_of_the_user_follow(tmp_path):
  (tmp_path / 'more.txt').write_text('my-simulator==1.0\n')
  lines = cloud_stage.requirements(
    registry.load('catch_vtrace'), '', str(tmp_path / 'more.txt'), has_accelerator=False
  )
  assert lines[-1] == 'my-simulator==1.0'


def _with_environment(id_, **settings):
  return dataclasses.replace(
    registry.load('catch_vtrace'), environment=config_lib.EnvironmentConfig(id_, settings)
  )


@pytest.mark.slow
@pytest.mark.parametrize(
  'id_',
  [
    'my_world.catch:make',
    'my_world.catch.make',
    'my_world:make',
    'my_world:Catch-v0',
    'gym:my_world.catch:Catch-v0',
    'gymnasium:my_world:Catch-v0',
  ],
)
def test_modules_of_the_user_have_to_come_along(tmp_path, id_):
  config = _with_environment(id_)
  with pytest.raises(types.UserError) as caught:
    cloud_stage.requirements(config, '', '', has_accelerator=False)
  assert str(caught.value).startswith(f'environment.id={id_}: my_world is on this')
  assert '--cloud.code=FOLDER' in str(caught.value)
  (tmp_path / 'my_world').mkdir()
  cloud_stage.requirements(config, str(tmp_path), '', has_accelerator=False)


def test_modules_that_are_installed_come_with_their_distribution():
  lines = cloud_stage.requirements(
    _with_environment('scipy.optimize:rosen'), '', '', has_accelerator=False
  )
  assert 'scipy' in _pins(lines)


def test_a_setting_of_the_environment_names_no_module():
  config = _with_environment('catch', skin='red:blue')
  cloud_stage.requirements(config, '', '', has_accelerator=False)


def test_the_staged_package_is_clean_and_whole(tmp_path):
  cloud_stage.stage_package(tmp_path)
  staged = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob('*') if path.is_file()}
  assert {
    'seed_acme/agents/r2d2/loss.py',
    'seed_acme/programs/cli.py',
    'seed_acme/replay/writer.py',
    'seed_acme/configs/catch_vtrace.py',
    'seed_acme/py.typed',
  } <= staged
  assert all(name.endswith(('.py', '.typed')) for name in staged)
  assert not any(path.is_symlink() for path in tmp_path.rglob('*'))


def _find(folder):
  return user_code.find(str(folder), cloud_stage.PACKAGE)


_KEYS = (
  'id_rsa',
  'deploy/id_ed25519.pub',
  'server.pem',
  'tls/SERVER.KEY',
  'credentials.json',
  'my-service-account.json',
  'client_secret_12.json',
  'prod.env',
  '.env',
  '.env.local',
  '.netrc',
  'token',
  'secrets.yaml',
)


def test_the_wheel_of_launchpad_is_packed_as_it_was(tmp_path):
  cloud_stage.stage_launchpad(tmp_path)
  (packed,) = tmp_path.iterdir()
  assert packed.name == f'dm_launchpad-{launchpad_wheel.VERSION}-py3-none-any.whl'
  installed = pathlib.Path(launchpad.__file__).parent
  with zipfile.ZipFile(packed) as wheel:
    for path in installed.rglob('*.py'):
      assert wheel.read(f'launchpad/{path.relative_to(installed)}') == path.read_bytes()
    runs = wheel.getinfo('launchpad/launch/run_locally/decorate_output')
    assert runs.external_attr >> 16 & 0o111


def test_a_wheel_that_cannot_be_packed_is_refused(tmp_path, monkeypatch):
  monkeypatch.setattr(sys, 'executable', '/bin/false')
  with pytest.raises(types.UserError, match=r'dm-launchpad cannot be packed .*make setup'):
    cloud_stage.stage_launchpad(tmp_path)


def test_keys_and_passwords_are_left_out_and_all_else_is_listed(tmp_path):
  code, stage = tmp_path / 'code', tmp_path / 'stage'
  kept = (
    'world.py',
    'levels/token.py',
    'levels/credentials.py',
    'tokenizer.json',
    'levels/1.txt',
    'levels/secrets/level.py',
    'levels/secrets/map.txt',
  )
  for name in (*_KEYS, 'deploy/secrets/db.txt', *kept):
    (code / name).parent.mkdir(parents=True, exist_ok=True)
    (code / name).write_text('nothing')
  (code / 'tokenizer.json').write_text('{"token": 5, "learn": 6}')
  (code / 'levels' / '1.txt').write_text('a kind: Secret level')
  # Keys in files with harmless names.
  (code / 'robot.json').write_text('{"private_key": "-----BEGIN PRIVATE KEY-----\\nMII"}')
  (code / 'backup').write_text('-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl')
  (code / 'me.txt').write_text('-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQdG')
  (code / 'aws.ini').write_text('[default]\naws_secret_access_key = wJalr')
  (code / 'cluster.json').write_text('{"token": "0123456789abcdef", "learner": "10.0.0.1:8000"}')
  (code / 'run.json').write_text('{"apiVersion":"v1","kind":"Secret","stringData":{}}')
  (code / 'run.yaml').write_text('apiVersion: v1\nkind: Secret\nstringData: {token: 0123}\n')
  found = _find(code)
  found.copy_to(stage)
  staged = {path.relative_to(stage).as_posix() for path in stage.rglob('*') if path.is_file()}
  assert staged == set(found.files) == set(kept)
  held = {'robot.json', 'backup', 'me.txt', 'aws.ini', 'cluster.json', 'run.json', 'run.yaml'}
  assert set(found.left_out) == {*_KEYS, 'deploy/secrets', *held}
  lines = found.describe().splitlines()
  assert '7 files' in lines[0]
  assert [line.strip() for line in lines[1:8]] == sorted(kept)
  assert [line.strip() for line in lines[9:]] == sorted(found.left_out)


def test_links_are_followed_within_the_folder_and_refused_out_of_it(tmp_path):
  code, stage = tmp_path / 'code', tmp_path / 'stage'
  (code / 'real').mkdir(parents=True)
  (code / 'real' / 'world.py').write_text('x = 1')
  (code / 'file.py').symlink_to('real/world.py')
  (code / 'folder').symlink_to('real')
  _find(code).copy_to(stage)
  for name in ('file.py', 'folder/world.py', 'real/world.py'):
    assert (stage / name).read_text() == 'x = 1' and not (stage / name).is_symlink()
  (tmp_path / 'beside.txt').write_text('not yours')
  for target in ('/etc/passwd', '../beside.txt', '/etc', '../code2', '..'):
    (code / 'out').symlink_to(target)
    with pytest.raises(types.UserError, match=f'out is a link to {re.escape(target)}, out of'):
      _find(code)
    (code / 'out').unlink()
  (tmp_path / 'link').symlink_to('code')  # the folder itself may be a link
  assert _find(tmp_path / 'link').files == _find(code).files


def test_code_of_the_user_is_staged_without_what_is_not_code(tmp_path):
  code = tmp_path / 'code'
  for name in (
    'my_world/catch.py',
    'data.json',
    '.git/config',
    '.venv/lib.py',
    'runs/a/config',
    'my_world/__pycache__/catch.pyc',
  ):
    (code / name).parent.mkdir(parents=True, exist_ok=True)
    (code / name).write_text('')
  _find(code).copy_to(tmp_path / 'stage')
  staged = {
    path.relative_to(tmp_path / 'stage').as_posix()
    for path in (tmp_path / 'stage').rglob('*')
    if path.is_file()
  }
  assert staged == {'my_world/catch.py', 'data.json'}


@pytest.mark.parametrize('name', ['job.pkl', 'process_entry.py', 'requirements.txt'])
def test_code_with_the_name_of_a_file_of_the_image_is_refused(tmp_path, name):
  (tmp_path / 'folder').mkdir()
  (tmp_path / 'folder' / name).touch()
  _find(tmp_path)
  (tmp_path / name).touch()
  with pytest.raises(types.UserError, match=f'holds {name}, which an image has of its own'):
    _find(tmp_path)


def test_code_that_cannot_go_into_an_image_is_refused(tmp_path, monkeypatch):
  with pytest.raises(types.UserError, match='holds seed_acme itself'):
    _find(_ROOT)
  monkeypatch.setattr(user_code, '_MAX_BYTES', 10)
  (tmp_path / 'data').write_text('12345678901')
  with pytest.raises(types.UserError, match='holds more than'):
    _find(tmp_path)


def test_the_image_repeats_the_interpreter_of_the_actors(tmp_path):
  python = pythons.this_one(tmp_path)
  config = registry.load('atari_vtrace')
  config = dataclasses.replace(config, actor=dataclasses.replace(config.actor, python=python))
  wanted = _pins(cloud_stage.requirements(config, '', '', has_accelerator=False))
  assert 'ale-py' not in wanted  # environments need it, and they are elsewhere
  actor = cloud_stage.actor_python(python)
  version = '.'.join(map(str, sys.version_info[:2]))
  assert actor.version == version and any(
    line.startswith('ale-py==') for line in actor.requirements
  )
  image = cloud_image.make({}, actor.version)
  text = '\n'.join(image.instructions)
  assert f'COPY --from=python:{version}-slim-bookworm /usr/local /opt/actor' in text
  assert (
    '/opt/actor/bin/python -m pip install --no-cache-dir --no-deps -r actor_requirements.txt'
    in text
  )
  assert cloud_image.with_its_python(config).actor.python == '/opt/actor/bin/python'
  plain = registry.load('atari_vtrace')
  assert cloud_image.with_its_python(plain) == plain
  assert cloud_stage.actor_python('') == ('', [])
  assert '/opt/actor' not in '\n'.join(cloud_image.make({}).instructions)


def test_the_image_has_the_python_that_runs_here_and_the_environment_of_the_node():
  image = cloud_image.make({'A': '1'})
  version = '.'.join(map(str, sys.version_info[:2]))
  assert image.base == f'python:{version}-slim-bookworm'
  assert image.instructions[-1] == 'ENV A="1"'


def test_commands_to_be_pasted_are_safe_whatever_the_names_are(tmp_path, monkeypatch):
  """Values that `cloud.check` refuses today may be accepted by a later version."""
  monkeypatch.setattr(vertex_missing, 'has_docker', lambda: False)
  evil = 'a b\'"$(touch x); touch y #'
  cloud = cloud_lib.CloudConfig(
    project=evil, bucket=f'gs://{evil}', region=evil, repository=evil, service_account=evil
  )
  commands = [c for need in vertex_missing.needs(cloud, []) for c in need.commands]
  assert len(commands) > 4
  # One argument per line, as the shell splits them.
  script = '\n'.join(['gcloud() { printf "%s\\n" "$@"; }', 'set -e', *commands])
  done = subprocess.run(['bash', '-c', script], cwd=tmp_path, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  assert f'--project={evil}' in done.stdout.splitlines()
  assert not list(tmp_path.iterdir())
