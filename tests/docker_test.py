"""Dockerfiles and the compose file: linted, valid, and consistent with the rest."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
import yaml

from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.vertex import image as cloud_image
from seed_acme.programs.vertex import stage as cloud_stage

_ROOT = pathlib.Path(__file__).parent.parent
_BIN = pathlib.Path(sys.executable).parent
_DOCKERFILES = ('Dockerfile', 'Dockerfile.gpu')


def _hadolint(path):
  return subprocess.run(
    [_BIN / 'hadolint', '--no-color', '--config', '/dev/null', path],
    capture_output=True,
    text=True,
    check=False,
  )


@pytest.mark.parametrize('name', _DOCKERFILES)
def test_hadolint_finds_nothing(name):
  done = _hadolint(_ROOT / name)
  assert done.returncode == 0 and not done.stdout, done.stdout + done.stderr


def test_hadolint_would_find_something(tmp_path):
  (tmp_path / 'Dockerfile').write_text('FROM debian:latest\nRUN cd /tmp && apt-get install x\n')
  done = _hadolint(tmp_path / 'Dockerfile')
  assert done.returncode != 0 and 'DL3007' in done.stdout and 'DL3008' in done.stdout


def _words(text):
  return set(re.findall(r'[\w.+-]+', text))


@pytest.mark.parametrize('name', _DOCKERFILES)
def test_images_of_vertex_ai_have_the_same_base_and_libraries(name, monkeypatch):
  text = (_ROOT / name).read_text()
  monkeypatch.setattr(sys, 'version_info', (3, 11, 7, 'final', 0))
  image = cloud_image.make({})
  assert f'\nFROM {image.base}\n' in text
  [install] = [line for line in image.instructions if 'apt-get' in line]
  libraries, _, make_user = install.partition(' && (id ')
  assert _words(libraries) <= _words(text)
  assert make_user.rstrip(')').partition('|| ')[2] in text


def test_the_image_for_gpus_differs_by_the_extra_that_brings_cuda():
  plain, gpu = (_instructions((_ROOT / name).read_text()) for name in _DOCKERFILES)
  assert [line for line in gpu if line not in plain] == [
    'ENV CUDA_CACHE_PATH=/work/.cuda_cache \\',
    'CUDA_CACHE_MAXSIZE=4294967296 \\',
    'LANG=C.UTF-8 \\',
    f'LD_LIBRARY_PATH={cloud_image.with_gpus(1)["LD_LIBRARY_PATH"]} \\',
    'ARG EXTRAS=cuda,gym,gymnasium,box2d,atari,mujoco,dm-control,video',
  ]


def _instructions(text):
  return [line.strip() for line in text.splitlines() if line.strip() and line[0] != '#']


def _compose():
  return yaml.safe_load((_ROOT / 'compose.yaml').read_text())


@pytest.mark.slow
def test_the_compose_file_fits_its_schema():
  done = subprocess.run(
    [_BIN / 'check-jsonschema', '--builtin-schema', 'vendor.compose-spec', _ROOT / 'compose.yaml'],
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stdout + done.stderr


def test_the_schema_would_refuse_something(tmp_path):
  (tmp_path / 'compose.yaml').write_text('services:\n  a:\n    imag: b\n')
  done = subprocess.run(
    [
      _BIN / 'check-jsonschema',
      '--builtin-schema',
      'vendor.compose-spec',
      tmp_path / 'compose.yaml',
    ],
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode != 0


def test_compose_builds_the_dockerfiles_that_there_are():
  services = _compose()['services'].values()
  used = {service['build'].get('dockerfile', 'Dockerfile') for service in services}
  assert used == set(_DOCKERFILES)


def test_only_what_is_asked_for_starts():
  """A service without a profile would start with every profile, such as `cluster`."""
  assert all(service['profiles'] for service in _compose()['services'].values())


def test_the_nodes_of_compose_are_those_of_their_cluster_file(tmp_path, monkeypatch):
  monkeypatch.setenv('SEED_ACME_TOKEN', 'a' * 32)
  compose = _compose()
  path = tmp_path / 'cluster.json'
  path.write_text(compose['configs']['cluster']['content'])
  cluster = cluster_file.load(str(path))
  nodes = {
    name: service
    for name, service in compose['services'].items()
    if 'cluster' in service.get('profiles', ())
  }
  assert {name for name, service in nodes.items() if 'learner' in service['command']} == {'learner'}
  assert cluster_file.split(cluster.learner)[0] == 'learner'
  actors = [name for name, service in nodes.items() if 'actor' in service['command']]
  assert list(cluster.actors) == actors
  for index, name in enumerate(actors):
    assert f'--index={index}' in nodes[name]['command'] and nodes[name]['hostname'] == name
  for service in nodes.values():
    assert f'--cluster={service["configs"][0]["target"]}' in service['command']


def _copy(name, folder):
  """Copies a file or a folder of this repository to the same place below `folder`."""
  source, target = _ROOT / name, folder / name
  target.parent.mkdir(parents=True, exist_ok=True)
  if source.is_dir():
    ignored = shutil.ignore_patterns('__pycache__', '.*')
    shutil.copytree(source, target, symlinks=True, ignore=ignored, dirs_exist_ok=True)
  else:
    shutil.copy(source, target)


def _of_context():
  """Returns what Docker sees of this repository."""
  lines = (_ROOT / '.dockerignore').read_text().splitlines()
  assert '*' in lines
  return [line[1:] for line in lines if line.startswith('!')]


@pytest.mark.parametrize('name', _DOCKERFILES)
def test_setup_finds_what_it_reads_at_each_installation(name, tmp_path):
  """The first one comes before the code, so that changed code does not repeat it."""
  num_installations = 0
  for line in (_ROOT / name).read_text().replace('\\\n', ' ').splitlines():
    instruction, _, words = line.partition(' ')
    if instruction == 'COPY':
      *sources, _ = words.split()
      for source in _of_context() if sources == ['.'] else sources:
        _copy(source, tmp_path)
    elif instruction == 'RUN' and 'pip install' in words:
      num_installations += 1
      command = [sys.executable, 'setup.py', '--name']
      done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
      assert done.stdout == 'seed_acme\n', done.stderr
  assert num_installations == 2


@pytest.mark.slow
def test_what_docker_sees_builds_the_whole_package(tmp_path):
  """.dockerignore admits everything that setup.py installs, links included."""
  context = tmp_path / 'context'
  for name in _of_context():
    _copy(name, context)
  done = subprocess.run(
    [
      sys.executable,
      '-m',
      'pip',
      'wheel',
      '--quiet',
      '--no-deps',
      '--no-build-isolation',
      '--wheel-dir',
      tmp_path / 'out',
      context,
    ],
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr
  [wheel] = (tmp_path / 'out').glob('*.whl')
  built = {name for name in zipfile.ZipFile(wheel).namelist() if '.dist-info/' not in name}
  cloud_stage.stage_package(tmp_path / 'staged')
  staged = {
    path.relative_to(tmp_path / 'staged').as_posix()
    for path in (tmp_path / 'staged').rglob('*')
    if path.is_file()
  }
  assert built == staged


def test_the_content_of_the_cluster_file_is_json():
  assert json.loads(_compose()['configs']['cluster']['content'])
