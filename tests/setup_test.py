"""`make setup` on made-up environments: it repairs what is wrong, and only that."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from scripts import check_installed
from scripts import install

_ROOT = pathlib.Path(__file__).parent.parent
_OF_MAKE = ('MAKEFLAGS', 'MAKEOVERRIDES', 'MFLAGS', 'MAKELEVEL', 'VENV', 'PYTHON')
_REAL = os.path.realpath(sys.executable)


class _Checkout:
  """The Makefile and its scripts, with an environment whose pip records its calls."""

  def __init__(self, folder):
    self.folder = folder
    for name in ('Makefile', 'setup.py', 'pyproject.toml'):
      shutil.copy(_ROOT / name, folder)
    shutil.copytree(_ROOT / 'scripts', folder / 'scripts')
    (folder / 'launchpad_wheel').mkdir()
    (folder / 'scripts' / 'launchpad_wheel.py').write_text('print("wheels/launchpad.whl")\n')
    (folder / 'constraints.txt').write_text(
      '# pins\nnumpy==1.23.5\nProto_Buf==3.19.6\ntomli==2.5.0; python_version < "3.8"\n'
    )
    self._site, self._asked, self._settings = (
      folder / name for name in ('site', 'pip.txt', 'pip_settings.txt')
    )
    self._settings.touch()
    python = folder / '.venv' / 'bin' / 'python'
    python.parent.mkdir(parents=True)
    # Without site-packages, so that only packages of this test are there.
    python.write_text(
      f'#!/bin/bash\nif [[ "$1 $2 $3" == "-m pip config" ]]; then cat {self._settings}; exit; fi\n'
      f'if [[ "$1 $2" == "-m pip" ]]; then echo "$@" > {self._asked}; exit; fi\n'
      f'PYTHONPATH={self._site} exec {_REAL} -S "$@"\n'
    )
    python.chmod(0o755)
    (folder / '.venv' / '.installed').touch()

  def install(self, name, version):
    for old in self._site.glob(f'{name}-*.dist-info'):
      shutil.rmtree(old)
    if version:
      record = self._site / f'{name}-{version}.dist-info'
      record.mkdir(parents=True)
      (record / 'METADATA').write_text(f'Name: {name}\nVersion: {version}\n')

  def set_pip(self, key, value):
    self._settings.write_text(f'global.{key}={value!r}\n')

  def install_uv(self, exit_code):
    """Installs a uv that records its calls and exits with this code."""
    uv, asked = self.folder / '.venv' / 'bin' / 'uv', self.folder / 'uv.txt'
    uv.write_text(f'#!/bin/bash\necho "cert $SSL_CERT_FILE $@" > {asked}\nexit {exit_code}\n')
    uv.chmod(0o755)
    return asked

  def make(self):
    """Returns make's output, and pip's arguments ('' if it was not called)."""
    self._asked.unlink(missing_ok=True)
    # Variables of a make around these tests are not passed on.
    environment = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
    result = subprocess.run(
      ['make', 'setup'],
      cwd=self.folder,
      env=environment,
      capture_output=True,
      text=True,
      check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout, self._asked.read_text() if self._asked.exists() else ''


@pytest.fixture
def checkout(tmp_path):
  made = _Checkout(tmp_path)
  for name, version in (('numpy', '1.23.5'), ('proto_buf', '3.19.6'), ('seed_acme', '1.0')):
    made.install(name, version)
  return made


def test_nothing_is_done_where_all_is_well(checkout):
  said, asked = checkout.make()
  assert 'Nothing to be done' in said and not asked


@pytest.mark.parametrize(
  'name, version, pin',
  [
    ('numpy', '1.26.4', 'numpy==1.23.5'),
    ('proto_buf', '', 'Proto_Buf==3.19.6'),
    ('seed_acme', '', '--editable'),
  ],
)
def test_a_wrong_package_is_installed_again(checkout, name, version, pin):
  checkout.install(name, version)
  said, asked = checkout.make()
  assert pin in asked
  if name != 'seed_acme':
    assert f'Missing or of another version in .venv: {pin}\n' in said


def _find_python(checkout, answer):
  """Replaces the search by one that names a Python which makes empty environments."""
  script = checkout.folder / 'scripts' / 'find_python.sh'
  script.write_text(f'echo {answer}\n')


@pytest.mark.parametrize(
  'name, version, reason',
  [
    ('tensorflow-cpu', '2.8.4', 'it holds tensorflow-cpu 2.8.4'),
    ('tf_agents', '0.12.0', 'it holds tf-agents 0.12.0'),
    ('dm_launchpad', '0.5.1', "it holds DeepMind's dm-launchpad 0.5.1"),
  ],
)
def test_an_environment_of_the_stack_before_is_made_anew(checkout, name, version, reason):
  checkout.install(name, version)
  maker = checkout.folder / 'maker'
  # `venv --clear` deletes existing files.
  maker.write_text(
    f'#!/bin/bash\necho "$@" > {checkout.folder}/made.txt\nrm -r {checkout.folder}/site\n'
  )
  maker.chmod(0o755)
  _find_python(checkout, maker)
  checkout.install('numpy', '')  # otherwise make would not search
  said, asked = checkout.make()
  assert f'Making .venv anew, because {reason}, with {maker}\n' in said
  assert (checkout.folder / 'made.txt').read_text() == '-m venv --clear .venv\n'
  assert 'numpy==1.23.5' in asked and '--editable' in asked


def test_cuda_is_installed_where_it_is_asked_for(checkout, monkeypatch):
  checkout.install('numpy', '')
  assert ',cuda' not in checkout.make()[1]
  monkeypatch.setenv('CUDA', '1')
  assert ',cuda' in checkout.make()[1]


def test_cuda_is_added_to_an_environment_without_it(checkout, monkeypatch):
  monkeypatch.setenv('CUDA', '1')
  assert ',cuda' in checkout.make()[1]
  checkout.install('nvidia_cudnn_cu12', '8.9.4.25')
  said, asked = checkout.make()
  assert 'Nothing to be done' in said and not asked


def test_uv_installs_as_pip_would(checkout, monkeypatch):
  monkeypatch.delenv('SSL_CERT_FILE', raising=False)
  checkout.install('numpy', '')
  asked_of_uv = checkout.install_uv(0)
  checkout.set_pip('cert', '/etc/company.pem')
  _, asked = checkout.make()
  assert '--editable' not in asked  # pip installs only uv
  said = asked_of_uv.read_text()
  assert said.startswith('cert /etc/company.pem pip install --python .venv/bin/python ')
  assert '--find-links .venv/wheels --editable .[dev' in said and 'numpy==1.23.5' in said


@pytest.mark.parametrize(
  'key, exit_code, reason',
  [('client-cert', 0, 'pip is set to client-cert=/etc/me.pem'), ('cert', 1, 'uv failed')],
)
def test_pip_installs_what_uv_cannot(checkout, key, exit_code, reason):
  checkout.install('numpy', '')
  asked_of_uv = checkout.install_uv(exit_code)
  checkout.set_pip(key, '/etc/me.pem')
  _, asked = checkout.make()
  assert asked_of_uv.exists() == bool(exit_code)
  assert '--find-links .venv/wheels --editable .[dev' in asked and 'numpy==1.23.5' in asked
  log = (checkout.folder / '.venv' / 'install.log').read_text()
  assert f'pip installs, because {reason}\n' in log


def test_settings_of_pip_are_those_of_uv():
  """`pip config list` prints them; environment variables take precedence."""
  listing = (
    ":env:.find-links='/mine'\nfreeze.timeout='1'\nglobal.extra-index-url='https://a/ https://b/'\n"
    "global.find-links='/theirs'\nglobal.timeout='60'\ninstall.no-cache-dir='true'\n"
    "global.quiet='1'\n"
  )
  options, variables = install.for_uv(install.settings(listing))
  assert options == [
    *('--index', 'https://a/', '--index', 'https://b/', '--find-links', '/mine', '--no-cache')
  ]
  assert variables == {'UV_HTTP_TIMEOUT': '60'}
  options, _ = install.for_uv({'constraint': 'constraints.txt'})
  assert options == [
    *('--constraints', 'constraints.txt', '--build-constraints', 'constraints.txt')
  ]
  with pytest.raises(ValueError, match='pip is set to no-binary=:all:'):
    install.for_uv({'no-binary': ':all:'})


_PIP = """\
Obtaining file:///project
Collecting numpy==1.26.4
  Downloading https://example.org/numpy-1.26.4-cp311.whl (18.3 MB)
