"""Tables, figures and states of sweeps, from made-up run folders."""

import csv
import json

import numpy as np
import pytest
from scipy import stats

from seed_acme.configs import registry
from seed_acme.envs import experiment_environments as environments
from seed_acme.files import local
from seed_acme.loggers import csv_file
from seed_acme.programs import cli
from seed_acme.programs.system import processes
from seed_acme.programs.tools.reports import sweep_plot
from seed_acme.programs.tools.sweep import figures as sweep_figures
from seed_acme.programs.tools.sweep import grid as sweep_grid
from seed_acme.programs.tools.sweep import output as sweep_output
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import results as sweep_results
from seed_acme.programs.tools.sweep import saved_plan
from seed_acme.programs.tools.sweep import schedule as sweep_schedule
from seed_acme.programs.tools.sweep import state as sweep_state
from seed_acme.programs.trial import door
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

pytestmark = pytest.mark.slow

_BASE = registry.load('catch_vtrace')
_STEPS = _BASE.total_steps
_GRID = {'agent.lambda_': (0.9, 0.95), 'network.mlp_sizes': ((64, 64), (8,))}


def _finish(run, mean_return, evaluation_return=None, status='finished', agent_steps=_STEPS):
  """Writes the files of a finished run."""
  run_directory.create(run.run_dir.path)
  saved_config.save(run.config, run.run_dir.config)
  record = {
    'status': status,
    'agent_steps': agent_steps,
    'episodes': 300,
    'wall_s': 30.0,
    'episode_return_last_100': mean_return,
    'evaluation_return': evaluation_return,
  }
  local.write_json(run.run_dir.status, record)
  local.write_json(run.run_dir.summary, {**record, 'cpu_s': {'launcher': 9.0, 'a': 1.0}})
  logger = csv_file.CsvLogger(run.run_dir.metrics)
  for row in range(20 if mean_return is not None else 0):
    logger.write(row * 1000, {'wall_s': float(row), 'episode/return': mean_return + row / 20})
  logger.close()


@pytest.fixture(name='plan', scope='module')
def _plan():
  return sweep_plan.make(_BASE, [_GRID], 3)


def _read(plan, out, failures=None):
  return sweep_results.read(plan, out, failures or {})


def _csv(path):
  with open(path, newline='') as file:
    return list(csv.DictReader(file))


