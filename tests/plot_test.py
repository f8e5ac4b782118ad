"""Plots of made-up runs, and everything that cannot be plotted."""

import numpy as np
import pytest

from seed_acme import plot
from seed_acme import run_directory
from seed_acme import types
from seed_acme.loggers import csv_file


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


def test_a_curve_has_the_rows_with_episodes_in_steps_and_minutes(tmp_path):
  curve = plot.read_curve(_run(tmp_path / 'run', [None, -1.0, None, 0.5]), 'x')
  np.testing.assert_array_equal(curve.steps, [1000, 3000])
  np.testing.assert_allclose(curve.minutes, [0.5, 1.5])
  np.testing.assert_array_equal(curve.returns, [-1.0, 0.5])


@pytest.mark.parametrize('num_runs, num_rows', [(1, 1), (2, 40), (9, 3)])
def test_writes_a_picture_of_all_runs(tmp_path, num_runs, num_rows):
  paths = [_run(tmp_path / f'run{i}', np.linspace(-1, 1, num_rows)) for i in range(num_runs)]
  out = plot.plot(paths, tmp_path / 'figures' / 'curve.png')
  assert out.read_bytes().startswith(b'\x89PNG') and out.stat().st_size > 10_000


def test_the_figure_has_labelled_axes_and_one_entry_a_run(tmp_path):
  paths = [_run(tmp_path / 'a' / 'one', [0.0, 1.0]), _run(tmp_path / 'a' / 'two', [0.0, 1.0])]
  out = plot.plot(paths, tmp_path / 'curve.svg')
  labels = ('agent steps', 'wall time (minutes)', 'episode return', 'a/one', 'a/two')
  text = out.read_text()
  for label in labels:
    assert f'<!-- {label} -->' in text


def test_runs_with_equal_names_are_told_apart(tmp_path):
  paths = [_run(tmp_path / top / 'catch' / '1', [0.0]) for top in ('a', 'b')]
  text = plot.plot(paths, tmp_path / 'curve.svg').read_text()
  assert '/a/catch/1 -->' in text and '/b/catch/1 -->' in text


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
