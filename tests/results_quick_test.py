"""scripts/results_quick.py: its commands, its output, and when it fails."""

import pathlib

import pytest

from tests import sources

_ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture(name='script', scope='module')
def _script():
  return sources.script('results_quick')


@pytest.fixture(name='rows')
def _rows(script):
  """Returns two runs of a second, one with too high a bound, and one whose field is no number."""
  short = ('--config.total_steps=1000', '--config.num_actors=1')
  train = lambda least, field: script.trained('catch_vtrace', 1, field, least, *short)
  return (
    train(-1.0, 'episode_return_last_100'),
    train(1.1, 'episode_return_last_100'),
    train(0.0, 'steps_per_s'),
  )


@pytest.mark.slow
def test_what_stays_below_is_named_and_is_a_failure(script, rows, tmp_path, capsys):
  (tmp_path / 'runs' / '01').mkdir(parents=True)  # left by an earlier call
  assert script.main(rows, tmp_path / 'runs') == 1
  lines = capsys.readouterr().out.splitlines()
  assert len(lines) == 4
  assert [line.endswith('BELOW') for line in lines] == [False, True, False, False]
  assert lines[-1].startswith('2 of 3 reach')
  assert script.main(rows[2:], tmp_path / 'runs') == 0


def test_a_command_that_fails_says_why(script, tmp_path):
  row = script.played('nothing_there', 0.0, episodes=1)
  with pytest.raises(SystemExit, match=r'nothing_there, played: error: .*nothing_there'):
    script.repeat(row, tmp_path)


def test_every_row_is_on_the_page(script):
  page = (_ROOT / 'docs' / 'results.md').read_text(encoding='utf-8')
  assert len(script.ROWS) == len({row.name for row in script.ROWS})
  for row in script.ROWS:
    options = [option for option in row.arguments[1:] if not option.startswith(('--l', '--j'))]
    named = [option for option in options if 'seed' not in option and 'episodes' not in option]
    assert all(option in page for option in named), f'{named} is not on the page'
    if row.arguments[0] == 'evaluate':
      assert (_ROOT / row.arguments[1] / 'checkpoints').is_dir(), row.arguments[1]
