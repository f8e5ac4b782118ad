"""The output of `seed-acme list`: columns, and the ids of a suite."""

import contextlib
import io

import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import registry
from seed_acme.envs import suite
from seed_acme.programs.tools.reports import list_command


def _shown(**arguments):
  return list_command.show(list_command.ListArguments(**arguments)).text.splitlines()


def _columns(lines):
  """Returns the columns in which a table's texts begin; a single one if it is aligned."""
  found = set()
  for line in lines:
    stripped = line.lstrip()
    name, gap, _ = stripped.partition('  ')
    indent = len(line) - len(stripped)
    if indent == 2 and gap:
      found.add(indent + len(stripped) - len(stripped[len(name) :].lstrip()))
    elif indent > 2:
      found.add(indent)
  return found


class _Terminal(io.StringIO):
  def isatty(self):
    return True


def _tables(lines):
  starts = [number for number, line in enumerate(lines) if line[0] != ' ']
  return [lines[start + 1 : end] for start, end in zip(starts, [*starts[1:], len(lines)])]


def test_a_terminal_shows_columns_that_hold(monkeypatch):
  monkeypatch.setenv('COLUMNS', '90')
  with contextlib.redirect_stdout(_Terminal()):
    lines = _shown()
  of_configs, _, of_environments, _ = _tables(lines)
  assert len(_columns(of_configs)) == len(_columns(of_environments)) == 1
  assert any(line.startswith('  dmlab_lasertag_three_opponents_small  ') for line in of_configs)
  tables = [*of_configs, *of_environments]
  # Addresses, commands and ids are not broken, whatever their length.
  too_long = [line for line in tables if len(line) > 90 and len(line.split()) > 1]
  assert not too_long


def test_a_pipe_gets_a_line_for_each_name():
  lines = _shown()
  of_configs, _, of_environments, _ = _tables(lines)
  assert len(of_environments) == len(registry.SUITES)
  assert len(_columns(of_configs)) == len(_columns(of_environments)) == 1


@pytest.mark.parametrize(
  ('name', 'package', 'some'),
  [
    ('atari', 'ale_py', {'atari:Pong', 'atari:Adventure', 'atari:MontezumaRevenge'}),
    ('dm_control', 'dm_control', {'dm_control:cheetah/run', 'dm_control:acrobot/swingup'}),
    ('envpool', 'envpool', {'envpool:Pong-v5', 'envpool:CartPole-v1'}),
    ('gymnasium', 'gymnasium', {'gymnasium:CartPole-v1'}),
    ('gym', 'gym', {'CartPole-v1'}),
    ('dmlab2d', 'dmlab2d', {'dmlab2d:pushbox'}),
    ('toy', 'numpy', {'toy'}),
  ],
)
def test_ids_of_a_suite(name, package, some):
  pytest.importorskip(package)
  ids = _shown(suite=name)
  assert some <= set(ids) and len(set(ids)) == len(ids)
  registry.check(config_lib.EnvironmentConfig(ids[0]))  # can be used as they are
  record = list_command.show(list_command.ListArguments(suite=name)).record
  assert record == {'suite': name, 'ids': ids}


def test_a_suite_that_is_unknown_or_missing(monkeypatch):
  with pytest.raises(
    types.UserError, match=r"unknown suite 'atarii' \(near: atari\): expected one"
  ):
    list_command.show(list_command.ListArguments(suite='atarii'))
  monkeypatch.setattr(suite, 'is_installed', lambda package: False)
  with pytest.raises(types.UserError, match='needs envpool: .*\n.*list envpool --python=PATH'):
    list_command.show(list_command.ListArguments(suite='envpool'))