def test_the_table_has_the_statistics_of_each_combination_best_first(plan, tmp_path):
  returns = {}
  for i, run in enumerate(plan.runs(tmp_path)):
    value = [0.1, 0.5, 0.3, 0.7][i % 4] + 0.01 * (i // 4) ** 2
    returns.setdefault(run.combination.slug, []).append(value)
    _finish(run, value, evaluation_return=2 * value)
  sweep_results.write_tables(_read(plan, tmp_path))
  table = _csv(tmp_path / 'table.csv')
  assert [(row['agent.lambda_'], row['network.mlp_sizes']) for row in table] == [
    ('0.95', '[8]'),
    ('0.9', '[8]'),
    ('0.95', '[64,64]'),
    ('0.9', '[64,64]'),
  ]
  for row in table:
    values = np.array(returns[row['folder']])
    low, high = stats.t.interval(0.95, 2, loc=values.mean(), scale=stats.sem(values))
    found = {
      name: float(row[f'return_{name}']) for name in ('mean', 'low', 'high', 'median', 'min', 'max')
    }
    assert found == pytest.approx(
      {
        'mean': values.mean(),
        'low': low,
        'high': high,
        'median': np.median(values),
        'min': values.min(),
        'max': values.max(),
      }
    )
    assert float(row['evaluation_return_mean']) == pytest.approx(2 * values.mean())
    assert (row['seeds'], row['agent_steps'], row['cpu_s']) == ('3', str(_STEPS), '10')
  page = (tmp_path / 'table.md').read_text()
  assert '12 of 12 runs finished' in page and 'Student t' in page
  assert len({len(line) for line in page.splitlines() if line.startswith('|')}) == 1


def test_only_finished_runs_count_and_the_others_are_told(plan, tmp_path):
  runs = plan.runs(tmp_path)
  _finish(runs[0], 0.5)
  _finish(runs[4], None)  # the same combination, in which no episode has ended
  _finish(runs[1], 0.9, status='stopped', agent_steps=_STEPS // 2)
  _finish(runs[2], 0.9, status='failed', agent_steps=10)
  processes.report_failure(runs[2].run_dir, 'learner/0', 'no\nroom', 'learner/0')
  results = _read(plan, tmp_path, {runs[3].run_dir.path: 'the port is taken'})
  sweep_results.write_tables(results)
  assert sweep_results.describe_count(results) == (
    '2 of 12 runs finished, 1 unfinished, 2 failed, 7 waiting'
  )
  table = _csv(tmp_path / 'table.csv')
  assert [(row['seeds'], row['return_mean'], row['return_low']) for row in table] == [
    ('2', '0.5', ''),
    *[('0', '', '')] * 3,
  ]
  assert 'evaluation_return_mean' not in table[0]
  by_dir = {row['run_dir']: row for row in _csv(tmp_path / 'runs.csv')}
  assert len(by_dir) == 12
  assert {(row['status'], row['message']) for row in by_dir.values()} == {
    ('finished', ''),
    ('unfinished', ''),
    ('waiting', ''),
    ('failed', 'no\nroom'),
    ('failed', 'the port is taken'),
  }
  stopped = by_dir['lambda_=0.9,mlp_sizes=8/seed_1']
  assert (stopped['agent_steps'], stopped['cpu_s']) == (str(_STEPS // 2), '10')
  assert 'seed 1: no room' in (tmp_path / 'table.md').read_text()


def _state(plan, out):
  return sweep_state.read(plan.runs(out)[0])


def test_a_run_whose_budget_was_raised_is_no_longer_finished(tmp_path):
  base = sweep_grid.replace(_BASE, 'agent.optimizer.schedule', 'constant')
  plan = sweep_plan.make(base, [_GRID], 3)
  _finish(plan.runs(tmp_path)[0], 0.5)
  assert _state(plan, tmp_path).status == sweep_state.FINISHED
  longer = sweep_plan.make(
    sweep_grid.replace(base, 'total_steps', 4 * _STEPS), plan.products(), 3, plan
  )
  assert _state(longer, tmp_path)[:2] == (sweep_state.UNFINISHED, 0.25)
  limited = sweep_plan.make(
    sweep_grid.replace(longer.base, 'max_wall_s', 20.0), plan.products(), 3, plan
  )
  assert _state(limited, tmp_path).status == sweep_state.FINISHED


def test_figures_of_what_is_there(plan, tmp_path):
  runs = plan.runs(tmp_path)
  assert sweep_figures.write(_read(plan, tmp_path), pytest.fail) == []
  _finish(runs[0], None)
  assert sweep_figures.write(_read(plan, tmp_path), pytest.fail) == []
  for i, run in enumerate(runs[1:5]):
    _finish(run, 0.1 * i)
  written = sweep_figures.write(_read(plan, tmp_path), pytest.fail)
  assert written == [tmp_path / 'curves.png', tmp_path / 'settings.png']
  assert all(path.read_bytes().startswith(b'\x89PNG') for path in written)
  assert not list(tmp_path.glob('.*png'))


def test_a_figure_that_cannot_be_drawn_is_told_and_the_other_is_drawn(plan, tmp_path, monkeypatch):
  def fail(*_):
    raise RuntimeError('no paper')

  for i, run in enumerate(plan.runs(tmp_path)):
    _finish(run, 0.1 * i)
  monkeypatch.setattr(sweep_plot, 'draw_curves', fail)
  told = []
  assert sweep_figures.write(_read(plan, tmp_path), told.append) == [tmp_path / 'settings.png']
  assert told == ['Notice: curves.png could not be drawn: RuntimeError: no paper']


def _drawn(function, results, monkeypatch):
  """Returns the data that the figure is drawn from."""
  drawn = []

  def draw(shown, *note_and_path):
    drawn.extend(shown)
    note_and_path[-1].touch()

  monkeypatch.setattr(sweep_plot, function, draw)
  sweep_figures.write(results, pytest.fail)
  return drawn


def test_a_field_is_shown_by_the_combinations_whose_grid_has_it_numbers_by_size(
  tmp_path, monkeypatch
):
  grids = [
    {'agent.lambda_': (0.95, 0.9), 'agent.entropy.threshold': (None, 0.5)},
    {'agent.discount': (0.9, 0.8)},
    {'agent.kl_cost': (0.1,)},
  ]
  plan = sweep_plan.make(_BASE, grids, 1)
  for i, run in enumerate(plan.runs(tmp_path)):
    _finish(run, float(i))
  panels = _drawn('draw_settings', _read(plan, tmp_path), monkeypatch)
  assert [
    (panel.field, panel.values, [sorted(found) for found in panel.returns]) for panel in panels
  ] == [
    ('lambda_', ['0.9', '0.95'], [[2, 3], [0, 1]]),
    ('entropy.threshold', ['0.5', 'None'], [[1, 3], [0, 2]]),
    ('discount', ['0.8', '0.9'], [[5], [4]]),
  ]


def test_labels_tell_mean_interval_and_seeds(plan, tmp_path, monkeypatch):
  runs = plan.runs(tmp_path)
  for run, value in ((runs[0], 1.0), (runs[4], 2.0), (runs[1], 3.0)):
    _finish(run, value)
  groups = _drawn('draw_curves', _read(plan, tmp_path), monkeypatch)
  assert [group.label for group in groups] == [
    'lambda_=0.9, mlp_sizes=[8]: 3 (1 seed)',
    'lambda_=0.9, mlp_sizes=[64,64]: 1.5 ± 6.4 (2 seeds)',
  ]


def test_a_sweep_whose_runs_are_finished_is_reported_from_their_curves(
  plan, tmp_path, monkeypatch, capsys
):
  tried = []
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  monkeypatch.setattr(door, 'check', tried.extend)
  monkeypatch.setattr(environments, 'check', tried.append)
  monkeypatch.setattr(sweep_schedule, '_start', None)  # nothing may be started
  saved_plan.save(plan, tmp_path)
  for i, run in enumerate(plan.runs(tmp_path)):
    _finish(run, float(i))
  assert cli.main(['sweep', f'--out={tmp_path}']) == 0
  shown = capsys.readouterr().out
  assert '12 of them finished' in shown and '12 of 12 runs finished:' in shown
  assert (tmp_path / 'curves.png').stat().st_size > 500
  assert tried == []


def test_an_infinite_setting_is_text_in_json(tmp_path, capsys):
  plan = sweep_plan.make(_BASE, [{'agent.rho_clip': (1.0, float('inf'))}], 1)
  sweep_output.print_results(_read(plan, tmp_path), as_json=True)
  record = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))
  assert {row['agent.rho_clip'] for row in record['table']} == {1.0, 'inf'}


def test_report_rewrites_everything_and_runs_nothing(plan, tmp_path, monkeypatch, capsys):
  """It needs no environment either: the runs may be copied from another machine."""
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  monkeypatch.setattr(environments, 'check', lambda config: pytest.fail('was looked for'))
  saved_plan.save(plan, tmp_path)
  for i, run in enumerate(plan.runs(tmp_path)[:6]):
    _finish(run, float(i))
  assert cli.main(['sweep', '--report', f'--out={tmp_path}']) == 0
  shown = capsys.readouterr().out
  assert '6 of 12 runs finished, 6 waiting' in shown and 'settings.png' in shown
  assert {'table.csv', 'table.md', 'runs.csv', 'curves.png', 'settings.png'} <= {
    path.name for path in tmp_path.iterdir()
  }
  assert cli.main(['sweep', '--report', f'--out={tmp_path}', '--json']) == 0
  record = json.loads(capsys.readouterr().out)
  assert record['runs'] == {'finished': 6, 'unfinished': 0, 'failed': 0, 'waiting': 6}
  assert record['table'][0]['network.mlp_sizes'] == [8]
  assert len(record['table']) == 4
