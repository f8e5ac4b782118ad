"""`load_metrics`: one run, several runs, folders without rows, and no pandas."""

import math
import sys

import pytest

import seed_acme
from seed_acme import types
from seed_acme.loggers import csv_file

_ROWS = (
  (100, {'updates': 1, 'wall_s': 2, 'loss/total': 0.25}),
  (300, {'updates': 3, 'wall_s': 4, 'episode/return': 1, 'loss/total': float('nan')}),
)


def _run(path, rows=_ROWS):
  path.mkdir()
  (path / 'config.json').write_text('{}')
  logger = csv_file.CsvLogger(path / 'metrics.csv')
  for agent_steps, metrics in rows:
    logger.write(agent_steps, metrics)
  logger.close()
  return path


def test_every_row_and_column_of_a_run_is_there_with_counts_as_integers(tmp_path):
  frame = seed_acme.load_metrics(str(_run(tmp_path / 'a')))
  assert list(frame.columns) == ['agent_steps', 'wall_s', 'updates', 'loss/total', 'episode/return']
  assert frame['agent_steps'].tolist() == [100, 300] and frame['agent_steps'].dtype == 'int64'
  assert frame['updates'].dtype == 'int64' and frame['wall_s'].dtype == 'float64'
  assert frame['episode/return'].dtype == 'float64'  # whole by chance
  assert math.isnan(frame['episode/return'][0]) and frame['episode/return'][1] == 1
  assert frame['loss/total'][0] == 0.25 and math.isnan(frame['loss/total'][1])


def test_a_count_that_older_rows_lack_stays_a_float(tmp_path):
  frame = seed_acme.load_metrics(_run(tmp_path / 'a', ((1, {'x': 1}), (2, {'episodes': 4}))))
  assert math.isnan(frame['episodes'][0]) and frame['episodes'][1] == 4


def test_several_runs_are_one_frame_that_names_them(tmp_path):
  first, second = _run(tmp_path / 'a'), _run(tmp_path / 'b', ((7, {'other/metric': 2}),))
  frame = seed_acme.load_metrics([str(first), second])
  assert frame.columns[0] == 'run'
  assert frame['run'].tolist() == [str(first)] * 2 + [str(second)]
  assert frame['agent_steps'].tolist() == [100, 300, 7] and frame.index.tolist() == [0, 1, 2]
  assert frame['other/metric'].isna().tolist() == [True, True, False]
  assert len(seed_acme.load_metrics((first,))) == 2


def test_a_row_that_is_being_written_is_left_out(tmp_path):
  run = _run(tmp_path / 'a')
  with open(run / 'metrics.csv', 'a') as file:
    file.write('400,5,')
  assert seed_acme.load_metrics(run)['agent_steps'].tolist() == [100, 300]


@pytest.mark.parametrize(
  'make, said',
  [
    (lambda path: path / 'nowhere', 'is no folder: give the folder of a run'),
    (lambda path: path, 'is not the folder of a run'),
    (lambda path: _run(path / 'a', ()), 'a has no metrics yet'),
    (lambda path: [], 'load_metrics needs at least one run folder'),
    (lambda path: [_run(path / 'a'), path / 'nowhere'], 'nowhere is no folder'),
  ],
)
def test_what_holds_no_metrics_is_refused_in_words(make, said, tmp_path):
  with pytest.raises(types.UserError, match=said):
    seed_acme.load_metrics(make(tmp_path))


def test_an_empty_log_and_one_with_only_a_header_are_refused(tmp_path):
  run = _run(tmp_path / 'a', ())
  for text in ('', 'agent_steps,updates\n'):
    (run / 'metrics.csv').write_text(text)
    with pytest.raises(types.UserError, match='has no metrics yet'):
      seed_acme.load_metrics(run)


def test_without_pandas_the_extra_is_named(tmp_path, monkeypatch):
  monkeypatch.setitem(sys.modules, 'pandas', None)
  with pytest.raises(
    types.UserError, match=r"the package pandas: .*pip install -e '\.\[metrics\]'"
  ):
    seed_acme.load_metrics(_run(tmp_path / 'a'))
