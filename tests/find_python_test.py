"""scripts/find_python.sh on made-up interpreters."""

import os
import pathlib
import subprocess
import sys

import pytest

_SCRIPT = pathlib.Path(__file__).parent.parent / 'scripts' / 'find_python.sh'
# A real interpreter: the environment's own python may be a link, and has no ensurepip trouble.
_REAL = os.path.realpath(sys.executable)


def _interpreter(path, script):
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(f'#!/bin/bash\n{script}\n')
  path.chmod(0o755)
  return path


def _find(tmp_path, *folders, version='', **variables):
  """Runs the script with only `folders` and the system's tools on the PATH."""
  tools = tmp_path / 'tools'
  tools.mkdir(exist_ok=True)
  for tool in ('ls', 'awk', 'bash'):
    link = tools / tool
    if not link.exists():
      link.symlink_to(f'/usr/bin/{tool}')
  environment = {
    'PATH': ':'.join(map(str, [*folders, tools])),
    'HOME': str(tmp_path / 'home'),
    **variables,
  }
  return subprocess.run(
    ['/bin/bash', str(_SCRIPT), *filter(None, [version])],
    env=environment,
    capture_output=True,
    text=True,
    check=False,
  )


def test_a_shim_that_does_not_run_is_skipped(tmp_path):
  _interpreter(tmp_path / 'shims' / 'python3.11', 'echo "command not found" >&2; exit 127')
  _interpreter(tmp_path / 'real' / 'python3.11', f'exec {_REAL} "$@"')
  result = _find(tmp_path, tmp_path / 'shims', tmp_path / 'real')
  assert (result.returncode, result.stdout.strip()) == (0, _REAL), result.stderr


@pytest.mark.parametrize('version', ['3.10', '3.11'])
@pytest.mark.parametrize(
  'place, variables',
  [
    ('home/.pyenv/versions/{}.13/bin', {}),
    ('elsewhere/versions/{}.2/bin', {'PYENV_ROOT': 'elsewhere'}),
    ('home/miniforge3/envs/mine/bin', {}),
    ('home/.local/share/uv/python/cpython-{}.13-linux-x86_64-gnu/bin', {}),
  ],
)
def test_interpreters_off_the_path_are_found(tmp_path, place, variables, version):
  _interpreter(tmp_path / place.format(version) / f'python{version}', f'exec {_REAL} "$@"')
  absolute = {name: str(tmp_path / value) for name, value in variables.items()}
  result = _find(tmp_path, **absolute)
  assert (result.returncode, result.stdout.strip()) == (0, _REAL), result.stderr


def test_the_newer_is_preferred_wherever_it_is(tmp_path):
  _interpreter(tmp_path / 'real' / 'python3.10', 'echo /older')
  _interpreter(tmp_path / 'home/.pyenv/versions/3.11.7/bin/python3.11', 'echo /newer')
  assert _find(tmp_path, tmp_path / 'real').stdout.strip() == '/newer'


def test_without_any_the_ways_to_get_one_are_shown(tmp_path):
  shim = _interpreter(tmp_path / 'shims' / 'python3.11', 'echo "pyenv: no" >&2; exit 127')
  result = _find(tmp_path, tmp_path / 'shims')
  assert result.returncode == 1 and not result.stdout
  assert f'{shim} does not start' in result.stderr
  for way in ('apt install', 'pyenv install', 'conda create', 'uv python install', 'PYTHON='):
    assert way in result.stderr
  assert len(result.stderr.splitlines()) <= 12


@pytest.mark.parametrize(
  'script, reason',
  [
    ('echo "is Python 3.12" >&2; exit 1', 'is Python 3.12'),
    ('echo "has no venv module" >&2; exit 1', 'has no venv module'),
    ('exit 3', 'does not start'),
  ],
)
def test_a_chosen_python_that_cannot_serve_is_refused_with_the_reason(tmp_path, script, reason):
  chosen = _interpreter(tmp_path / 'chosen', script)
  _interpreter(tmp_path / 'real' / 'python3.11', f'exec {_REAL} "$@"')
  result = _find(tmp_path, tmp_path / 'real', PYTHON=str(chosen))
  assert result.returncode == 1 and not result.stdout  # no other interpreter is taken silently
  assert f'PYTHON={chosen}' in result.stderr and reason in result.stderr


def test_a_chosen_python_that_serves_is_taken(tmp_path):
  assert _find(tmp_path, PYTHON=_REAL).stdout.strip() == _REAL


def test_another_version_is_recognised_by_the_probe_itself(tmp_path):
  """The interpreter reports that it is a 3.12."""
  (tmp_path / 'sitecustomize.py').write_text(
    'import sys\nsys.version_info = (3, 12, 1, "final", 0)\n'
  )
  # The script runs it with -I, which would not load sitecustomize.
  other = _interpreter(tmp_path / 'other', f'shift; PYTHONPATH={tmp_path} exec {_REAL} "$@"')
  result = _find(tmp_path, PYTHON=str(other))
  assert result.returncode == 1 and 'is Python 3.12' in result.stderr


def test_of_one_version_no_other_is_taken(tmp_path):
  _interpreter(tmp_path / 'real' / 'python3.11', f'exec {_REAL} "$@"')
  older = _interpreter(tmp_path / 'real' / 'python3.10', 'echo /older')
  assert _find(tmp_path, older.parent, version='3.10').stdout.strip() == '/older'
  older.unlink()
  result = _find(tmp_path, older.parent, version='3.10')
  assert result.returncode == 1 and 'needs Python 3.10, and none was found' in result.stderr
