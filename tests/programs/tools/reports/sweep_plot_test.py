"""Figures of sweeps from made-up curves and returns."""

import numpy as np
import pytest

from seed_acme.programs.pictures import plot
from seed_acme.programs.tools.reports import sweep_plot


def _curve(steps, returns):
  steps = np.asarray(steps)
  return plot.Curve('run', steps, steps / 60_000, np.asarray(returns, float))


def _groups(count, num_seeds=3, num_rows=40):
  random = np.random.default_rng(0)
  return [
    sweep_plot.Group(
      f'rate={i}',
      [
        _curve(np.arange(1, num_rows + 1) * 1_000 + seed, random.normal(i, 1, num_rows))
        for seed in range(num_seeds)
      ],
    )
    for i in range(count)
  ]


def test_curves_are_compared_where_all_have_been_by_straight_lines_between_rows():
  steps, returns = sweep_plot.common_steps(
    [_curve([0, 100, 200], [0, 10, 20]), _curve([50, 150, 400], [1, 2, 4.5])]
  )
  assert (steps[0], steps[-1]) == (50, 200)
  np.testing.assert_allclose(returns[0], steps / 10)
  np.testing.assert_allclose(
    returns[1], np.where(steps < 150, 1 + (steps - 50) / 100, 2 + (steps - 150) / 100)
  )


def test_curves_that_share_no_step_give_one_point():
  steps, returns = sweep_plot.common_steps([_curve([100], [1]), _curve([200, 300], [2, 3])])
  np.testing.assert_array_equal(steps, [100])
  np.testing.assert_array_equal(returns, [[1], [2]])


def _text(path):
  """Returns the labels of a figure, which matplotlib writes into an .svg as comments."""
  text = path.read_text()
  return [line.strip()[5:-4] for line in text.splitlines() if line.strip().startswith('<!-- ')]


@pytest.mark.slow
@pytest.mark.parametrize(
  'num_seeds, what',
  [
    (1, 'one seed each'),
    (3, 'mean over seeds, 95% interval (Student t), each seed thin'),
    (9, 'mean over seeds, 95% interval (Student t)'),
  ],
)
def test_a_line_and_a_label_for_each_combination(tmp_path, num_seeds, what):
  path = sweep_plot.draw_curves(_groups(2, num_seeds), '', tmp_path / 'curves.svg')
  texts = _text(path)
  assert f'Return of training episodes: {what}' in texts
  assert {'rate=0', 'rate=1', 'agent steps', 'episode return'} <= set(texts)


@pytest.mark.slow
@pytest.mark.parametrize('count, num_seeds, num_rows', [(1, 1, 1), (1, 2, 1), (8, 5, 100)])
def test_from_one_point_to_many_curves(tmp_path, count, num_seeds, num_rows):
  path = sweep_plot.draw_curves(
    _groups(count, num_seeds, num_rows), 'the best 8 of 20', tmp_path / 'curves.png'
  )
  assert path.read_bytes().startswith(b'\x89PNG') and path.stat().st_size > 10_000


def _panel(name, *returns):
  return sweep_plot.Panel(
    name, [str(i) for i in range(len(returns))], [np.array(values, float) for values in returns]
  )


@pytest.mark.slow
@pytest.mark.parametrize(
  'panels',
  [
    [_panel('rate', [1.0], [])],
    [_panel('rate', [1, 2], [2, 3, 4])],
    [_panel(f'field_{i}', [1, 1], [2, 2]) for i in range(7)],
  ],
)
def test_a_panel_for_each_field_also_where_values_lack(tmp_path, panels):
  path = sweep_plot.draw_settings(panels, tmp_path / 'settings.svg')
  texts = _text(path)
  assert {panel.field for panel in panels} <= set(texts)
  assert texts.count('return of the last 100 episodes') == -(-len(panels) // 4)


def _range(name, values, scale='linear', is_integer=True):
  return sweep_plot.Panel(
    name,
    [str(value) for value in values],
    [np.array([float(i)]) for i, _ in enumerate(values)],
    scale,
    is_integer,
  )


def test_the_title_speaks_of_means_where_there_are_some(tmp_path):
  listed, searched = _panel('rate', [1.0], [2.0]), _range('rows', [3, 5])
  for panels, title, has_mean in (
    ([listed], 'Return by setting: every run, and the mean over all other settings', True),
    (
      [listed, searched],
      'Return by setting: every run, and the mean of a listed value over all other settings',
      True,
    ),
    ([searched], 'Return by setting: every run', False),
  ):
    texts = _text(sweep_plot.draw_settings(panels, tmp_path / 'settings.svg'))
    assert title in texts
    assert any('interval' in text for text in texts) == has_mean


@pytest.mark.parametrize(
  'values, scale, labels',
  [
    ([1, 2, 3], 'linear', ['1', '2', '3']),
    ([5, 7, 40], 'linear', ['8', '16', '24', '32', '40']),
    ([2, 3, 9], 'log', ['2', '4', '6', '8']),
    ([1, 7, 300], 'log', ['1', '2', '5', '10', '20', '50', '100', '200']),
  ],
)
def test_the_axis_of_a_range_of_integers_has_integers(tmp_path, values, scale, labels):
  texts = _text(
    sweep_plot.draw_settings([_range('rows', values, scale)], tmp_path / 'settings.svg')
  )
  assert texts[: texts.index('rows')] == labels


def test_the_mean_of_each_value_stands_beside_it(tmp_path):
  texts = _text(
    sweep_plot.draw_settings([_panel('rate', [1, 2, 6], [10, 11])], tmp_path / 'settings.svg')
  )
  assert {'3', '10.5'} <= set(texts)


def test_a_wide_interval_does_not_dwarf_the_runs(tmp_path):
  low, high = plot.readable_range(np.array([1.0, 2.0]), np.array([-5.0, 8.0, np.nan]))
  assert (low, high) == pytest.approx((0.65, 2.35))
  assert plot.readable_range(np.array([1.0, 2.0]), np.array([0.9, 2.1])) == pytest.approx(
    (0.85, 2.15)
  )
  assert plot.readable_range(np.array([1.0]), np.array([np.nan])) == pytest.approx((0.95, 1.05))


def test_dots_are_spread_without_a_trend():
  places = sweep_plot.spread(16)
  assert places.mean() == pytest.approx(0.5) and len(set(places)) == 16
  assert places.min() >= 0 and places.max() <= 1
  assert abs(np.corrcoef(places, np.arange(16))[0, 1]) < 0.5
  np.testing.assert_array_equal(sweep_plot.spread(1), [0.5])
