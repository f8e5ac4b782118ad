"""A launch is a file and a table entry; everything else about launches reads the table."""

import subprocess
import sys

import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs.front_end import from_python
from seed_acme.programs.front_end import launches

_FILE = """
from seed_acme import types
from seed_acme.programs.front_end import launches


class Launch(launches.Launch):
  def refuse(self, layout):
    if layout.num_training > 10:
      raise types.UserError(f'a carrier pigeon takes 10 environments, not {layout.num_training}')

  def start(self, run, layout, supervision):
    print(f'{len(layout.actors)} actors of {run.config.name} fly')
    return launches.Outcome(7, {}, None)
"""
_PROGRAM = """
import sys
from seed_acme.programs.front_end import launches

launches.TABLE['pigeon'] = launches.Entry('their_pigeon', 'actors that fly', is_here=False)

from seed_acme.programs import cli

sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.fixture(name='run')
def _run(tmp_path):
  (tmp_path / 'their_pigeon.py').write_text(_FILE)
  (tmp_path / 'program.py').write_text(_PROGRAM)

  def run(*arguments):
    return subprocess.run(
      [sys.executable, 'program.py', *arguments],
      cwd=tmp_path,
      capture_output=True,
      text=True,
      timeout=120,
      check=False,
    )

  return run


@pytest.mark.slow
def test_a_launch_is_a_file_and_an_entry(run):
  small = ('--config.num_actors=2', '--config.environments_per_actor=5')
  started = run('train', '--launch=pigeon', *small)
  assert started.returncode == 7, started.stderr
  assert started.stdout == '2 actors of catch_vtrace fly\n'
  refused = run('train', '--launch=pigeon')
  assert refused.returncode == 2
  assert refused.stderr == 'error: a carrier pigeon takes 10 environments, not 64\n'
  text = ' '.join(run('train', '--help').stdout.split())
  assert '{local_mp,single_process,auto,vertex_ai,pigeon}' in text
  assert 'pigeon = actors that fly' in text
  assert 'single_process = all in one thread' in text
  completed = run('completion', 'bash', '--line=seed-acme train --launch=p').stdout
  assert completed == '--launch=pigeon\n'
  assert 'pigeon' in run('train', '--launch=dove').stderr


def test_each_has_what_its_entry_says():
  assert launches.choices() == ('local_mp', 'single_process', 'auto', 'vertex_ai')
  assert launches.choices(is_here=True) == ('local_mp', 'single_process', 'auto')
  for name in launches.choices():
    assert isinstance(launches.load(name), launches.Launch)
  assert launches.load('hosts', 'file.json', '3').command == ('hosts', 'file.json', '3')


@pytest.mark.parametrize('launch', ['hosts', 'vertex_ai', 'local_mt', 'threads'])
def test_a_program_is_told_what_it_can_give(launch):
  config = registry.load('catch_vtrace')
  with pytest.raises(types.UserError) as caught:
    from_python.train(config, None, launch, 0, False, None)
  assert 'single_process' in str(caught.value)
