"""`seed-acme actor-env`: what it refuses, and that an environment is made, and completed."""

import sys

import pytest

from seed_acme import types
from seed_acme.envs.interpreters import packages
from seed_acme.programs.actor_environment import command


def test_an_unknown_extra_names_near_ones(tmp_path):
  arguments = command.ActorEnvArguments(str(tmp_path / 'new'), extras=('envpol',))
  with pytest.raises(types.UserError, match='did you mean envpool'):
    command.make(arguments)
  assert not (tmp_path / 'new').exists()


def test_a_folder_with_other_things_is_left_alone(tmp_path):
  (tmp_path / 'thesis.txt').write_text('precious')
  with pytest.raises(types.UserError, match='is no virtual environment'):
    command.make(command.ActorEnvArguments(str(tmp_path)))
  assert (tmp_path / 'thesis.txt').read_text() == 'precious'


@pytest.mark.slow
def test_a_failure_of_pip_is_told_with_its_last_words(tmp_path, capsys):
  arguments = command.ActorEnvArguments(
    str(tmp_path / 'new'), python=sys.executable, packages=('no-such-package-of-seed-acme',)
  )
  with pytest.raises(types.Failure, match='pip could not install .*no-such-package-of-seed-acme'):
    command.make(arguments)
  assert 'no-such-package-of-seed-acme' in capsys.readouterr().err


def test_each_extra_is_a_list_of_requirements():
  from packaging import requirements

  for lines in [packages.REQUIRES, packages.CONSTRAINTS, *packages.EXTRAS.values()]:
    for line in lines:
      requirements.Requirement(line)


def test_what_is_given_with_a_version_is_not_held_to_another():
  kept = command.constraints_beside(['NumPy==1.23.5', 'dm-env', './wheels/own.whl'])
  assert not [line for line in kept if line.startswith('numpy')]
  assert 'dm-env==1.6' in kept and kept != packages.CONSTRAINTS
  assert command.constraints_beside([]) == packages.CONSTRAINTS


def test_the_constraints_agree_with_the_requirements():
  from packaging import requirements

  wanted = [packages.REQUIRES, *packages.EXTRAS.values()]
  bounds = {r.name: r.specifier for lines in wanted for r in map(requirements.Requirement, lines)}
  for line in packages.CONSTRAINTS:
    pin = requirements.Requirement(line)
    [version] = [s.version for s in pin.specifier]
    if pin.name in bounds:
      assert bounds[pin.name].contains(version), line
