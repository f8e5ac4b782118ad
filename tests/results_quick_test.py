"""scripts/results_quick.py: its commands, its output, and when it fails."""

import pathlib

import pytest

from tests import sources

_ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture(name='script', scope='module')
def _script():
  return sources.script('results_quick')


@pytest.mark.slow
def test_a_row_is_trained_anew(script, tmp_path, capsys):
  short = ('--config.total_steps=1000', '--config.num_actors=1')
  row = script.trained('catch_vtrace', 1, 'episode_return_last_100', -1.0, *short)
  (tmp_path / 'runs' / '01').mkdir(parents=True)  # left by an earlier call
  assert script.main((row,), tmp_path / 'runs') == 0
  line, last = capsys.readouterr().out.splitlines()
  assert line.startswith(' 1 of 1  catch_vtrace, seed 1 ') and last.startswith('1 of 1 reach')


def test_what_stays_below_is_named_and_is_a_failure(script, tmp_path, capsys, monkeypatch):
  rows = [script.Row(name, (), 'return', 1.0) for name in ('0.9', '1.0', 'nan')]
  monkeypatch.setattr(script, 'repeat', lambda row, run_dir: float(row.name))
  assert script.main(tuple(rows), tmp_path / 'runs') == 1
  lines = capsys.readouterr().out.splitlines()
  assert [line.endswith('BELOW') for line in lines] == [True, False, True, False]
  assert lines[-1].startswith('1 of 3 reach')


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
