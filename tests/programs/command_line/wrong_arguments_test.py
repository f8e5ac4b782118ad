"""What the command line says of options that it does not know, and of values it cannot read."""

import sys

import pytest
import tyro

import seed_acme
from seed_acme import types
from seed_acme.agents import registry as agents
from seed_acme.configs import registry as configs
from seed_acme.programs import cli
from seed_acme.programs.command_line import wrong_arguments


@pytest.mark.parametrize(
  'arguments, words',
  [
    (['train', '--total_steps=5'], ['--total_steps=5', 'did you mean --config.total_steps\n']),
    (['train', '--config.agent.lr=1'], ['did you mean --config.agent.optimizer.learning_rate\n']),
    (['train', '--gamma=1'], ['did you mean --config.agent.discount\n']),
    (['train', '--env', 'CartPole-v1'], ['did you mean --config.environment.id\n']),
    (['train', '--config.environment=catch'], ['--config.environment.id, ']),
    (['train', 'cartpole_ppo'], ["'cartpole_ppo'", '--config=cartpole_ppo']),
    (['train', '--config=a', '--config=b'], ['--config is given twice']),
    (
      ['train', '--config.environment.settings', 'rows=9'],
      ["not 'rows=9'", 'write --config.environment.settings rows 9\n'],
    ),
    (['train', '--config.environment.settings', 'rows'], ['settings rows VALUE']),
    (['train', '--config.total_steps=1e6'], ['total_steps (1e6)', 'whole number, such as 1000000']),
    (['train', '--config.max_wall_s=long'], ['max_wall_s (long) must be a number']),
    (['train', '--config.network.mlp_sizes=64,32'], ['--config.network.mlp_sizes 64 32\n']),
    (['evaluate', '--run_dir=old'], ['write old without --run_dir']),
    (['inspect', 'old'], ['--run_dir=old']),
    (['node'], ['role', 'learner, replay, actor', 'node learner']),
    (['train', '--launch=local_mt'], ['--launch=local_mt', 'is gone: single_process']),
    (['bench', '--launch=local_mt'], ['is gone: single_process']),
    (['bench', '--seconds=-1'], ['--seconds (-1.0) must be > 0']),
    (['bench', '--seconds=nan'], ['--seconds (nan)']),
    (['bench', '--warmup_seconds=-1'], ['--warmup_seconds (-1.0) must be >= 0']),
  ],
)
def test_the_answer_names_the_value_and_how_it_is_written(capsys, arguments, words):
  assert cli.main(arguments) == 2
  text = capsys.readouterr().err
  assert text.startswith('error: ') and len(text.splitlines()) <= 4
  for word in words:
    assert word in text


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
