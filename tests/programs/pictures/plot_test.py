"""Plots of made-up runs, and every error."""

import dataclasses

import numpy as np
import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.loggers import csv_file
from seed_acme.programs.pictures import confidence_intervals
from seed_acme.programs.pictures import plot
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config


def _run(path, returns, seconds_per_row=30.0):
  run = run_directory.create(path)
  run.config.write_text('{}')
  logger = csv_file.CsvLogger(run.metrics)
  for i, value in enumerate(returns):
    row = {'wall_s': i * seconds_per_row}
    if value is not None:
      row['episode/return'] = value
    logger.write(i * 1000, row)
  logger.close()
  return run.path


def _run_of(path, config, returns, **row):
  run = run_directory.RunDirectory(_run(path, returns, **row))
  saved_config.save(config, run.config)
  return run.path


def _with_constant_rate(config):
  """Returns a copy that learns the same however long it runs."""
  optimizer = dataclasses.replace(config.agent.optimizer, schedule='constant')
  return dataclasses.replace(config, agent=dataclasses.replace(config.agent, optimizer=optimizer))


def _text(path):
  """Returns the texts of a figure, which matplotlib writes into an .svg as comments."""
  return [
    line.strip()[5:-4] for line in path.read_text().splitlines() if line.strip().startswith('<!-- ')
  ]


def test_a_curve_has_the_rows_with_episodes_in_steps_and_minutes(tmp_path):
  curve = plot.read_curve(_run(tmp_path / 'run', [None, -1.0, None, 0.5]), 'x')
  np.testing.assert_array_equal(curve.steps, [1000, 3000])
  np.testing.assert_allclose(curve.minutes, [0.5, 1.5])
  np.testing.assert_array_equal(curve.returns, [-1.0, 0.5])


@pytest.mark.slow
@pytest.mark.parametrize('num_runs, num_rows', [(1, 1), (2, 40), (9, 3)])
def test_writes_a_picture_of_all_runs(tmp_path, num_runs, num_rows):
  paths = [_run(tmp_path / f'run{i}', np.linspace(-1, 1, num_rows)) for i in range(num_runs)]
  out = plot.plot(paths, tmp_path / 'figures' / 'curve.png')
  assert out.read_bytes().startswith(b'\x89PNG') and out.stat().st_size > 10_000


@pytest.mark.slow
def test_the_figure_has_labelled_axes_and_one_entry_a_run(tmp_path):
  paths = [_run(tmp_path / 'a' / 'one', [0.0, 1.0]), _run(tmp_path / 'a' / 'two', [0.0, 1.0])]
  out = plot.plot(paths, tmp_path / 'curve.svg')
  assert {
    'agent steps',
    'episode return',
    'a/one',
    'a/two',
    'Return of training episodes',
    'every row of the log, and smoothed',
  } <= set(_text(out))


@pytest.mark.slow
@pytest.mark.parametrize('seconds_per_row, unit', [(29.0, 'seconds'), (31.0, 'minutes')])
def test_less_than_a_minute_is_counted_in_seconds(tmp_path, seconds_per_row, unit):
  path = _run(tmp_path / 'run', [0.0, 1.0, 1.0], seconds_per_row)
  text = _text(plot.plot([path], tmp_path / 'curve.svg'))
  assert f'wall time ({unit})' in text
  numbers = [float(label) for label in text[text.index('episode return') :] if label[0].isdigit()]
  assert (max(numbers) > 40) == (unit == 'seconds'), numbers


@pytest.mark.slow
def test_the_title_names_configuration_and_environment(tmp_path):
  paths = [
    _run_of(tmp_path / 'catch_vtrace' / 'one', registry.load('catch_vtrace'), [0.0, 1.0]),
    _run_of(tmp_path / 'mine', registry.load('cartpole_ppo'), [0.0, 1.0]),
  ]
  one = _text(plot.plot(paths[:1], tmp_path / 'one.svg'))
  assert 'catch_vtrace on catch: return of training episodes' in one
  two = _text(plot.plot(paths, tmp_path / 'two.svg'))
  assert 'catch_vtrace, cartpole_ppo on catch, CartPole-v1: return of training episodes' in two
  assert {'catch_vtrace/one', f'{tmp_path.name}/mine (cartpole_ppo)'} <= set(two)


