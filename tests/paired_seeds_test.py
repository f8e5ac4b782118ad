"""scripts/paired_seeds.py: which row of a log counts, its commands, and when it fails."""

import math

import pytest

from tests import sources


@pytest.fixture(name='script', scope='module')
def _script():
  return sources.script('paired_seeds')


def test_the_first_row_that_reaches_the_goal_counts(script, tmp_path):
  log = tmp_path / 'metrics.csv'
  assert script.steps_to(log, 0.9) == math.inf
  log.write_text('agent_steps,episode/return_last_100\n100,\n200,0.5\n300,0.91\n400,0.4\n500,1\n')
  assert script.steps_to(log, 0.9) == 300
  assert script.steps_to(log, 0.95) == 500
  assert script.steps_to(log, 2) == math.inf


@pytest.mark.parametrize('factor, code', [(0.5, 0), (1.1, 0), (1.2, 1)])
def test_the_medians_of_pairs_decide(script, monkeypatch, capsys, factor, code):
  asked = []

  def run(config, overrides, seed, goal, python=''):
    asked.append((config, tuple(overrides), seed, goal, python))
    return script.Result(1000.0 * seed * (factor if 'b=2' in overrides else 1), True)

  monkeypatch.setattr(script, 'run', run)
  arguments = ['catch_vtrace', '--base', 'a=1', '--other', 'b=2', '--seeds=3', '--goal=0.8']
  arguments += ['--other_python=/other']
  assert script.main(arguments) == code
  pairs = [[(('a=1',), ''), (('a=1', 'b=2'), '/other')]] * 3
  assert asked == [
    ('catch_vtrace', overrides, seed, 0.8, python)
    for seed, pair in enumerate(pairs, start=1)
    for overrides, python in pair
  ]
  assert capsys.readouterr().out.splitlines()[-1].startswith('median | 2,000 |')


def test_a_run_that_does_not_get_there_counts_with_its_budget_and_is_told(script):
  reached, missed = script.Result(50.0, True), script.Result(100.0, False)
  text, is_held = script.describe([reached] * 3 + [missed], [reached] * 3 + [missed], 1.1)
  assert text == 'median | 50 | 50 | 1.00 (1.00 to 1.00), not reached: 1 and 1 of 4' and is_held
  text, is_held = script.describe([reached] * 4, [reached] * 3 + [missed], 1.1)
  assert '1.00 (1.00 to 2.00), not reached: 0 and 1 of 4' in text and not is_held


def test_something_must_be_different(script, capsys):
  with pytest.raises(SystemExit):
    script.main(['catch_vtrace'])
  assert '--other_python' in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_that_cannot_start_is_told(script):
  with pytest.raises(RuntimeError, match='catsh'):
    script.run('catsh', [], 1, 0.9)
