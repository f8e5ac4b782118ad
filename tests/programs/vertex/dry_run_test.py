"""Dry runs for Vertex AI without an account: a learner with accelerators, and wrong input."""

import pathlib
import re
import shlex
import signal
import subprocess
import sys

import launchpad as lp
import pytest

from seed_acme.checks import device_names
from seed_acme.programs import cli
from seed_acme.programs.graph import program_graph
from seed_acme.programs.system import processes
from seed_acme.programs.vertex import command as vertex_command
from seed_acme.programs.vertex import image as cloud_image
from tests.programs.vertex import launching

pytestmark = pytest.mark.slow

_ROOT = pathlib.Path(__file__).parents[3]
_BIN = pathlib.Path(sys.executable).parent
_MORE = ('my-simulator==1.0', 'other[extra]==2.0', 'git+https://example.org/x.git', 'plain>=3')


@pytest.fixture(autouse=True)
def _signals(monkeypatch):
  monkeypatch.setattr(signal, 'signal', lambda *_: None)


@pytest.fixture(scope='module')
def with_accelerator(tmp_path_factory):
  """Makes a dry run whose learner has an accelerator."""
  more = tmp_path_factory.mktemp('more') / 'more.txt'
  more.write_text('\n'.join(_MORE) + '\n')
  return launching.dry_run(
    tmp_path_factory.mktemp('dry'), '--cloud.learner=g2-standard-8', f'--cloud.requirements={more}'
  )


def _app(folder, group):
  return folder / group / cloud_image.APP


def test_the_learner_gets_the_accelerator_and_cuda(with_accelerator):
  learner, actors = with_accelerator.spec()['workerPoolSpecs']
  assert learner['machineSpec'] == {
    'machineType': 'g2-standard-8',
    'acceleratorType': 'NVIDIA_L4',
    'acceleratorCount': 1,
  }
  assert actors['machineSpec'] == {'machineType': 'n1-standard-4'}
  assert 'nvidia_l4_gpus >= 1' in with_accelerator.stdout
  for group, tensorflow in (('learner', 'tensorflow[and-cuda]'), ('actor', 'tensorflow')):
    lines = (with_accelerator.folder / group / 'Dockerfile').read_text().splitlines()
    bases = [line for line in lines if line.startswith('FROM ')]
    assert bases == [f'FROM {cloud_image.python_image()}']
    pins = (_app(with_accelerator.folder, group) / 'requirements.txt').read_text().splitlines()
    assert [
      pin
      for pin in pins
      if pin.startswith('tensorflow')
      and not pin.startswith(('tensorflow-io', 'tensorflow-estimator'))
    ] == [f'{tensorflow}==2.15.1']


def test_a_learner_without_the_accelerator_that_it_was_given_refuses_to_train(with_accelerator):
  variables = [
    dict(re.findall(r'^ENV (\w+)="(.*)"$', (file / 'Dockerfile').read_text(), re.MULTILINE))
    for file in (with_accelerator.folder / 'learner', with_accelerator.folder / 'actor')
  ]
  assert variables[0][device_names.GPUS_VARIABLE] == '1'
  assert '/usr/local/nvidia/lib64' in variables[0]['LD_LIBRARY_PATH'].split(':')
  assert not {'LD_LIBRARY_PATH', device_names.GPUS_VARIABLE} & variables[1].keys()


_USERS = {
  'id': 'grep -qx "$1" "$USERS"',
  'useradd': 'for uid; do case $uid in [0-9]*) break;; esac; done\n'
  'if grep -qx "$uid" "$USERS"; then echo "UID $uid is not unique" >&2; exit 4; fi\n'
  'echo "$uid" >> "$USERS"',
}


