"""Installs into a virtual environment: `python install.py VENV ARGUMENT ...`, as for `pip install`.

uv takes a quarter of pip's CPU time, and it supports most of pip's settings, but it does not read
pip's files, so these are translated. If pip has a setting without an equivalent in uv, if uv is not
available, or if it fails, pip installs instead. Needs the standard library alone.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
import os
import pathlib
import subprocess
import sys

_SECTIONS = ('global', 'install', ':env:')  # sections of pip's settings; later ones take precedence
_OPTIONS = {
  'constraint': ('--constraints', '--build-constraints'),
  'extra-index-url': ('--index',),
  'find-links': ('--find-links',),
  'index-url': ('--default-index',),
  'trusted-host': ('--allow-insecure-host',),
}
_FLAGS = {'no-cache-dir': '--no-cache'}
_VARIABLES = {
  'cert': 'SSL_CERT_FILE',
  'default-timeout': 'UV_HTTP_TIMEOUT',
  'timeout': 'UV_HTTP_TIMEOUT',
}
# Settings for pip's output, and for questions that do not arise in a virtual environment.
_WITHOUT_EFFECT = (
  'break-system-packages',
  'cache-dir',
  'disable-pip-version-check',
  'no-color',
  'no-input',
  'no-python-version-warning',
  'no-warn-script-location',
  'progress-bar',
  'quiet',
  'require-virtualenv',
  'retries',
  'root-user-action',
  'verbose',
)
# Packages that every run loads. They are compiled here, because a user may have set
# PYTHONDONTWRITEBYTECODE, and then each process would compile TensorFlow again. uv compiles either
# nothing or everything, which takes longer than the installation.
_COMPILED = (
  'absl', 'google/protobuf', 'keras', 'launchpad', 'matplotlib', 'numpy', 'reverb', 'sonnet',
  'tensorflow', 'tree', 'tyro',
)  # fmt: skip


def settings(listing: str) -> dict[str, str]:
  """Returns pip's settings for an installation, from the output of `pip config list`."""
  found: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
  for line in listing.splitlines():
    name, is_setting, value = line.partition('=')
    section, _, key = name.rpartition('.')
    if is_setting and section in found:
      found[section][key] = str(ast.literal_eval(value))
  return {key: value for section in _SECTIONS for key, value in found[section].items()}


def for_uv(of_pip: dict[str, str]) -> tuple[list[str], dict[str, str]]:
  """Returns the options and environment variables that give uv the same settings.

  Raises `ValueError` for a setting without an equivalent.
  """
  options: list[str] = []
  variables: dict[str, str] = {}
  for key, value in of_pip.items():
    if key in _OPTIONS:
      options += [
        word for one in value.split() for option in _OPTIONS[key] for word in (option, one)
      ]
    elif key in _FLAGS:
      options += [_FLAGS[key]] if _is_true(value) else []
    elif key in _VARIABLES:
      variables[_VARIABLES[key]] = value
    elif key not in _WITHOUT_EFFECT:
      raise ValueError(f'pip is set to {key}={value}')
  return options, variables


def _is_true(value: str) -> bool:
  return value.lower() in ('1', 'true', 'yes', 'on')


def _run_uv(venv: pathlib.Path, arguments: Sequence[str]) -> str:
  """Tries to install with uv; returns why pip has to do it, or '' after success."""
  python, uv = venv / 'bin' / 'python', venv / 'bin' / 'uv'
  pip = [str(python), '-m', 'pip']
  subprocess.run([*pip, 'install', '--quiet', '--disable-pip-version-check', 'uv'], check=False)
  if not uv.exists():
    return 'uv could not be installed'
  listing = subprocess.run([*pip, 'config', 'list'], stdout=subprocess.PIPE, text=True, check=False)
  try:
    options, variables = for_uv(settings(listing.stdout))
  except (ValueError, SyntaxError) as error:
    return str(error)
  # pip takes the best version from all indexes; by default, uv takes the first index with the
  # package.
  command = [str(uv), 'pip', 'install', '--python', str(python), '--color=never']
  command += ['--no-progress', '--index-strategy=unsafe-best-match', *options, *arguments]
  if subprocess.run(command, env={**os.environ, **variables}, check=False).returncode:
    return 'uv failed'
  compiled = [
    str(folder) for name in _COMPILED for folder in venv.glob(f'lib/*/site-packages/{name}')
  ]
  subprocess.run([str(python), '-m', 'compileall', '-q', '-j', '0', *compiled], check=False)
  return ''


def main(argv: Sequence[str]) -> int:
  venv, arguments = pathlib.Path(argv[0]), argv[1:]
  reason = _run_uv(venv, arguments)
  if not reason:
    return 0
  print(f'pip installs, because {reason}', flush=True)
  command = [str(venv / 'bin' / 'python'), '-m', 'pip', 'install', '--disable-pip-version-check']
  return subprocess.run([*command, '--progress-bar', 'off', *arguments], check=False).returncode


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