@pytest.mark.slow
def test_the_legend_says_in_what_few_runs_differ(tmp_path):
  base = _with_constant_rate(registry.load('catch_vtrace'))
  agent = dataclasses.replace(base.agent, unroll_length=7, batch_size=3)
  configs = {
    'a': base,
    'b': dataclasses.replace(base, seed=5, total_steps=7),  # the steps may change on resume
    'c': dataclasses.replace(base, name='mine', agent=agent),
    'd': registry.load('cartpole_ppo'),
  }
  paths = {name: _run_of(tmp_path / name, config, [0.0, 1.0]) for name, config in configs.items()}

  def legend(names, file):
    text = _text(plot.plot([paths[name] for name in names], tmp_path / file))
    return [line for line in text if line.startswith(f'{tmp_path.name}/')]

  where = f'{tmp_path.name}/'
  assert legend('ab', 'two.svg') == [
    f'{where}a (catch_vtrace), seed={base.seed}',
    f'{where}b (catch_vtrace), seed=5',
  ]
  sizes = (
    f'agent.unroll_length={base.agent.unroll_length}, agent.batch_size={base.agent.batch_size}'
  )
  assert legend('abc', 'three.svg') == [
    f'{where}a (catch_vtrace), seed={base.seed}, {sizes}',
    f'{where}b (catch_vtrace), seed=5, {sizes}',
    f'{where}c (mine), seed={base.seed}, agent.unroll_length=7, agent.batch_size=3',
  ]
  # These differ in everything; runs of the same name are still distinguished.
  assert legend('abd', 'names.svg') == [
    f'{where}a (catch_vtrace), seed={base.seed}',
    f'{where}b (catch_vtrace), seed=5',
    f'{where}d (cartpole_ppo)',
  ]


@pytest.mark.slow
def test_more_than_five_runs_become_a_band_for_each_configuration(tmp_path):
  base = _with_constant_rate(registry.load('catch_vtrace'))
  changed = dataclasses.replace(base, agent=dataclasses.replace(base.agent, unroll_length=7))
  longer = dataclasses.replace(base, total_steps=7, num_actors=3)  # may change on resume
  configs = [base, changed, longer, changed, base, base]
  paths = [
    _run_of(tmp_path / f'{i}', dataclasses.replace(config, seed=i), np.arange(40.0) + i)
    for i, config in enumerate(configs)
  ]
  five = _text(plot.plot(paths[:5], tmp_path / 'five.svg'))
  assert sum(label.startswith(f'{tmp_path.name}/') for label in five) == 5
  six = _text(plot.plot(paths, tmp_path / 'six.svg'))
  assert {
    'mean over runs of equal configuration, 95% interval (Student t)',
    'catch_vtrace, agent.unroll_length=10 (4 runs)',
    'catch_vtrace, agent.unroll_length=7 (2 runs)',
  } <= set(six)
  assert not any(label.startswith(f'{tmp_path.name}/') for label in six)


def test_labels_of_ones_own_name_the_runs_and_join_those_of_one_name(tmp_path):
  runs = [_run(tmp_path / str(i), np.arange(20.0)) for i in range(3)]
  out = tmp_path / 'out.svg'
  plot.plot(runs, out, labels=['old', 'new', 'newest'])
  text = _text(out)
  assert all(name in text for name in ('old', 'new', 'newest'))
  assert not any('run)' in line or 'runs)' in line for line in text)
  plot.plot(runs, out, labels=['old', 'new', 'new'])
  assert {'old (1 run)', 'new (2 runs)'} <= set(_text(out))
  assert 'mean over runs of equal label, 95% interval (Student t)' in _text(out)
  plot.plot(runs, out, labels=['_old', 'cost $_{$', 'a $b$'])
  assert {' _old', 'cost $_{$', 'a $b$'} <= set(_text(out))
  with pytest.raises(types.UserError, match='2 labels for 3 runs: give each run a label'):
    plot.plot(runs, out, labels=['old', 'new'])


def _curves(**values_of):
  """Returns curves of constant returns, by their last steps: `last_80=5.0`."""
  ends = {int(name.removeprefix('last_')): value for name, value in values_of.items()}
  return [
    plot.Curve('', np.arange(0, end + 1.0), np.arange(0, end + 1.0) / 60, np.full(end + 1, value))
    for end, value in ends.items()
  ]


def _band(curves):
  return plot.band([curve.steps for curve in curves], curves)


def test_a_band_is_the_mean_of_all_its_runs_with_its_interval():
  (piece,) = _band(_curves(last_1000=0.0, last_1020=1.0, last_1049=5.0))
  assert (piece.x[0], piece.x[-1], piece.num_runs) == (0, 1000, 3)
  np.testing.assert_allclose(piece.interval.mean, 2.0)
  expected = confidence_intervals.of_mean(np.array([0.0, 1.0, 5.0]))
  assert (piece.interval.low[-1], piece.interval.high[-1]) == (expected.low, expected.high)
  (piece,) = _band(_curves(last_100=3.0))
  assert piece.x[-1] == 100 and np.isnan(piece.interval.low).all()


def test_where_a_run_of_a_band_has_ended_another_piece_begins_while_half_of_the_runs_go_on():
  whole, rest = _band(_curves(last_100=0.0, last_50=1.0, last_80=5.0))
  assert (whole.x[0], whole.x[-1], whole.num_runs) == (0, 50, 3)
  np.testing.assert_allclose(whole.interval.mean, 2.0)
  assert (rest.x[0], rest.x[-1], rest.num_runs) == (50, 80, 2)
  np.testing.assert_allclose(rest.interval.mean, 2.5)
  assert rest.interval.high[-1] == confidence_intervals.of_mean(np.array([0.0, 5.0])).high


