"""What is installed, what may import what, and a checkout that lost its links."""

import ast
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys

from packaging import requirements
import pytest
import setuptools

_ROOT = pathlib.Path(__file__).parent.parent
_LINKED = ('agents', 'configs', 'programs', 'replay')
_SOURCES = sorted(
  path
  for folder in ('seed_acme', *_LINKED, 'tests', 'scripts')
  for path in (_ROOT / folder).rglob('*.py')
  if not (
    path.relative_to(_ROOT).parts[0] == 'seed_acme' and path.relative_to(_ROOT).parts[1] in _LINKED
  )
)


def _setup():
  spec = importlib.util.spec_from_file_location('seed_acme_setup', _ROOT / 'setup.py')
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def _imports(path):
  """(line, dotted name) of every import; `from a import b` counts as `a.b`."""
  for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
    if isinstance(node, ast.Import):
      for alias in node.names:
        yield node.lineno, alias.name
    elif isinstance(node, ast.ImportFrom):
      for alias in node.names:
        yield node.lineno, f'{"." * node.level}{node.module or ""}.{alias.name}'


def _layer(path):
  """`seed_acme`, `agents`, ... or `tests`."""
  return path.relative_to(_ROOT).parts[0]


def _offences(is_offence):
  return [
    f'{path.relative_to(_ROOT)}:{line} imports {name}'
    for path in _SOURCES
    for line, name in _imports(path)
    if is_offence(path, name)
  ]


def _below(name, package):
  return name == package or name.startswith(package + '.')


def test_the_scan_sees_all_layers():
  assert {_layer(path) for path in _SOURCES} >= {'seed_acme', 'agents', 'replay', 'programs'}
  assert len(_SOURCES) > 40


def test_every_folder_with_modules_is_a_package_and_is_installed():
  found = set(setuptools.find_packages(str(_ROOT), include=['seed_acme', 'seed_acme.*']))
  expected = {
    '.'.join(('seed_acme', *path.parent.relative_to(_ROOT).parts)).replace(
      'seed_acme.seed_acme', 'seed_acme'
    )
    for path in _SOURCES
    if _layer(path) not in ('tests', 'scripts')
  }
  assert found == expected


def test_the_root_folders_are_links_into_the_package():
  for name in _LINKED:
    assert (_ROOT / 'seed_acme' / name).resolve() == (_ROOT / name).resolve()


def test_the_marker_of_typed_packages_is_there():
  assert (_ROOT / 'seed_acme' / 'py.typed').is_file()


def test_constraints_fix_every_requirement_within_its_range():
  setup = _setup()
  lines = (_ROOT / 'constraints.txt').read_text(encoding='utf-8').splitlines()
  pinned = [requirements.Requirement(line) for line in lines if line and line[0] != '#']
  versions = {_normal(pin.name): next(iter(pin.specifier)) for pin in pinned}
  assert len(versions) == len(pinned), 'a package is listed twice'
  assert all(specifier.operator == '==' for specifier in versions.values())
  for line in [*setup.INSTALL_REQUIRES, *sum(setup.EXTRAS_REQUIRE.values(), [])]:
    requirement = requirements.Requirement(line)
    assert _normal(requirement.name) in versions, f'{line} is not in constraints.txt'
    version = versions[_normal(requirement.name)].version
    assert requirement.specifier.contains(version), f'{line}, but constraints.txt has {version}'


def _normal(name):
  return re.sub(r'[-_.]+', '-', name).lower()


def test_what_the_package_imports_is_declared():
  """Third-party modules that we import come with the install, not by chance."""
  modules = {
    'absl': 'absl-py',
    'dm_env': 'dm-env',
    'tree': 'dm-tree',
    'grpc': 'grpcio',
    'sonnet': 'dm-sonnet',
    'tensorflow': 'tensorflow-cpu',
    'reverb': 'dm-reverb',
    'launchpad': 'dm-launchpad',
    'courier': 'dm-launchpad',
    'google': 'google-cloud-aiplatform',
    'yaml': 'pyyaml',
  }
  setup = _setup()
  declared = {
    _normal(requirements.Requirement(line).name)
    for line in [
      *setup.INSTALL_REQUIRES,
      *setup.EXTRAS_REQUIRE['gym'],
      *setup.EXTRAS_REQUIRE['gymnasium'],
      *setup.EXTRAS_REQUIRE['atari'],
      *setup.EXTRAS_REQUIRE['video'],
      *setup.EXTRAS_REQUIRE['vertex'],
    ]
  }
  own = set(sys.stdlib_module_names) | {'seed_acme'}
  assert not _offences(
    lambda path, name: (
      _layer(path) not in ('tests', 'scripts')
      and (top := name.split('.')[0]) not in own
      and _normal(modules.get(top, top)) not in declared
    )
  )


def test_root_folders_are_imported_through_the_package_only():
  assert not _offences(lambda path, name: name.split('.')[0] in _LINKED or name[0] == '.')


def test_only_replay_imports_reverb_and_only_programs_import_launchpad():
  def is_offence(path, name):
    layer = _layer(path)
    if layer in ('tests', 'scripts'):
      return False
    if _below(name, 'courier'):
      return path != _ROOT / 'seed_acme' / 'inference' / 'courier_transport.py'
    return (
      _below(name, 'reverb')
      and layer != 'replay'
      or _below(name, 'launchpad')
      and layer != 'programs'
    )

  assert not _offences(is_offence)


# The package's own front door hands out what people want from Python, and imports it late.
_FRONT_DOOR = _ROOT / 'seed_acme' / '__init__.py'
_FORBIDDEN = {
  'seed_acme': ('agents', 'replay', 'programs', 'configs'),
  'agents': ('replay', 'programs', 'configs'),
  'replay': ('programs', 'configs'),
  'configs': ('replay', 'programs'),
}


@pytest.mark.parametrize('layer', sorted(_FORBIDDEN))
def test_imports_run_one_way(layer):
  assert not _offences(
    lambda path, name: (
      _layer(path) == layer
      and path != _FRONT_DOOR
      and any(_below(name, f'seed_acme.{other}') for other in _FORBIDDEN[layer])
    )
  )


def test_no_file_and_no_function_has_grown_out_of_hand():
  """Aims are 300 and 45 lines; these are the bounds at which a split is due."""
  long_files, long_functions = [], []
  for path in _SOURCES:
    text = path.read_text(encoding='utf-8')
    if _layer(path) not in ('tests', 'scripts') and len(text.splitlines()) > 330:
      long_files.append(f'{path.relative_to(_ROOT)}: {len(text.splitlines())} lines')
    for node in ast.walk(ast.parse(text)):
      if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > 80:
          long_functions.append(f'{path.relative_to(_ROOT)}:{node.name}: {length} lines')
  assert not long_files and not long_functions


@pytest.mark.parametrize('damage', ['text file', 'missing'])
def test_a_copy_that_lost_its_links_says_so(tmp_path, damage):
  package = tmp_path / 'seed_acme'
  package.mkdir()
  shutil.copy(_FRONT_DOOR, package)
  for name in _LINKED[1:]:
    (package / name).mkdir()
  if damage == 'text file':
    (package / 'agents').write_text('../agents')
  result = subprocess.run(
    [sys.executable, '-c', 'import seed_acme'],
    cwd=tmp_path,
    capture_output=True,
    text=True,
    check=False,
  )
  assert result.returncode == 1
  assert 'symbolic link' in result.stderr and 'git' in result.stderr
