"""Optuna's part of a sweep, on made-up run folders: sampling, pruning, and resuming."""

import contextlib
import dataclasses
import functools
import sqlite3
import sys

import optuna
import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.files import local
from seed_acme.loggers import csv_file
from seed_acme.programs import cli
from seed_acme.programs.tools.reports import sweep_plot
from seed_acme.programs.tools.sweep import figures as sweep_figures
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import results as sweep_results
from seed_acme.programs.tools.sweep import saved_plan
from seed_acme.programs.tools.sweep import search as sweep_search
from seed_acme.programs.tools.sweep import search_space
from seed_acme.programs.tools.sweep import state as sweep_state
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

pytestmark = pytest.mark.slow

_BASE = registry.load('catch_vtrace')
_RATE = 'agent.optimizer.learning_rate'
_SPACE = f'{_RATE}=1e-5..1e-2:log network.mlp_sizes=[64,64],[8] agent.unroll_length=5..20'
_ENDED = optuna.trial.TrialState


@functools.cache
def _parsed(space):
  """Parses a space once: it takes most of a second, and `search_space_test.py` has its tests."""
  return search_space.parse(space, _BASE)


def _plan(num_trials=8, num_seeds=1, space=_SPACE, saved=None, base=_BASE):
  search = sweep_plan.Search(_parsed(space), num_trials)
  return sweep_plan.make_search(base, search, num_seeds, saved)


def _search(out, plan=None):
  """Returns a search as the command begins or resumes it."""
  plan = saved_plan.load(out) if plan is None else plan
  saved_plan.save(plan, out)
  return sweep_search.Search(plan, out, lambda drawn: saved_plan.save(drawn, out))


