"""The wheel and the sdist: their contents, and that they can be used."""

from importlib import metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
from typing import NamedTuple
import zipfile

from packaging import metadata as metadata_lib
from packaging import requirements
import pytest
from readme_renderer import markdown

from tests import sources

pytestmark = pytest.mark.slow  # packaging_test.py has quick tests of what is packed


class Distributions(NamedTuple):
  """The results of `make wheel` in a copy of the checkout."""

  sdist: pathlib.Path
  wheel: pathlib.Path  # built from the sdist
  of_actors: pathlib.Path  # `seed_acme_actor`


@pytest.fixture(name='distributions', scope='module')
def _distributions(tmp_path_factory):
  folder = tmp_path_factory.mktemp('distributions')
  checkout = folder / 'checkout'
  shutil.copytree(
    sources.ROOT,
    checkout,
    symlinks=True,
    ignore=shutil.ignore_patterns(
      '.*', 'runs', 'dry_runs', 'build', 'dist', 'site', '*.egg-info', '__pycache__'
    ),
  )
  _build(checkout, folder / 'dist')
  (sdist,), (wheel,) = (list((folder / 'dist').glob(f'*.{end}')) for end in ('tar.gz', 'whl'))
  _build(checkout, folder / 'actors', '--wheel', SEED_ACME_DISTRIBUTION='actor')
  (of_actors,) = (folder / 'actors').iterdir()
  return Distributions(sdist, wheel, of_actors)


def _build(checkout, out, *arguments, **variables):
  _run(
    [sys.executable, '-m', 'build', '--no-isolation', '--outdir', out, *arguments, checkout],
    cwd=out.parent,
    **variables,
  )


def _run(command, cwd, **more):
  """Runs a command without access to the checkout; returns its output, which explains a failure."""
  variables = {
    name: value
    for name, value in os.environ.items()
    if name not in ('PYTHONPATH', 'SEED_ACME_REPOSITORY')
  } | more
  result = subprocess.run(
    command, cwd=cwd, env=variables, capture_output=True, text=True, check=False
  )
  assert result.returncode == 0, result.stdout + result.stderr
  return result.stdout


def _package_files():
  """Returns the paths below the package's parent that an installation needs."""
  return {
    path.relative_to(sources.ROOT).as_posix()
    if sources.layer(path) == 'seed_acme'
    else f'seed_acme/{path.relative_to(sources.ROOT).as_posix()}'
    for path in sources.SOURCES
    if sources.layer(path) not in ('tests', 'scripts')
  } | {'seed_acme/py.typed'}


@pytest.mark.processes
def test_the_wheel_holds_the_package_the_licence_and_nothing_else(distributions):
  with zipfile.ZipFile(distributions.wheel) as wheel:
    names = set(wheel.namelist())
  records = {name for name in names if '.dist-info/' in name}
  assert names - records == _package_files()
  assert {name.partition('/')[2] for name in records} == {
    'LICENSE',
    'METADATA',
    'RECORD',
    'WHEEL',
    'entry_points.txt',
    'top_level.txt',
  }


@pytest.mark.processes
def test_the_sdist_holds_files_in_place_of_links_and_no_tests(distributions):
  with tarfile.open(distributions.sdist) as sdist:
    members = {member.name.partition('/')[2]: member for member in sdist if not member.isdir()}
  assert all(member.isfile() for member in members.values()), 'it holds links'
  assert set(members) >= _package_files() | {
    'LICENSE',
    'README.md',
    'CHANGELOG.md',
    'constraints.txt',
    'Makefile',
    'setup.py',
    'pyproject.toml',
    'scripts/setup.sh',
    'scripts/check_installed.py',
    'scripts/launchpad_wheel.py',
    'launchpad_wheel/courier/python/server.py',
  }
  assert {name.split('/')[0] for name in members if '/' in name} == {
    'launchpad_wheel',
    'scripts',
    'seed_acme',
    'seed_acme.egg-info',
  }


@pytest.mark.processes
def test_the_sdist_makes_the_wheel_of_the_checkout(distributions):
  with zipfile.ZipFile(distributions.wheel) as wheel:
    for name in _package_files():
      path = sources.ROOT / name  # through the links to the folders at the root
      assert wheel.read(name) == path.read_bytes(), name


