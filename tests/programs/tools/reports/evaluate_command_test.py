"""The output of the command for several runs, and its checks before any is played."""

import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.programs.tools.reports import evaluate_command
from seed_acme.programs.tools.reports import evaluation
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

_RECORD = {
  'environment': 'catch',
  'episodes': 10,
  'greedy': True,
  'checkpoint_agent_steps': 3_000_000,
  'return_mean': 10_330.4,
  'return_standard_error': 1_204.0,
  'return_min': -9.5,
  'return_max': 20_000.0,
  'length_mean': 27_000.0,
  'human_normalized_score': None,
}


@pytest.fixture(name='make_run')
def _make_run(tmp_path, monkeypatch):
  """Returns a function that makes a run folder with a change of its configuration's text; every
  checkpoint is there."""
  monkeypatch.setattr(evaluate_command.opening, 'find_checkpoint', lambda *_: None)

  def make(name, old='', new=''):
    run = run_directory.create(tmp_path / name)
    saved_config.save(registry.load('catch_vtrace'), run.config)
    if old:
      run.config.write_text(run.config.read_text().replace(old, new))
    return str(run.path)

  return make


@pytest.mark.parametrize(
  'old, new, words',
  [
    ('"id": "catch"', '"id": "somebodys:make"', '--trust_run_dir'),
    ('"id": "catch"', '"id": "cathc"', 'unknown environment'),
    ('"seed"', '"seeds"', 'lacks seed'),  # written by another version
  ],
)
def test_a_run_that_cannot_be_played_is_refused_before_any_is(
  make_run, monkeypatch, capsys, old, new, words
):
  monkeypatch.setattr(evaluation, 'evaluate', lambda *_, **__: pytest.fail('it was played'))
  first, second = make_run('first'), make_run('second', old, new)
  assert cli.main(['evaluate', first, second]) == 2
  said = capsys.readouterr()
  assert words in said.err and not said.out


def test_names_in_anothers_run_cannot_control_the_terminal(make_run, monkeypatch, capsys):
  def evaluate(*_, **__):
    raise types.UserError("network.torso ('\x1b[31mmlp\u202e', größe)\tis not known")

  monkeypatch.setattr(evaluation, 'evaluate', evaluate)
  assert cli.main(['evaluate', make_run('run')]) == 2
  assert "network.torso ('\\x1b[31mmlp\\u202e', größe)\t" in capsys.readouterr().err


@pytest.mark.parametrize('more, num_lines', [((), 1), (('--json',), 0)])
def test_a_failure_of_a_later_run_costs_no_result(make_run, monkeypatch, capsys, more, num_lines):
  first, second = make_run('first'), make_run('second')

  def evaluate(run_dir, *_, **__):
    if run_dir == second:
      raise types.Failure('the disk is gone')
    return _RECORD

  monkeypatch.setattr(evaluation, 'evaluate', evaluate)
  assert cli.main(['evaluate', first, second, *more]) == 1
  said = capsys.readouterr()
  lines = said.out.splitlines()
  assert len(lines) == num_lines and 'the disk is gone' in said.err
  assert all(line.startswith(f'{first}: 10 greedy episodes') for line in lines)


def _record(environment, score=0.5):
  return {'environment': environment, 'human_normalized_score': score}


def test_large_returns_are_printed_in_full():
  assert evaluate_command.describe(_RECORD) == (
    '10 greedy episodes of the checkpoint at 3,000,000 steps: return 10,330 +- 1,204 '
    '(standard error), from -9.5 to 20,000, 27,000 steps long'
  )


@pytest.mark.parametrize(
  'environments, said',
  [
    (['atari:Pong', 'atari:Alien'], '2 of 57 games'),
    (['dmlab:rooms_watermaze', 'dmlab:rooms_keys_doors_puzzle'], '2 of 30 levels'),
    (['atari:Pong', 'dmlab:rooms_watermaze'], '2 games and levels'),
  ],
)
def test_what_a_mean_is_over(environments, said):
  records = [*map(_record, environments), _record('catch', None)]
  assert evaluate_command._how_many(records, 2) == said