def _write(run, share, value, status='running', column='episode/return_last_100', has_curve=True):
  """Writes the files of a run at this share of its budget, with a constant return.

  has_curve: False leaves out the log, so that the run's return at its end is all that is told.
  """
  run_directory.create(run.run_dir.path)
  saved_config.save(run.config, run.run_dir.config)
  steps = int(share * run.config.total_steps)
  record = {
    'status': status,
    'agent_steps': steps,
    'wall_s': 9.0,
    'episode_return_last_100': value,
    'evaluation_return': value if column.startswith('evaluation') else None,
  }
  local.write_json(run.run_dir.status, record)
  if status == 'finished':
    local.write_json(run.run_dir.summary, record)
  if not has_curve:
    return
  run.run_dir.metrics.unlink(missing_ok=True)
  logger = csv_file.CsvLogger(run.run_dir.metrics)
  for i in range(0, round(100 * share) + 1, 5):
    logger.write(run.config.total_steps * i // 100, {'wall_s': i / 10, column: value})
  logger.close()


def _finish(search, run, value, **kwargs):
  _write(run, 1.0, value, 'finished', **kwargs)
  search.ended(run, has_failed=False)


def _trials(out):
  storage = f'sqlite:///{out / sweep_search.FILE}'
  return optuna.load_study(study_name=_BASE.name, storage=storage).trials


def test_every_trial_is_a_combination_within_the_space_and_all_are_told(tmp_path):
  search = _search(tmp_path, _plan(4))
  runs = []
  for value in (0.1, 0.4, 0.2, 0.3):
    run = search.next()
    runs.append(run)
    assert 1e-5 <= run.config.agent.optimizer.learning_rate <= 1e-2
    assert run.config.network.mlp_sizes in ((64, 64), (8,))
    assert 5 <= run.config.agent.unroll_length <= 20
    assert type(run.config.agent.unroll_length) is int
    _finish(search, run, value)
  while (run := search.next()) is not None:
    _finish(search, run, 0.0)
  assert search.num_over() == search.num_in_all() == 4
  trials = _trials(tmp_path)
  assert [trial.state for trial in trials] == [_ENDED.COMPLETE] * 4
  assert max(trial.value for trial in trials) == 0.4
  assert set(trials[0].intermediate_values) == set(range(5, 100, 5))


def _all_drawn(out, num_trials, restarts=()):
  search = _search(out, _plan(num_trials))
  drawn = []
  for i in range(num_trials):
    if i in restarts:
      search = _search(out)
    run = search.next()
    drawn.append(run.combination.settings)
    _finish(search, run, 0.1 * i, has_curve=False)
  return drawn


def test_a_search_that_is_started_anew_draws_what_one_that_is_not_draws(tmp_path):
  (tmp_path / 'a').mkdir()
  (tmp_path / 'b').mkdir()
  drawn = _all_drawn(tmp_path / 'a', 12)  # ten at random, the others by TPE
  assert drawn == _all_drawn(tmp_path / 'b', 12, restarts=(1, 2, 5, 10, 11))
  assert len({str(settings) for settings in drawn}) == 12


def test_a_run_below_the_median_is_given_up_and_one_above_is_not(tmp_path):
  search = _search(tmp_path, _plan(8))
  for i in range(5):
    _finish(search, search.next(), float(i))
  low, high = search.next(), search.next()
  _write(low, 0.1, 1.0)
  assert search.to_stop([low, high]) == []  # too early to judge
  _write(low, 0.4, 1.0)
  _write(high, 0.4, 3.0)
  assert search.to_stop([low, high]) == [low]
  assert search.to_stop([low, high]) == []  # a second signal would kill it
  assert sweep_state.read(low).status == sweep_state.PRUNED
  search.ended(low, has_failed=False)
  _finish(search, high, 3.0)
  states = [trial.state for trial in _trials(tmp_path)]
  assert states == [_ENDED.COMPLETE] * 5 + [_ENDED.PRUNED, _ENDED.COMPLETE]
  assert _trials(tmp_path)[5].value == 1.0

  results = sweep_results.read(search.plan, tmp_path, {})
  assert sweep_results.count(results)['pruned'] == 1
  assert 'pruned' in sweep_results.text_table(results, 9)
  assert [row['is_pruned'] for row in sweep_results.records(results)].count(True) == 1


def test_a_search_that_was_killed_goes_on_where_it_was(tmp_path):
  search = _search(tmp_path, _plan(7))
  for i in range(5):
    _finish(search, search.next(), float(i))
  given_up, under_way = search.next(), search.next()
  _write(given_up, 0.5, 0.0)
  _write(under_way, 0.5, 4.0)
  assert search.to_stop([given_up, under_way]) == [given_up]
  del search  # killed before it told Optuna how the two ended

  again = _search(tmp_path)
  assert _trials(tmp_path)[5].state == _ENDED.PRUNED
  assert again.next().run_dir.path == under_way.run_dir.path
  assert again.next() is None
  _finish(again, under_way, 4.0)
  assert _trials(tmp_path)[6].state == _ENDED.COMPLETE
  assert again.num_over() == again.num_in_all() == 7


def test_a_trial_that_was_half_drawn_when_it_was_killed_does_not_count(tmp_path):
  search = _search(tmp_path, _plan(2))
  _finish(search, search.next(), 1.0)
  search.next()
  with contextlib.closing(sqlite3.connect(tmp_path / sweep_search.FILE)) as database, database:
    database.execute(f"delete from trial_params where trial_id = 2 and param_name = '{_RATE}'")
  again = _search(tmp_path)
  _finish(again, again.next(), 2.0)
  assert again.next() is None
  states = [trial.state for trial in _trials(tmp_path)]
  assert states == [_ENDED.COMPLETE, _ENDED.FAIL, _ENDED.COMPLETE]


def test_a_run_that_fails_ends_its_trial_only(tmp_path):
  search = _search(tmp_path, _plan(2))
  first, second = search.next(), search.next()
  search.ended(first, has_failed=True)
  _finish(search, second, 1.0)
  assert search.next() is None
  assert [trial.state for trial in _trials(tmp_path)] == [_ENDED.FAIL, _ENDED.COMPLETE]


def test_seeds_of_a_trial_go_one_after_the_other_and_their_mean_counts(tmp_path):
  search = _search(tmp_path, _plan(2, num_seeds=2))
  first, other = search.next(), search.next()
  assert first.combination != other.combination and search.next() is None
  _finish(search, first, 1.0)
  second = search.next()
  assert (second.combination, second.seed) == (first.combination, 2)
  _finish(search, second, 2.0)
  assert _trials(tmp_path)[0].value == 1.5
  assert (search.num_over(), search.num_in_all()) == (2, 4)


def test_few_choices_come_up_again_and_are_run_once(tmp_path):
  search = _search(tmp_path, _plan(6, space='network.mlp_sizes=[64,64],[8]'))
  count = 0
  while (run := search.next()) is not None:
    count += 1
    _finish(search, run, float(count))
  assert count <= 2
  assert [trial.state for trial in _trials(tmp_path)] == [_ENDED.COMPLETE] * 6


def test_a_search_is_for_the_evaluation_where_there_is_one(tmp_path):
  base = dataclasses.replace(_BASE, num_evaluation_environments=2)
  search = _search(tmp_path, _plan(1, base=base))
  _finish(search, search.next(), 5.0, column='evaluation/return')
  [trial] = _trials(tmp_path)
  assert trial.value == 5.0 and trial.intermediate_values[50] == 5.0


@pytest.mark.parametrize('what_is_there', ['a grid', 'a search without its database'])
def test_curves_that_are_there_become_trials(tmp_path, what_is_there):
  if what_is_there == 'a grid':
    grid = {_RATE: (1e-3, 1e-4), 'agent.unroll_length': (10, 99)}  # 99 is outside the space
    plan = sweep_plan.make(_BASE, [grid], 1)
    for i, run in enumerate(plan.runs(tmp_path)):
      _write(run, 1.0, float(i), 'finished')
    saved_plan.save(plan, tmp_path)
    plan = _plan(3, saved=plan)
    values = [0.0, 2.0]
  else:
    before = _search(tmp_path, _plan(2))
    for value in (3.0, 4.0):
      _finish(before, before.next(), value)
    del before
    (tmp_path / sweep_search.FILE).unlink()
    plan = _plan(3, saved=saved_plan.load(tmp_path))
    values = [3.0, 4.0]
  search = _search(tmp_path, plan)
  assert [trial.value for trial in _trials(tmp_path)] == values
  assert all(len(trial.intermediate_values) == 19 for trial in _trials(tmp_path))
  assert (search.num_over(), search.num_in_all()) == (2, 3)
  assert search.next() is not None and search.next() is None


def test_ranges_are_axes_of_numbers_in_the_figure(tmp_path, monkeypatch):
  search = _search(tmp_path, _plan(4))
  for i in range(4):
    _finish(search, search.next(), float(i))
  results = sweep_results.read(search.plan, tmp_path, {})
  scales = {}
  draw = sweep_plot.draw_settings

  def note_and_draw(panels, out):
    scales.update({panel.field: (panel.scale, panel.is_integer) for panel in panels})
    return draw(panels, out)

  monkeypatch.setattr(sweep_plot, 'draw_settings', note_and_draw)
  # `results_test.py` has the figure of curves.
  monkeypatch.setattr(sweep_plot, 'draw_curves', lambda *arguments: arguments[-1].touch())
  assert tmp_path / 'settings.png' in sweep_figures.write(results, pytest.fail)
  assert scales['learning_rate'] == ('log', False)
  assert scales['unroll_length'] == ('linear', True)
  assert scales.get('mlp_sizes', ('', False)) == ('', False)


def test_a_database_that_cannot_be_used_is_a_failure_in_words(tmp_path):
  (tmp_path / sweep_search.FILE).write_text('no database at all, and long enough to be read' * 50)
  with pytest.raises(types.Failure, match=r'search\.db, where Optuna keeps the trials'):
    _search(tmp_path, _plan(2))


def test_a_saved_search_is_read_back(tmp_path):
  search = _search(tmp_path, _plan(3))
  search.next()
  assert saved_plan.load(tmp_path) == search.plan
  assert len(search.plan.combinations) == 1


@pytest.fixture(name='saved', scope='module')
def _saved():
  return _plan(8)


@pytest.mark.parametrize(
  'change, words',
  [
    ({'num_trials': 2}, ['8 trials', '--trials (2)']),
    ({'num_seeds': 2}, ['--seeds: 1 -> 2']),
    ({'space': f'{_RATE}=1e-5..1e-3:log'}, ['--search: ', '1e-05..0.001:log']),
    ({'base': dataclasses.replace(_BASE, total_steps=9)}, ['total_steps: 300000 -> 9']),
    ({'base': dataclasses.replace(_BASE, seed=2)}, ['seed: 1 -> 2']),
  ],
)
def test_what_would_not_compare_with_earlier_trials_is_refused(saved, change, words):
  with pytest.raises(types.UserError) as caught:
    _plan(**{'num_trials': 8, **change}, saved=saved)
  for word in words:
    assert word in str(caught.value)


def test_values_that_cannot_run_are_refused_before_anything_is_drawn():
  with pytest.raises(types.UserError, match=r'batch_size=12: .*unrolls_per_item \(8\)'):
    _plan(space='agent.batch_size=16,12')


@pytest.fixture(name='here')
def _here(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  return tmp_path


_SEARCH = ('sweep', '--config=catch_vtrace', f'--search={_RATE}=1e-4..1e-2:log')


@pytest.mark.parametrize(
  'arguments, words',
  [
    (_SEARCH, ['--trials=N']),
    ((*_SEARCH, '--trials=-1'), ['--trials (-1)']),
    ((*_SEARCH, '--trials=99999'), ['99,999 runs']),
    ((*_SEARCH, '--trials=2', '--grid=agent.discount=0.9,1'), ['--grid', '--search', 'keep one']),
    ((*_SEARCH, '--trials=2', f'--config.{_RATE}=1e-3'), ['in --search', 'keep one']),
    (('sweep', '--config=catch_vtrace', '--seeds=2', '--trials=2'), ['--trials (2)', '--search']),
  ],
)
def test_wrong_arguments_of_a_search(here, capsys, arguments, words):
  assert cli.main(list(arguments)) == 2
  out, err = capsys.readouterr()
  assert out == '' and err.startswith('error: ')
  for word in words:
    assert word in err
  assert not list(here.iterdir())


def test_without_optuna_the_extra_is_named_and_a_report_needs_none(here, capsys, monkeypatch):
  search = _search(here, _plan(2))
  _finish(search, search.next(), 1.0)
  monkeypatch.setitem(sys.modules, 'optuna', None)
  assert cli.main(['sweep', f'--out={here}']) == 2
  err = capsys.readouterr().err
  assert '--search needs the package optuna' in err and "'.[search]'" in err
  assert cli.main(['sweep', '--report', f'--out={here}']) == 0
  assert '1 of 1 runs finished' in capsys.readouterr().out