def test_the_user_of_an_image_is_made_once(with_accelerator, tmp_path):
  """xmanager's Dockerfile makes it, too, and a second `useradd` with a number fails."""
  folder, users = tmp_path / 'bin', tmp_path / 'users'
  folder.mkdir()
  users.touch()
  for name in ('apt-get', 'rm', *_USERS):
    (folder / name).write_text(f'#!/bin/sh\n{_USERS.get(name, "")}\n')
    (folder / name).chmod(0o755)
  variables = {'PATH': f'{folder}:/usr/bin:/bin', 'USERS': str(users)}
  lines = (with_accelerator.folder / 'learner' / 'Dockerfile').read_text().splitlines()
  steps = [line.removeprefix('RUN ') for line in lines if 'useradd' in line]
  assert len(steps) == 2
  for step in steps:
    done = subprocess.run(
      ['sh', '-c', step], env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
  assert users.read_text().split() == [str(cloud_image.USER)]


def test_hadolint_finds_nothing_in_what_is_really_staged(with_accelerator):
  files = sorted(with_accelerator.folder.glob('*/Dockerfile'))
  assert [file.parent.name for file in files] == ['actor', 'learner']
  for file in files:
    done = subprocess.run(
      [_BIN / 'hadolint', '--no-color', '--config', '/dev/null', file],
      capture_output=True,
      text=True,
      check=False,
    )
    assert done.returncode == 0 and not done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize('group', ['learner', 'actor'])
def test_what_pip_builds_with_is_pinned_too(with_accelerator, group, tmp_path):
  """This matters for setuptools, whose newest version cannot build all packages of that age."""
  folder = with_accelerator.folder
  lines = (folder / group / 'Dockerfile').read_text().splitlines()
  [choose] = [line for line in lines if line.startswith('RUN grep')]
  install = lines.index('RUN python -m pip install --no-cache-dir -r requirements.txt')
  file = choose.rpartition(' ')[2]
  assert lines.index(choose) < lines.index(f'ENV PIP_CONSTRAINT={file}') < install
  script = choose.removeprefix('RUN ').replace(file, str(tmp_path / 'pins.txt'))
  subprocess.run(['sh', '-e', '-c', script], cwd=_app(folder, group), check=True)
  pins = (tmp_path / 'pins.txt').read_text().splitlines()
  given = (_app(folder, group) / 'requirements.txt').read_text().splitlines()
  assert given[-len(_MORE) :] == list(_MORE)
  assert given[0] == '--find-links=.'  # for Launchpad's wheel
  # The other lines, and lines with an extra, are no constraints for pip.
  ours = [line for line in given[1 : -len(_MORE)] if '[' not in line]
  assert pins == ours + ['my-simulator==1.0']
  assert any(re.fullmatch(r'setuptools==\d+(\.\d+)*', pin) for pin in pins)


def _error(capsys, folder, monkeypatch, *arguments):
  """Returns the one-line message for wrong input, after checking that no file is left."""
  monkeypatch.chdir(folder)
  before = sorted(folder.rglob('*'))
  assert cli.main([*launching.VERTEX, *launching.CLOUD, *arguments]) == processes.USER_ERROR_EXIT
  lines = capsys.readouterr().err.strip().splitlines()
  assert len(lines) == 1 and lines[0].startswith('error: '), lines
  assert sorted(folder.rglob('*')) == before
  return lines[0]


@pytest.mark.parametrize(
  'arguments, expected',
  [
    (('--dry_run', '--run_dir=gs://'), "--run_dir='gs:' is not of the right form: write gs://"),
    (('--dry_run', '--run_dir=gs://Bad_Bucket!!'), "--run_dir='gs://Bad_Bucket!!' is not of the"),
    (
      ('--dry_run', '--cloud.replay=n1-standard-4'),
      '--cloud.replay=n1-standard-4: the learner holds the replay of this run',
    ),
    (('--out=here',), '--out=here is for --dry_run'),
    (
      ('--dry_run', '--config.learner.logger=wandb'),
      'learner.logger=wandb with --launch=vertex_ai: the images have neither its package nor',
    ),
    (
      ('--dry_run', '--out=new', '--config.name=my run'),
      "the configuration name 'my run' cannot name a folder",
    ),
    (('--dry_run', '--cloud.code=code'), 'dangling.py cannot go into an image: No such file'),
    (('--dry_run', '--cloud.code=loop'), 'cannot go into an image: Too many levels of symbolic'),
    (
      ('--dry_run', '--cloud.requirements=binary.txt'),
      '--cloud.requirements=binary.txt cannot be read: it is no text',
    ),
  ],
)
def test_wrong_input_is_one_line(capsys, tmp_path, monkeypatch, arguments, expected):
  for name, target in (('code/dangling.py', 'nowhere'), ('loop/again', '../loop')):
    path = tmp_path / name
    path.parent.mkdir()
    path.symlink_to(target)
  (tmp_path / 'binary.txt').write_bytes(b'\xff\xfe\x00')
  assert expected in _error(capsys, tmp_path, monkeypatch, *arguments)


def _program(*groups):
  program = lp.Program('test')
  for group in groups:
    program.add_node(lp.PyNode(print), group)
  return program


@pytest.mark.parametrize('arguments', [('--dry_run',), ('--dry_run', '--out=new'), ()])
def test_five_kinds_of_node_are_refused_before_anything_is_staged(
  capsys, tmp_path, monkeypatch, arguments
):
  program = _program('learner', 'a', 'b', 'c', 'd')
  monkeypatch.setattr(program_graph, 'make_program', lambda *_, **__: program)
  monkeypatch.setattr(vertex_command.door, 'check', lambda configs: [None])
  monkeypatch.setattr(vertex_command, '_stage', lambda *_: pytest.fail('it stages'))
  error = _error(capsys, tmp_path, monkeypatch, *arguments)
  assert 'has 5 kinds of node (learner, a, b, c, d); Vertex AI takes at most 4' in error


def test_a_missing_xmanager_is_installed_by_a_command_that_works(capsys, tmp_path, monkeypatch):
  """The package is on no index, so it is installed from the checkout."""
  find_spec = vertex_command.importlib.util.find_spec
  monkeypatch.setattr(
    vertex_command.importlib.util,
    'find_spec',
    lambda name, *rest: None if name == 'xmanager' else find_spec(name, *rest),
  )
  error = _error(capsys, tmp_path, monkeypatch, '--dry_run')
  command = "PIP_CONSTRAINT=constraints.txt pip install -e '.[vertex]'"
  assert 'make setup' in error and command in error
  assert ',vertex,' in (_ROOT / 'scripts' / 'setup.sh').read_text()


def test_a_docker_without_login_is_said_before_images_are_built(
  capsys, tmp_path, monkeypatch, docker
):
  monkeypatch.setenv('GOOGLE_AUTH_TOKEN_FOR_TESTING', 'x')
  monkeypatch.setenv('DOCKER_CONFIG', str(tmp_path / 'docker'))
  (tmp_path / 'work').mkdir()
  error = _error(capsys, tmp_path / 'work', monkeypatch)
  assert 'gcloud auth configure-docker us-central1-docker.pkg.dev' in error
  assert docker.read_text().splitlines() == ['info']


def test_the_printed_command_resumes_the_run(
  capsys, tmp_path, monkeypatch, without_docker, empty_images
):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv('GOOGLE_AUTH_TOKEN_FOR_TESTING', 'x')
  monkeypatch.setattr(vertex_command, '_check_resume', lambda *_: None)
  # By its name, because importing it loads Vertex AI's library.
  monkeypatch.setattr(
    'seed_acme.programs.vertex.submit.submit', lambda *_: ('projects/1/customJobs/42', 'page')
  )
  arguments = [
    *launching.VERTEX,
    *launching.CLOUD,
    '--config.name=two words'.replace(' ', '_'),
    '--config.num_actors=1',
  ]
  printed = []
  for _ in range(2):
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out.splitlines()
    [at] = [i for i, line in enumerate(out) if line.startswith('Resume')]
    words = shlex.split(out[at + 1])
    assert words[0].endswith('seed-acme')
    arguments = words[1:]
    printed.append((re.search(r'^Run: (.*)', '\n'.join(out), re.M)[1], arguments))
  (url, first), (url_again, second) = printed
  assert url == url_again and first == second and f'--run_dir={url}' in first