def test_runs_of_one_row_and_runs_that_share_no_step_are_still_drawn():
  one_row = [
    plot.Curve('', np.array([step]), np.array([1.0]), np.array([value]))
    for step, value in ((10.0, 1.0), (10.0, 3.0))
  ]
  (piece,) = _band(one_row)
  assert (list(piece.x), list(piece.interval.mean), piece.num_runs) == ([10], [2], 2)
  # The second run begins after the end of the first one.
  apart = [one_row[0], plot.Curve('', np.array([20.0, 30.0]), np.arange(2.0), np.array([5.0, 7.0]))]
  (piece,) = _band(apart)
  assert (piece.x[0], piece.x[-1], piece.num_runs) == (20, 30, 1)
  np.testing.assert_allclose(piece.interval.mean[[0, -1]], [5.0, 7.0])


def test_a_single_run_is_not_drawn_as_the_mean_of_many():
  ranges = ((3.3, 3.9), (4.3, 5.3), (2.6, 3.4), (3.5, 3.8), (3.3, 4.3))
  curves = [
    plot.Curve('', np.array(ends), np.arange(2.0), np.full(2, float(i)))
    for i, ends in enumerate(ranges)
  ]
  (piece,) = _band(curves)  # no range is shared by three, 3.5 is
  assert (list(piece.x), piece.num_runs) == ([3.5], 3)
  np.testing.assert_allclose(piece.interval.mean, np.mean([0, 3, 4]))
  apart = [curves[i] for i in (1, 2, 3)]
  (piece,) = _band(apart)  # drawn thinly, as it lacks some
  assert (list(piece.x), piece.num_runs) == ([4.3], 1)


@pytest.mark.slow
def test_the_title_says_that_lines_are_thin_where_runs_have_ended(tmp_path):
  alike = [_run(tmp_path / str(i), np.arange(40.0)) for i in range(3)]
  text = 'mean over runs of equal label, 95% interval (Student t)'
  assert text in _text(plot.plot(alike, tmp_path / 'alike.svg', labels=['a'] * 3))
  # As many steps, but in twice the time.
  slow = [_run(tmp_path / f'slow{i}', np.arange(40.0), seconds_per_row=60.0) for i in range(2)]
  shown = _text(plot.plot([*alike[:2], *slow], tmp_path / 'slow.svg', labels=['a'] * 4))
  assert f'{text}, thin where some runs have ended' in shown
  assert shown.count('a (4 runs)') == 1


@pytest.mark.slow
def test_runs_with_equal_names_are_told_apart(tmp_path):
  paths = [_run(tmp_path / top / 'catch' / '1', [0.0]) for top in ('a', 'b')]
  text = _text(plot.plot(paths, tmp_path / 'curve.svg'))
  assert {str(path) for path in paths} <= set(text)


def test_smoothing_keeps_a_constant_and_the_length():
  np.testing.assert_allclose(plot.smooth(np.full(100, 3.0)), 3.0)
  values = np.arange(7.0)
  np.testing.assert_array_equal(plot.smooth(values), values)


def test_smoothing_is_the_triangular_mean():
  values = np.random.default_rng(0).normal(size=60)  # half a window is 2 rows
  smoothed = plot.smooth(values)
  assert smoothed[30] == pytest.approx(np.dot(values[28:33], [1, 2, 3, 2, 1]) / 9)
  assert smoothed[0] == pytest.approx(np.dot(values[:3], [3, 2, 1]) / 6)


def test_what_cannot_be_plotted_is_a_user_error(tmp_path):
  out = tmp_path / 'out.png'
  bare = run_directory.create(tmp_path / 'bare')
  with pytest.raises(types.UserError, match='no run to plot'):
    plot.plot([], out)
  with pytest.raises(types.UserError, match='is no folder'):
    plot.plot([tmp_path / 'absent'], out)
  with pytest.raises(types.UserError, match='not the folder of a run'):
    plot.plot([bare.path], out)
  bare.config.write_text('{}')
  with pytest.raises(types.UserError, match='no metrics.csv'):
    plot.plot([bare.path], out)
  bare.metrics.write_text('')
  with pytest.raises(types.UserError, match='nothing to plot'):
    plot.plot([bare.path], out)
  with pytest.raises(types.UserError, match='nothing to plot'):
    plot.plot([_run(tmp_path / 'no_episode', [None, None])], out)
  with pytest.raises(types.UserError, match='no episode yet'):
    plot.plot([_run(tmp_path / 'nan', [float('nan')])], out)
  assert not out.exists()


def test_an_impossible_output_is_a_user_error(tmp_path):
  path = _run(tmp_path / 'run', [0.0, 1.0])
  with pytest.raises(types.UserError, match='cannot write the plot'):
    plot.plot([path], tmp_path / 'curve.unknown')
  with pytest.raises(types.UserError, match='cannot write the plot'):
    plot.plot([path], '/proc/no_such_folder/curve.png')
