"""Numbers in README.md and docs/results.md are those of the runs in docs/evidence."""

import json
import re

import numpy as np
import pytest

from seed_acme.loggers import csv_file
from tests import pages

_EVIDENCE = pages.ROOT / 'docs' / 'evidence'
_README = (pages.ROOT / 'README.md').read_text(encoding='utf-8')
_RESULTS = (pages.ROOT / 'docs' / 'results.md').read_text(encoding='utf-8')
_T_OF_4 = 2.776  # two-sided 95 % quantile of Student's t with 4 degrees of freedom
_NUMBER = r'-?\d+(?:,\d{3})*(?:\.\d+)?'

# Row of the table in docs/results.md, by agent and game -> the folder of its runs, or several.
_ROWS = {
  ('V-trace, Nature CNN', 'Pong, 6 actions'): (
    'pong_vtrace',
    'pong_vtrace_seed2',
    'pong_vtrace_seed3',
  ),
  ('V-trace, published IMPALA (`atari_impala_small`)', 'Pong, 6 actions'): 'pong_impala',
  ('V-trace, Nature CNN', 'Breakout, 4 actions'): 'breakout_vtrace',
  ('V-trace, Nature CNN', 'Space Invaders, 6 actions'): 'space_invaders_vtrace',
  ('V-trace, Nature CNN', 'Qbert, 6 actions'): 'qbert_vtrace',
  ('R2D2, LSTM', 'Pong, 6 actions'): ('pong_r2d2', 'pong_r2d2_seed2'),
  ('R2D2, LSTM', 'Boxing, sticky actions'): ('boxing_r2d2', 'boxing_r2d2_seed2'),
  ('R2D2, LSTM', 'Breakout, sticky actions'): 'breakout_r2d2',
  ('SAC', 'HalfCheetah-v4'): 'halfcheetah_sac',
  ('PPO (`mujoco_ppo`)', 'HalfCheetah-v4'): 'mujoco_ppo_halfcheetah',
  ('PPO (`mujoco_ppo`)', 'Hopper-v4'): 'mujoco_ppo_hopper',
  ('PPO (`mujoco_ppo`)', 'Walker2d-v4'): 'mujoco_ppo_walker2d',
  ('PPO', 'Pong, 6 actions'): 'pong_ppo',
  ('V-trace, Nature CNN', "Football, empty goal, envpool's build"): 'football_academy_envpool',
  ('V-trace, Nature CNN', 'Football, empty goal, real engine'): 'football_academy',
}
# Agent and environment of a row of README's table -> the folders of its runs.
_README_ROWS = {
  (
    'V-trace (IMPALA)',
    'Pong, 2 million steps; Breakout, 3.5 million; Space Invaders and Qbert, 2.5 million',
  ): (
    'pong_vtrace',
    'pong_vtrace_seed2',
    'pong_vtrace_seed3',
    'breakout_vtrace',
    'space_invaders_vtrace',
    'qbert_vtrace',
  ),
  ('V-trace, one pass (`atari_impala_small`)', 'Pong, 5 million steps'): ('pong_impala',),
  (
    'R2D2',
    'Pong and Boxing, 2.5 million steps; Breakout, 6 million; the last two with sticky actions',
  ): ('pong_r2d2', 'pong_r2d2_seed2', 'boxing_r2d2', 'boxing_r2d2_seed2', 'breakout_r2d2'),
  ('PPO', 'Pong, 2 million steps'): ('pong_ppo',),
}


def _summaries(folders):
  """Returns the summaries of the runs in a folder, or in several, in the order of their seeds."""
  paths = []
  for folder in [folders] if isinstance(folders, str) else folders:
    found = sorted((_EVIDENCE / folder).rglob('summary.json'))
    assert found, folder
    paths += found
  return [json.loads(path.read_text()) for path in paths]


def _return(summary):
  """Returns the return that is quoted first: of evaluation, if the run evaluates.

  In one process the evaluation environments play so few episodes that the last 100 are those of the
  whole run.
  """
  evaluated = summary['evaluation_return']
  is_of_one_process = set(summary['cpu_s']) == {'launcher'}
  return summary['episode_return_last_100'] if evaluated is None or is_of_one_process else evaluated


def _rows(text):
  """Returns the cells of each row of a page's tables, by the first two."""
  lines = (line for line in text.splitlines() if line.startswith('| '))
  cells = [[cell.strip() for cell in line.strip('|').split('|')] for line in lines]
  return {tuple(row[:2]): row for row in cells}


def _numbers(text):
  return [float(number.replace(',', '')) for number in re.findall(_NUMBER, text)]