INFO: pip is looking at multiple versions of mlflow-skinny to determine which version fits
Collecting pandas
  Building wheel for seed_acme (pyproject.toml): started
Installing collected packages: numpy, pandas
"""
_UV = """\
Using Python 3.11.7 environment at: .venv
Resolved 233 packages in 9.49s
   Building seed-acme @ file:///project
Downloading tensorflow (453.2MiB)
 Downloaded tensorflow
Prepared 232 packages in 1m 02s
"""
_MAKE = '-- Configuring done\n[  7%] Building CXX object a.o\n[100%] Built target game\n'


@pytest.mark.parametrize(
  'reader, output, steps',
  [
    (
      'pip_step',
      _PIP,
      [
        'preparing',
        'package 1: numpy==1.26.4',
        'package 1: numpy-1.26.4-cp311.whl (18.3 MB)',
        'choosing a version of mlflow-skinny',
        'package 2: pandas',
        'building seed_acme',
        'unpacking',
      ],
    ),
    (
      'pip_step',
      _UV,
      ['preparing', '233 packages', 'downloading tensorflow (453.2MiB)', 'unpacking'],
    ),
    ('make_step', _MAKE, ['preparing', '7% compiled', '100% compiled']),
    ('apt_step', 'Get:1 cmake\nSetting up cmake\n', ['Get:1 cmake', 'Setting up cmake']),
  ],
)
def test_what_takes_long_says_what_it_does(reader, output, steps):
  command = f'set -euo pipefail; source scripts/progress.sh; PERIOD_S=0 show_progress {reader}'
  done = subprocess.run(
    ['bash', '-c', command], input=output, cwd=_ROOT, capture_output=True, text=True, check=True
  )
  shown = [line.strip().rpartition(', ')[0] for line in done.stdout.splitlines()]
  assert [step for i, step in enumerate(shown) if step not in shown[:i]] == steps


def test_it_says_so_while_nothing_comes():
  """pip is silent while it downloads half a gigabyte. Its failure is the failure of the pipe."""
  command = (
    'set -euo pipefail; source scripts/progress.sh; (echo "Collecting tensorflow"; sleep 2.5; exit '
    '7) | PERIOD_S=0 show_progress pip_step'
  )
  done = subprocess.run(
    ['bash', '-c', command], cwd=_ROOT, capture_output=True, text=True, check=False
  )
  assert done.returncode == 7 and not done.stderr
  assert len(done.stdout.splitlines()) >= 2
  assert all(line.startswith('  package 1: tensorflow, 0:0') for line in done.stdout.splitlines())


@pytest.mark.parametrize(
  'marker, python, applies',
  [
    ('python_version < "3.11"', (3, 10), True),
    ('python_version < "3.11"', (3, 11), False),
    ('python_version >= "3.11"', (3, 11), True),
    ('python_version == "3.11"', (3, 10), False),
  ],
)
def test_a_marker_says_where_a_version_is_wanted(marker, python, applies):
  lines = f'a==1; {marker}'
  assert check_installed.wrong(lines, {'seed-acme': '1'}, python) == ['a==1'] * applies
  assert check_installed.wrong(lines, {'seed-acme': '1', 'a': '1'}, python) == []


def test_what_is_optional_may_be_absent_but_not_of_another_version():
  lines = 'a==1\n# Only where they are wanted:\nb==2'
  installed = {'seed-acme': '1', 'a': '1'}
  assert check_installed.wrong(lines, installed) == []
  assert check_installed.wrong(lines, {**installed, 'b': '3'}) == ['b==2']
  assert check_installed.wrong(lines, {'seed-acme': '1', 'b': '2'}) == ['a==1']


def test_a_marker_that_cannot_be_read_is_not_passed_over():
  with pytest.raises(ValueError, match='sys_platform'):
    check_installed.wrong('a==1; sys_platform == "linux"', {})


def test_an_environment_of_another_python_is_no_base():
  assert check_installed.why_no_base({}, (3, 12)) == 'it has Python 3.12'
  assert not check_installed.why_no_base({'dm-launchpad': '0.5.1+seed'}, (3, 11))