def _metadata(path):
  with zipfile.ZipFile(path) as wheel:
    (name,) = (name for name in wheel.namelist() if name.endswith('/METADATA'))
    return wheel.read(name).decode()


@pytest.mark.processes
def test_the_wheel_of_actors_is_the_same_code_without_tensorflow(distributions):
  contents = []
  for path in (distributions.of_actors, distributions.wheel):
    with zipfile.ZipFile(path) as wheel:
      contents.append(
        {name: wheel.read(name) for name in wheel.namelist() if '.dist-info/' not in name}
      )
  assert contents[0] == contents[1]
  written = _metadata(distributions.of_actors)
  assert re.search(r'^Name: seed[-_]acme[-_]actor$', written, re.MULTILINE)
  assert re.search(r'^Requires-Python: (>=3.10,<3.14|<3.14,>=3.10)$', written, re.MULTILINE)
  needed = re.findall(r'^Requires-Dist: ([\w-]+)', written, re.MULTILINE)
  assert {'numpy', 'grpcio', 'dm-env', 'dm-tree', 'tyro'} <= set(needed)
  assert not [name for name in needed if re.match('tensorflow|dm-reverb|dm-sonnet|dm-launch', name)]
  assert 'Requires-Dist: tensorflow==2.15.1' in _metadata(distributions.wheel)


@pytest.mark.processes
def test_what_is_published_of_the_project_is_valid_and_its_page_renders(distributions):
  with zipfile.ZipFile(distributions.wheel) as wheel:
    (name,) = (name for name in wheel.namelist() if name.endswith('/METADATA'))
    # setuptools before 77 writes this field under a version that lacks it; indexes overlook it.
    written = re.sub(rb'^License-File: .*\n', b'', wheel.read(name), flags=re.MULTILINE)
  published = metadata_lib.Metadata.from_email(written, validate=True)
  assert published.description_content_type == 'text/markdown'
  assert published.keywords and published.project_urls and published.summary
  assert {'Typing :: Typed', 'Programming Language :: Python :: 3.11'} <= set(published.classifiers)
  assert set(published.provides_extra) == {
    name.replace('_', '-') for name in sources.setup().EXTRAS_REQUIRE
  }
  page = markdown.render(published.description)
  assert page and '<h1' in page and '<table>' in page
  assert re.findall(r'(?:href|src)="(?!https?://|#)([^"]*)"', page) == []


def _environment_with(wheel, environment):
  """Makes an environment without the wheel's requirements; returns its site-packages."""
  _run([sys.executable, '-m', 'venv', '--without-pip', environment], cwd=environment.parent)
  python = environment / 'bin' / 'python'
  _run(
    [sys.executable, '-m', 'pip', '--python', python, 'install', '--no-deps', '--no-index', wheel],
    cwd=environment.parent,
  )
  (site_packages,) = environment.glob('lib/python*/site-packages')
  return site_packages


def _with_all_they_need(names):
  """Returns distributions of these names, and their requirements recursively."""
  found = {}
  while names:
    name = names.pop()
    if name not in found:
      found[name] = metadata.distribution(name)
      for line in found[name].requires or ():
        requirement = requirements.Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({'extra': ''}):
          names.append(requirement.name)
  return list(found.values())


@pytest.fixture(name='installed_for_actors', scope='module')
def _installed_for_actors(distributions, tmp_path_factory):
  """Returns bin/ of an environment with the actors' wheel and only its declared requirements."""
  environment = tmp_path_factory.mktemp('installed_for_actors') / 'venv'
  site_packages = _environment_with(distributions.of_actors, environment)
  declared = metadata.Distribution.at(next(site_packages.glob('seed_acme_actor-*.dist-info')))
  lines = [requirements.Requirement(line) for line in declared.requires]
  names = [line.name for line in lines if not line.marker or line.marker.evaluate({'extra': ''})]
  for distribution in _with_all_they_need(names):
    tops = {file.parts[0] for file in distribution.files} - {'..', '__pycache__'}
    for top in tops:
      if not (site_packages / top).exists():
        (site_packages / top).symlink_to(distribution.locate_file(top))
  return environment / 'bin'