def _is_rounded(quoted, value):
  """Whether `quoted`, as a page has it, is `value` with that number of decimals."""
  decimals = len(quoted.partition('.')[2])
  # half a unit, and half a hundredth by which summaries are rounded themselves
  return abs(float(quoted.replace(',', '')) - value) <= 0.5 * 10**-decimals + 0.005


def _seeds(text):
  """Returns the seeds of `1`, `1, 2, 3` or `1 to 5`, with which a row may have run twice."""
  numbers = [int(number) for number in _numbers(text)]
  return list(range(numbers[0], numbers[1] + 1)) if ' to ' in text else numbers


def _steps(text):
  """Returns the number of steps in `6 M`, `0.5 M` or `150,000`."""
  [number] = _numbers(text)
  return number * (1e6 if text.endswith('M') else 1)


@pytest.mark.parametrize(('row', 'folders'), _ROWS.items(), ids=str)
def test_a_row_of_the_table_quotes_its_runs(row, folders):
  _, _, steps, seeds, here, _ = _rows(_RESULTS)[row]
  runs = _summaries(folders)
  quoted = re.findall(_NUMBER, here)
  assert len(quoted) >= len(runs)
  for number, run in zip(quoted, runs):
    assert _is_rounded(number, _return(run)), (here, run['seed'])
    assert 0 <= run['agent_steps'] - _steps(steps) < 0.01 * _steps(steps)
  assert [run['seed'] for run in runs] == _seeds(seeds)


@pytest.mark.parametrize(('row', 'folders'), _README_ROWS.items())
def test_a_row_of_the_readme_quotes_its_runs(row, folders):
  here = _rows(_README)[row][2]
  quoted = re.findall(_NUMBER, re.sub(r'\(\[.*?\]\(.*?\)\)', '', here))
  assert len(quoted) >= len(folders)
  for number, folder in zip(quoted, folders):
    [run] = _summaries(folder)
    assert _is_rounded(number, _return(run)), (here, folder)


def test_the_readme_quotes_means_over_seeds():
  rows = _rows(_README)
  sac = rows['SAC', 'HalfCheetah-v4, 500,000 steps'][2]
  assert _is_rounded(re.findall(_NUMBER, sac)[0], np.mean(_returns('halfcheetah_sac')))
  ppo = rows['PPO', 'HalfCheetah, Walker2d, Hopper, 1 million steps'][2]
  quoted = re.findall(rf'({_NUMBER}) ± ({_NUMBER})', ppo)
  tasks = ('halfcheetah', 'walker2d', 'hopper')
  assert quoted[:3] == [_mean_and_interval(f'mujoco_ppo_{task}') for task in tasks]


def test_the_page_quotes_means_and_intervals_over_seeds():
  for task in ('HalfCheetah', 'Hopper', 'Walker2d'):
    row = _rows(_RESULTS)[f'{task}-v4', '1 to 5']
    assert row[3] == '{} ± {}'.format(*_mean_and_interval(f'mujoco_ppo_{task.lower()}'))


def test_the_mean_of_the_seeds_of_pong_is_quoted():
  [quoted] = re.findall(rf'mean of the three seeds is ({_NUMBER})', ' '.join(_RESULTS.split()))
  found = _returns(_ROWS['V-trace, Nature CNN', 'Pong, 6 actions'])
  assert len(found) == 3 and _is_rounded(quoted, np.mean(found))


def _returns(folder):
  return [_return(run) for run in _summaries(folder)]


def _mean_and_interval(folder):
  returns = _returns(folder)
  interval = _T_OF_4 * np.std(returns, ddof=1) / np.sqrt(len(returns))
  return f'{np.mean(returns):,.0f}', f'{interval:,.0f}'


def _return_at(run, at):
  """Returns the mean return of the last 100 episodes after `at` agent steps."""
  curve = csv_file.read(run / 'metrics.csv')
  steps, returns = (np.array(curve[x]) for x in ('agent_steps', 'episode/return_last_100'))
  return returns[(steps <= at) & ~np.isnan(returns)][-1]


# Row of the table of single changes -> the folder of its run.
_CHANGES = {
  'none: four passes, KL term of weight 1, linear decay': 'four_passes',
  'eight passes': 'eight_passes',
  "PPO's clipped ratio instead of the KL term": 'clipped_ratio',
  'KL term of weight 3': 'kl_weight_3',
  'constant learning rate': 'constant_rate',
  'PPO (`atari_ppo_small`) with the orthogonal torso': 'ppo_orthogonal',
}


