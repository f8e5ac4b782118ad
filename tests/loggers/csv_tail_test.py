"""A process that follows a metrics file while another one writes it."""

import contextlib

import pytest

from seed_acme.loggers import csv_file
from seed_acme.loggers import csv_tail


@pytest.fixture(name='path')
def _path(tmp_path):
  return tmp_path / 'metrics.csv'


@pytest.fixture(name='follow')
def _follow(path):
  """Opens a tail, and a logger that closes with the test."""
  with contextlib.ExitStack() as cleanup:
    yield lambda kind: cleanup.enter_context(contextlib.closing(kind(path)))


def _write(logger, *steps, **metrics):
  for step in steps:
    logger.write(step, {'wall_s': step / 10, 'updates': step, **metrics})


def _steps(rows):
  return [int(row['agent_steps']) for row in rows]


def test_each_row_is_handed_over_once_with_the_metrics_that_it_has(follow):
  tail, logger = follow(csv_tail.Tail), follow(csv_file.CsvLogger)
  assert tail.new_rows() == []
  _write(logger, 1)
  assert tail.new_rows() == [{'agent_steps': 1, 'wall_s': 0.1, 'updates': 1}]
  assert tail.new_rows() == []
  _write(logger, 2, 3, **{'episode/return': -1.0})  # a new column makes the logger rewrite the file
  _write(logger, 4)
  rows = tail.new_rows()
  assert _steps(rows) == [2, 3, 4]
  assert rows[0]['episode/return'] == -1.0 and 'episode/return' not in rows[2]
  _write(logger, 5, **{'loss/total': 0.5})
  _write(logger, 6)
  assert _steps(tail.new_rows()) == [5, 6]


def test_a_resumed_run_shows_what_it_writes_only(follow):
  logger = follow(csv_file.CsvLogger)
  _write(logger, 10, 20, 30)
  tail = follow(csv_tail.Tail)
  assert tail.new_rows() == []
  resumed = follow(csv_file.CsvLogger)
  resumed.truncate_after(20, 20)
  resumed.write(30, {'wall_s': 3.5, 'updates': 30})  # replaces a row that was cut off
  resumed.write(40, {'wall_s': 4.0, 'updates': 40})
  rows = tail.new_rows()
  assert [(row['agent_steps'], row['wall_s']) for row in rows] == [(30, 3.5), (40, 4.0)]
  resumed.truncate_after(20, 20)
  assert tail.new_rows() == []
  _write(resumed, 30)
  assert _steps(tail.new_rows()) == [30]


def test_a_torn_row_is_handed_over_when_it_is_whole(path, follow):
  path.write_text('agent_steps,wall_s\n1,0.1\n2,')
  tail = follow(csv_tail.Tail)
  assert tail.new_rows() == []
  with open(path, 'a') as file:
    file.write('0.25\n')
  assert tail.new_rows() == [{'agent_steps': 2, 'wall_s': 0.25}]
  tail.close()
  assert tail.new_rows() == []