# Prints a JSON list of exit code, standard output and standard error of each command.
_EACH = """
import contextlib, io, json, sys
from seed_acme.programs import cli
answers = []
for arguments in json.loads(sys.argv[1]):
  out, errors = io.StringIO(), io.StringIO()
  with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
    try:
      code = cli.main(arguments)
    except SystemExit as end:  # of --help
      code = end.code
  answers.append([code, out.getvalue(), errors.getvalue()])
print(json.dumps(answers))
"""


@pytest.mark.processes
def test_the_distribution_of_actors_says_which_commands_it_has(installed_for_actors, tmp_path):
  refused = [
    *(['train'], ['train', '--help'], ['sweep', '--config=catch_vtrace'], ['plot', 'runs/latest']),
    *(['evaluate', 'run'], ['export', 'run'], ['inspect', '--run_dir=run'], ['bench']),
    *(['manifest', '--config=catch_vtrace'], ['node', 'learner', '--config=catch_vtrace']),
    ['node', 'replay', '--config=catch_vtrace'],
  ]
  served = [['list', '--json'], ['completion', 'bash'], ['plan', '--help']]
  # goes on until it needs something that is missing
  of_node = [['node', 'actor', '--config=catch_vtrace']]
  answers = json.loads(
    _run(
      [installed_for_actors / 'python', '-c', _EACH, json.dumps([*refused, *served, *of_node])],
      cwd=tmp_path,
    )
  )
  for arguments, (code, out, errors) in zip(refused, answers):
    assert (code, out, errors.count('\n')) == (2, '', 1), (arguments, errors)
    assert errors.startswith(f'error: seed-acme {arguments[0]}')
    assert 'where seed_acme is installed' in errors
  for arguments, (code, out, errors) in zip(served, answers[len(refused) :]):
    assert code == 0 and out and not errors, (arguments, out, errors)
  code, _, errors = answers[-1]
  assert code == 2 and 'needs --cluster=FILE' in errors


@pytest.mark.processes
def test_the_doctor_of_a_host_of_actors_asks_for_what_actors_need(installed_for_actors, tmp_path):
  report = json.loads(_run([installed_for_actors / 'seed-acme', 'doctor', '--json'], cwd=tmp_path))
  found = {check['name']: check['state'] for check in report['checks']}
  assert not report['wrong'], report
  assert found['python'] == found['tyro'] == found['import actor_worker'] == 'ok'
  assert found['atari'] == 'warning'
  assert not {'tensorflow', 'dm-launchpad', 'import reverb', 'processor'} & set(found)


@pytest.fixture(name='installed', scope='module')
def _installed(distributions, tmp_path_factory):
  """Returns bin/ of a fresh environment with the wheel, which shares the tests' other packages."""
  environment = tmp_path_factory.mktemp('installed') / 'venv'
  site_packages = _environment_with(distributions.wheel, environment)
  # The wheel comes first, since pip would take the editable installation for it. A folder named in
  # a .pth file does not have its own .pth files read, one of which is that installation.
  needed = pathlib.Path(pytest.__file__).parent.parent
  (site_packages / 'needed.pth').write_text(f'{needed}\n')
  return environment / 'bin'


@pytest.mark.processes
def test_the_wheel_trains_in_an_empty_folder(installed, tmp_path):
  where = _run(
    [installed / 'python', '-c', 'import seed_acme; print(seed_acme.__file__)'], cwd=tmp_path
  )
  assert pathlib.Path(where.strip()).is_relative_to(installed.parent)
  listed = json.loads(_run([installed / 'seed-acme', 'list', '--json'], cwd=tmp_path))
  assert set(listed['configs']) >= {'catch_vtrace', 'pendulum_sac'}
  out = _run(
    [
      installed / 'seed-acme',
      'train',
      '--config=catch_vtrace',
      '--config.total_steps=1000',
      '--config.num_actors=1',
      '--run_dir=run',
    ],
    cwd=tmp_path,
  )
  assert 'Finished: ' in out
  summary = json.loads((tmp_path / 'run' / 'summary.json').read_text())
  assert summary['agent_steps'] >= 1000 and summary['status'] == 'finished'
  assert [path.name for path in tmp_path.iterdir()] == ['run']