@pytest.mark.parametrize(('change', 'folder'), _CHANGES.items())
def test_a_row_of_single_changes_quotes_its_curve(change, folder):
  [quoted] = [row[1:] for row in _rows(_RESULTS).values() if row[0] == change]
  path = _EVIDENCE / 'pong_changes' / folder / 'metrics.csv'
  curve = {name: np.array(column) for name, column in csv_file.read(path).items()}
  steps = curve['agent_steps']

  def mean_error(until):
    inside = (steps >= 0.9 * until) & (steps <= until)
    return np.nanmean(curve['value/squared_error'][inside])

  found = [*map(mean_error, (1e5, 3e5)), *(_return_at(path.parent, at) for at in (2e5, 3e5))]
  assert len(quoted) == len(found)
  for text, value in zip(quoted, found):
    assert f'{value:.{len(text.strip("*").partition(".")[2])}f}' == text.strip('*'), found


def test_the_orthogonal_torso_of_r2d2_is_quoted_beside_the_default():
  quoted = re.search(
    rf'had returned ({_NUMBER}) in training after 0.7 million steps, '
    rf'where seed 1 .*? had ({_NUMBER})\.',
    ' '.join(_RESULTS.split()),
  )
  assert quoted
  for folder, text in zip(('pong_changes/r2d2_orthogonal', 'pong_r2d2'), quoted.groups()):
    assert f'{_return_at(_EVIDENCE / folder, 7e5):.1f}' == text, folder


# Steps of the columns, and row of a table of changes -> the folder of its run: learning rates on
# Space Invaders, and R2D2's values on Breakout.
_RATES_AT, _VALUES_AT = (2e5, 4e5, 6e5, 8e5), (1e5, 3e5, 5e5, 7e5)
_CURVES = {
  (_RATES_AT, '4e-4, falling to 0'): 'space_invaders_vtrace',
  (_RATES_AT, '4e-4, constant'): 'space_invaders_changes/constant_rate',
  (_RATES_AT, '2.5e-4, falling to 0'): 'space_invaders_changes/lower_rate',
  (_VALUES_AT, 'over the whole game'): 'breakout_r2d2',
  (_VALUES_AT, 'to the end of a life'): 'breakout_changes/r2d2_life_loss',
}


@pytest.mark.parametrize(('row', 'folder'), _CURVES.items())
def test_a_row_of_changes_quotes_its_curve(row, folder):
  columns, name = row
  [quoted] = [row[1:] for row in _rows(_RESULTS).values() if row[0] == name]
  for at, text in zip(columns, quoted):
    assert _is_rounded(text, _return_at(_EVIDENCE / folder, at)), at
  if quoted[4]:
    [run] = _summaries(folder)
    assert _is_rounded(quoted[4], run['agent_steps'] / run['steps_per_cpu_s'])


_IMPALA = {
  'bytes, as in RLlib': 'pong_impala',
  'bytes, orthogonal torso, resumed to 6 M': 'pong_impala_orthogonal',
  'bytes divided by 255': 'pong_changes/impala_divided_bytes',
  'bytes divided by 255, orthogonal torso, to 6 M': 'pong_changes/impala_orthogonal_divided',
}


@pytest.mark.parametrize(('name', 'folder'), _IMPALA.items())
def test_a_run_of_the_published_impala_is_quoted(name, folder):
  [row] = [row for row in _rows(_RESULTS).values() if row[0] == name]
  [run] = _summaries(folder)
  rate = run['steps_per_cpu_s']
  found = (run['episode_return_last_100'], run['agent_steps'], run['agent_steps'] / rate, rate)
  for text, value in zip(row[1:5], found):
    assert _is_rounded(text, value), (text, value)


_SECTIONS = [
  (section, re.findall(r'\]\(evidence/(\w+)\)', section))
  for section in re.split(r'^## ', _RESULTS, flags=re.MULTILINE)
]


@pytest.mark.parametrize('folder', ('pong_vtrace', 'pong_r2d2', 'boxing_r2d2', 'breakout_r2d2'))
def test_the_prose_quotes_steps_updates_time_and_cpu_seconds(folder):
  [section] = [section for section, folders in _SECTIONS if folder in folders]
  text, [run] = ' '.join(section.split()), _summaries(folder)
  cpu_s = run['agent_steps'] / run['steps_per_cpu_s']
  for expected in (
    f'The run made {run["agent_steps"]:,} steps',
    f'and {run["updates"]:,} updates in {run["wall_s"] / 60:.0f} minutes',
    f'{cpu_s:,.0f} CPU-seconds',
  ):
    assert expected in text, expected
  frames = re.search(r'\(([\d.]+) million frames\)', text)
  assert _is_rounded(frames[1], run['frames'] / 1e6)
