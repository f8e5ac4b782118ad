"""The script that builds Launchpad's wheel."""

import hashlib
import importlib.metadata
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

from seed_acme.programs.tools.actor_environment import finding
from tests.launchpad_wheel import conftest as running

_ROOT = pathlib.Path(__file__).parents[2]


def _names(wheel):
  with zipfile.ZipFile(wheel) as content:
    return set(content.namelist())


@pytest.mark.slow
def test_it_is_the_same_byte_for_byte_under_another_python_and_constraints(wheel, tmp_path):
  """The constraints of an installation, which name the wheel itself, do not stand in its way."""
  (tmp_path / 'constraints.txt').write_text('dm-launchpad==0.5.1+seed\n')
  variables = {'TZ': 'Asia/Tokyo', 'PYTHONHASHSEED': '7'}
  again = running.run_script(
    tmp_path / 'out',
    python=finding.find('3.12'),
    PIP_CONSTRAINT=str(tmp_path / 'constraints.txt'),
    **variables,
  )
  assert again.returncode == 0, again.stderr
  made = pathlib.Path(again.stdout.strip())
  assert made.name == wheel.name == 'dm_launchpad-0.5.1+seed-py3-none-any.whl'
  assert made.read_bytes() == wheel.read_bytes()


def test_it_holds_nothing_compiled_and_all_of_launchpad(wheel):
  names = _names(wheel)
  assert not [name for name in names if name.endswith(('.so', '.pyc'))]
  info = 'dm_launchpad-0.5.1+seed.dist-info'
  assert {f'{info}/LICENSE', f'{info}/NOTICE', 'launchpad/program.py'} <= names
  assert len([name for name in names if name.startswith('launchpad/')]) == 78
  ours = {
    f'courier/{path.relative_to(_ROOT / "launchpad_wheel" / "courier")}'
    for path in (_ROOT / 'launchpad_wheel').rglob('*.py')
  }
  theirs = {f'courier/python/{name}.py' for name in ('client', 'client_test', 'py_server')}
  assert {name for name in names if name.startswith('courier/')} == ours | theirs


def test_its_record_is_true(wheel):
  with zipfile.ZipFile(wheel) as content:
    (record,) = (name for name in content.namelist() if name.endswith('/RECORD'))
    lines = [line.split(',') for line in content.read(record).decode().splitlines()]
    assert {name for name, _, _ in lines} == set(content.namelist())
    for name, digest, size in lines:
      if name != record:
        assert int(size) == len(content.read(name))
        assert digest.startswith('sha256=') and '=' not in digest.removeprefix('sha256=')


def test_what_it_imports_is_declared(wheel):
  with zipfile.ZipFile(wheel) as content:
    (metadata,) = (name for name in content.namelist() if name.endswith('/METADATA'))
    declared = re.findall(r'^Requires-Dist: ([\w-]+)', content.read(metadata).decode(), re.M)
    sources = [content.read(name).decode() for name in content.namelist() if name.endswith('.py')]
  imported = {
    name
    for source in sources
    for name in re.findall(r'^(?:import|from) ([a-zA-Z_]\w*)', source, re.M)
  }
  distributions = {'absl': 'absl-py', 'tree': 'dm-tree', 'grpc': 'grpcio'}
  # Imports of optional nodes: Reverb's and Vertex AI's.
  optional = {'google', 'reverb', 'tensorflow', 'xmanager', 'pybind11_abseil'}
  standard = set(sys.stdlib_module_names) | {'launchpad', 'courier'}
  assert {distributions.get(name, name) for name in imported - optional - standard} <= set(declared)


@pytest.mark.slow
def test_pip_takes_it_for_launchpad_and_finds_nothing_wrong(wheel, tmp_path):
  """The wheel meets `dm-launchpad==0.5.1`, which setup.py requires."""
  made = tmp_path / 'packages'
  install = [sys.executable, '-m', 'pip', 'install', '--quiet', '--no-deps', '--no-compile']
  from_here = ['--no-index', f'--find-links={wheel.parent}', f'--target={made}']
  subprocess.run([*install, *from_here, 'dm-launchpad==0.5.1'], check=True)
  [found] = importlib.metadata.distributions(path=[str(made)])
  assert (found.name, found.version) == ('dm-launchpad', '0.5.1+seed')
  (decorate,) = made.rglob('decorate_output')
  assert decorate.stat().st_mode & 0o111, 'Launchpad runs it'


def test_another_wheel_than_the_one_it_was_written_for_is_refused(tmp_path):
  other = tmp_path / 'dm_launchpad-0.5.1-cp310-cp310-manylinux2010_x86_64.whl'
  other.write_bytes(b'changed')
  done = running.run_script(tmp_path / 'out', f'--source={other}')
  assert done.returncode == 1 and not (tmp_path / 'out').exists()
  digest = hashlib.sha256(b'changed').hexdigest()
  assert done.stderr.startswith('launchpad_wheel.py: dm_launchpad-0.5.1-cp310')
  assert f'its sha256 is {digest}, and not ced3eac3' in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
  'arguments, variables, words',
  [
    (['--source=absent.whl'], {}, 'cannot read absent.whl: No such file or directory'),
    ([], {'PIP_INDEX_URL': 'http://127.0.0.1:9/simple', 'PIP_NO_INDEX': '1'}, 'by --source=WHEEL'),
  ],
)
def test_a_wheel_that_is_not_to_be_had_is_named(tmp_path, arguments, variables, words):
  quick = {'PIP_RETRIES': '0', 'PIP_FIND_LINKS': '', 'PIP_CONFIG_FILE': '/dev/null', **variables}
  done = running.run_script(tmp_path, *arguments, **quick)
  assert done.returncode == 1 and words in done.stderr
  assert 'Traceback' not in done.stderr and not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
  (tmp_path / 'file').write_text('')
  done = running.run_script(tmp_path / 'file')
  assert done.returncode == 1
  assert f'cannot write into {tmp_path}/file: File exists' in done.stderr
