"""Installed files, import laws, and a checkout that has lost its links."""

import ast
import re
import shutil
import subprocess
import sys

from packaging import requirements
import pytest
import setuptools

import seed_acme
from tests import sources


def _below(name, package):
  return name == package or name.startswith(package + '.')


def test_the_scan_sees_all_layers():
  assert {sources.layer(path) for path in sources.SOURCES} >= {
    'seed_acme',
    'agents',
    'replay',
    'programs',
  }
  assert len(sources.SOURCES) > 40


def test_every_folder_with_modules_is_a_package_and_is_installed():
  found = set(setuptools.find_packages(str(sources.ROOT), include=['seed_acme', 'seed_acme.*']))
  expected = {
    '.'.join(('seed_acme', *path.parent.relative_to(sources.ROOT).parts)).replace(
      'seed_acme.seed_acme', 'seed_acme'
    )
    for path in sources.SOURCES
    if sources.layer(path) not in ('tests', 'scripts')
  }
  assert found == expected


def test_the_root_folders_are_links_into_the_package():
  for name in sources.LINKED:
    assert (sources.ROOT / 'seed_acme' / name).resolve() == (sources.ROOT / name).resolve()


def test_the_marker_of_typed_packages_is_there():
  assert (sources.ROOT / 'seed_acme' / 'py.typed').is_file()


def test_constraints_fix_every_requirement_within_its_range():
  setup = sources.setup()
  lines = (sources.ROOT / 'constraints.txt').read_text(encoding='utf-8').splitlines()
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
  """Third-party modules that we import are declared, rather than installed by chance."""
  modules = {
    'absl': 'absl-py',
    'dm_env': 'dm-env',
    'tree': 'dm-tree',
    'grpc': 'grpcio',
    'sonnet': 'dm-sonnet',
    'tensorflow': 'tensorflow',
    'reverb': 'dm-reverb',
    'launchpad': 'dm-launchpad',
    'courier': 'dm-launchpad',
    'google': 'google-cloud-aiplatform',
    'yaml': 'pyyaml',
    'mlflow': 'mlflow-skinny',
  }
  setup = sources.setup()
  declared = {
    _normal(requirements.Requirement(line).name)
    for line in [
      *setup.INSTALL_REQUIRES,
      *setup.EXTRAS_REQUIRE['gym'],
      *setup.EXTRAS_REQUIRE['gymnasium'],
      *setup.EXTRAS_REQUIRE['atari'],
      *setup.EXTRAS_REQUIRE['video'],
      *setup.EXTRAS_REQUIRE['metrics'],
      *setup.EXTRAS_REQUIRE['wandb'],
      *setup.EXTRAS_REQUIRE['mlflow'],
      *setup.EXTRAS_REQUIRE['search'],
      *setup.EXTRAS_REQUIRE['vertex'],
    ]
  }
  own = set(sys.stdlib_module_names) | {'seed_acme'}
  assert not sources.offences(
    lambda path, name: (
      sources.layer(path) not in ('tests', 'scripts')
      and (top := name.split('.')[0]) not in own
      and _normal(modules.get(top, top)) not in declared
    )
  )


def test_root_folders_are_imported_through_the_package_only():
  assert not sources.offences(
    lambda path, name: name.split('.')[0] in sources.LINKED or name[0] == '.'
  )


def test_only_replay_imports_reverb_and_only_programs_import_launchpad():
  def is_offence(path, name):
    layer = sources.layer(path)
    if layer in ('tests', 'scripts'):
      return False
    if _below(name, 'courier'):
      return path != sources.ROOT / 'seed_acme' / 'transport' / 'courier_transport.py'
    return (
      _below(name, 'reverb')
      and layer != 'replay'
      or _below(name, 'launchpad')
      and layer != 'programs'
    )

  assert not sources.offences(is_offence)


_FRONT_DOOR = sources.ROOT / 'seed_acme' / '__init__.py'


@pytest.mark.parametrize('damage', ['text file', 'missing'])
def test_a_copy_that_lost_its_links_says_so(tmp_path, damage):
  package = tmp_path / 'seed_acme'
  package.mkdir()
  shutil.copy(_FRONT_DOOR, package)
  for name in sources.LINKED[1:]:
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


def test_the_version_is_written_once_and_can_be_asked_for():
  setup = sources.setup()
  assert seed_acme.__version__ == setup.version()
  newest = re.search(r'^## \[([^\]]+)\]', (sources.ROOT / 'CHANGELOG.md').read_text(), re.MULTILINE)
  assert newest[1] == seed_acme.__version__
  written = f"'{seed_acme.__version__}'"
  assert [
    path for path in [*sources.SOURCES, sources.ROOT / 'setup.py'] if written in path.read_text()
  ] == [sources.ROOT / 'seed_acme' / 'version.py']
  result = subprocess.run(
    [sys.executable, '-m', 'seed_acme.programs.cli', '--version'],
    capture_output=True,
    text=True,
    check=True,
  )
  assert result.stdout == f'seed-acme {seed_acme.__version__}\n'


def test_the_package_lists_its_public_names_without_loading_them():
  code = 'import seed_acme, sys; print(dir(seed_acme)); print("tensorflow" in sys.modules)'
  result = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  names, loaded = map(ast.literal_eval, result.stdout.splitlines())
  assert set(names) == {'__version__', 'version', 'libraries', *seed_acme.__all__} and not loaded


@pytest.mark.parametrize(
  'repository, expected',
  [
    ('', 'A page, . `a[0](x)` [x](https://y.z)'),
    (
      'https://h.org/o/n',
      (
        'A [page](https://h.org/o/n/blob/v{0}/docs/a.md#b), '
        '![p](https://h.org/o/n/raw/v{0}/p.png). `a[0](x)` [x](https://y.z)'
      ),
    ),
  ],
)
def test_links_of_the_readme_on_a_package_index(repository, expected):
  setup = sources.setup()
  text = 'A [page](docs/a.md#b), ![p](p.png). `a[0](x)` [x](https://y.z)'
  assert setup.long_description(text, repository) == expected.format(setup.version())
  assert ('Source' in setup.project_urls(repository)) == bool(repository)
