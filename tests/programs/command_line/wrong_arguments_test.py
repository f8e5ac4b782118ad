"""The command line's messages about unknown options and unreadable values."""

import sys

import pytest
import tyro

import seed_acme
from seed_acme import types
from seed_acme.agents import registry as agents
from seed_acme.configs import registry as configs
from seed_acme.programs import cli
from seed_acme.programs.command_line import wrong_arguments

# The mistake, the command line, and what the message must contain: the value, the fix, and a near
# name.
_WRONG = [
  ('unknown flag', 'train --jsno', ['--jsno', 'did you mean --json\n']),
  ('flag of another command', 'plan --run_dir=x', ['unknown option --run_dir=x']),
  ('unknown field', 'train --config.agent.discout=1', ['discout=1', '--config.agent.discount\n']),
  ('field without its group', 'train --total_steps=5', ['=5', '--config.total_steps\n']),
  ("another program's word", 'train --gamma=1', ['--gamma=1', '--config.agent.discount\n']),
  ("another program's word", 'train --env CartPole-v1', ['--env', '--config.environment.id\n']),
  ('initials', 'train --config.agent.lr=1', ['--config.agent.optimizer.learning_rate\n']),
  (
    'a group as a field',
    'train --config.environment=catch',
    ['did you mean --config.environment.id, '],
  ),
  (
    'a field of another agent',
    'train --config=catch_vtrace --config.agent.target_period=5',
    ['target_period=5', 'a field of r2d2 (--config=', ' and sac (--config=pendulum_sac)'],
  ),
  (
    'a record as a field',
    'train --config.agent.optimizer=adam',
    ['--config.agent.optimizer.name, '],
  ),
  (
    'an agent as a field',
    'train --config.agent=sac',
    ['unknown option', 'such as --config=pendulum_sac, or set agent=SACConfig(...)'],
  ),
  ('a method as a field', 'train --config.agent.check=1', ['agent.check=1\nsee: seed-acme train']),
  ('no whole number', 'train --config.total_steps=1e6', ['total_steps (1e6)', 'such as 1000000']),
  ('no number', 'train --config.max_wall_s=long', ['max_wall_s (long) must be a number']),
  ('no choice', 'train --launch=locl', ["'locl'", 'did you mean local_mp?', 'choose one of']),
  (
    'no choice of a field',
    'train --config.network.core=lst',
    ["'lst'", 'mean lstm?', 'none, lstm'],
  ),
  ('neither true nor false', 'train --config.learner.xla=yes', ["'yes'", 'one of True, False']),
  ('a choice that is gone', 'bench --launch=local_mt', ['local_mt', 'is gone: single_process']),
  ('out of bounds', 'train --config.num_actors=0', ['--config.num_actors (0) must be >= 1']),
  ('out of bounds', 'train --config.agent.discount=1.5', ['discount (1.5) must be in [0, 1]']),
  ('out of bounds', 'bench --seconds=-1', ['--seconds (-1.0) must be > 0']),
  ('out of bounds', 'bench --warmup_seconds=-1', ['--warmup_seconds (-1.0) must be >= 0']),
  ('no number at all', 'bench --seconds=nan', ['--seconds (nan)']),
  ('one of several out of bounds', 'train --config.network.mlp_sizes 64 0', ['mlp_sizes[1] (0)']),
  (
    'several with commas',
    'train --config.network.mlp_sizes=64,32',
    ["'64,32'", 'mlp_sizes 64 32\n'],
  ),
  ('several of which one is wrong', 'train --config.network.mlp_sizes 64 x', ["'64 x'", 'INT ...']),
  ('two values', 'train --config.num_actors 2 3', ["'3'", '--config.num_actors takes one value']),
  ('a value of a switch', 'train --json 3', ["'3'", '--json takes no value']),
  ('no value', 'train --run_dir', ['--run_dir needs a value', '--run_dir=VALUE']),
  (
    'pairs with =',
    'train --config.environment.settings rows=9',
    ["not 'rows=9'", 'write --config.environment.settings rows 9\n'],
  ),
  ('half a pair', 'train --config.environment.settings rows', ['settings rows VALUE']),
  (
    'pairs beside settings that the configuration has',
    'train --config=atari_vtrace_small --config.environment.settings life_loss cut',
    ['takes one setting each: write --config.environment.settings.life_loss=cut\n'],
  ),
  ('a name without its flag', 'train cartpole_ppo', ["'cartpole_ppo'", '--config=cartpole_ppo']),
  ('a run without its flag', 'inspect old', ["'old'", '--run_dir=old']),
  ('a flag too many', 'evaluate --run_dir=old', ['write old without --run_dir']),
  ('given twice', 'train --config=a --config=b', ['--config is given twice (a, b)']),
  ('no name', 'train --config', ['--config needs a name', 'seed-acme list']),
  ('something missing', 'node', ['role', 'learner, replay, actor', 'node learner']),
  ("another program's word", 'train --resume=old', ['resumed by --run_dir=old, without --config']),
  ("another program's command", 'resume old', ['seed-acme train --run_dir=RUN']),
  ('no such command', 'trane --json', ["'trane'", 'did you mean train?']),
]


@pytest.mark.parametrize(
  'line, words', [case[1:] for case in _WRONG], ids=[f'{case[0]}: {case[1]}' for case in _WRONG]
)
def test_the_answer_names_the_value_and_how_it_is_mended(
  line, words, tmp_path, monkeypatch, capsys
):
  monkeypatch.chdir(tmp_path)
  assert cli.main(line.split()) == 2
  said = capsys.readouterr()
  assert not said.out and said.err.startswith('error: ') and len(said.err.splitlines()) <= 4
  for word in words:
    assert word in said.err
  assert not list(tmp_path.iterdir())


def test_a_name_that_resembles_none_gets_no_near_ones():
  assert wrong_arguments.near('xyzzy', ['config.seed', 'config.agent.discount']) == []


@pytest.mark.parametrize('lacks', ['module', 'hook'])
def test_where_tyro_has_no_such_hook_it_says_itself_what_is_wrong(lacks, monkeypatch, capsys):
  if lacks == 'module':
    monkeypatch.setitem(sys.modules, 'tyro._errors', None)
  else:
    monkeypatch.delattr(tyro._errors, 'on_parse_error')
  with pytest.raises(SystemExit) as exit_:
    cli.main(['bench', '--seconds=long'])
  said = capsys.readouterr().err
  assert exit_.value.code == 2
  assert '--seconds' in said and "'long'" in said and not said.startswith('error: ')


def test_the_list_has_the_registered_agents(capsys, monkeypatch):
  monkeypatch.setitem(agents.AGENTS, 'unused', 'nowhere')
  assert cli.main(['list']) == 0
  assert f'\n  {", ".join(sorted(agents.AGENTS))}\n' in capsys.readouterr().out


@pytest.mark.parametrize(
  'arguments', [['node', 'learner', '--config=catch_vtrace', '--cluster=hosts.json'], ['train']]
)
def test_restarts_cannot_be_negative(tmp_path, monkeypatch, capsys, arguments):
  monkeypatch.chdir(tmp_path)
  assert cli.main([*arguments, '--max_restarts=-1']) == 2
  assert capsys.readouterr().err == 'error: --max_restarts (-1) must be >= 0\n'
  assert not list(tmp_path.iterdir())


def test_restarts_cannot_be_negative_in_python_either(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(types.UserError, match=r'max_restarts \(-1\) must be >= 0'):
    seed_acme.train(configs.load('catch_vtrace'), max_restarts=-1, progress=False)
  assert not list(tmp_path.iterdir())
