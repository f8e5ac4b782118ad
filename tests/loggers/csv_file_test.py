"""metrics.csv: columns that appear later, resumption, torn lines."""

import math
import os

import pytest

from seed_acme import types
from seed_acme.loggers import csv_file


@pytest.fixture(name='path')
def _path(tmp_path):
  return tmp_path / 'metrics.csv'


@pytest.fixture(name='open_logger')
def _open_logger(path):
  """Makes loggers of `path`. They stay open, as a killed process leaves them."""
  loggers = []

  def open_logger():
    loggers.append(csv_file.CsvLogger(path))
    return loggers[-1]

  yield open_logger
  for logger in loggers:
    logger.close()


def test_counters_come_first_and_rows_are_there_at_once(path, open_logger):
  logger = open_logger()
  logger.write(100, {'loss/total': 0.5, 'updates': 3, 'wall_s': 1.25, 'frames': 400})
  assert path.read_text() == 'agent_steps,wall_s,updates,frames,loss/total\n100,1.25,3,400,0.5\n'


def test_new_columns_keep_the_old_rows(path, open_logger):
  logger = open_logger()
  logger.write(1, {'b': 1.0})
  logger.write(2, {'a': 2.0, 'updates': 7})
  logger.write(3, {'b': 3.0})
  logger.close()
  assert path.read_text() == 'agent_steps,updates,b,a\n1,,1,\n2,7,,2\n3,,3,\n'
  columns = csv_file.read(path)
  assert list(columns) == ['agent_steps', 'updates', 'b', 'a']
  assert columns['agent_steps'] == [1, 2, 3]
  assert columns['b'][0] == 1 and math.isnan(columns['b'][1]) and columns['b'][2] == 3
  assert os.listdir(path.parent) == ['metrics.csv']


def test_a_new_logger_goes_on_where_the_old_one_stopped(path, open_logger):
  first = open_logger()
  first.write(1, {'a': 1.0})
  first.close()
  second = open_logger()
  second.write(2, {'a': 2.0})
  second.write(3, {'b': 2.0})
  assert path.read_text() == 'agent_steps,a,b\n1,1,\n2,2,\n3,,2\n'


@pytest.mark.parametrize('torn', ['3', '3,', '3,3', '3,3.5,', '"3'])
def test_a_last_line_torn_by_a_kill_is_dropped(path, open_logger, torn):
  path.write_text('agent_steps,a\n1,1\n2,2\n' + torn)
  assert csv_file.read(path)['agent_steps'] == [1, 2]
  logger = open_logger()
  logger.write(5, {'a': 5})
  assert path.read_text() == 'agent_steps,a\n1,1\n2,2\n5,5\n'


@pytest.mark.parametrize('text', ['', 'agent_st'])
def test_a_torn_header_starts_anew(path, open_logger, text):
  path.write_text(text)
  assert not csv_file.read(path)
  logger = open_logger()
  logger.truncate_after(3, 0)
  logger.write(5, {'a': 5})
  assert path.read_text() == 'agent_steps,a\n5,5\n'


def test_truncate_after_cuts_the_rows_behind_a_checkpoint(path, open_logger):
  logger = open_logger()
  for steps in (10, 20, 30, 40):
    logger.write(steps, {'a': steps})
  logger.truncate_after(30, 0)
  assert csv_file.read(path)['agent_steps'] == [10, 20, 30]
  logger.write(35, {'a': 1.0})
  logger.truncate_after(29, 0)
  logger.write(36, {'a': 1.0})
  assert csv_file.read(path)['agent_steps'] == [10, 20, 36]
  logger.truncate_after(0, 0)
  assert csv_file.read(path) == {'agent_steps': [], 'a': []}


def test_truncate_after_cuts_a_later_update_at_the_same_step(path, open_logger):
  """Updates continue while the actors are blocked."""
  logger = open_logger()
  for steps, updates in ((10, 1), (20, 2), (20, 3), (30, 3)):
    logger.write(steps, {'updates': updates})
  logger.truncate_after(20, 2)
  assert csv_file.read(path) == {'agent_steps': [10, 20], 'updates': [1, 2]}


def test_truncating_a_file_that_is_not_there(path, open_logger):
  open_logger().truncate_after(3, 0)
  assert not path.exists()


def test_numbers_survive(path, open_logger):
  logger = open_logger()
  values = {
    'big': 123456789012.0,
    'small': 1.2345678e-12,
    'nan': math.nan,
    'inf': -math.inf,
    'third': 1 / 3,
    'huge': 1e30,
    'name, with "quotes"': 1.0,
  }
  logger.write(2**40, values)
  columns = csv_file.read(path)
  assert columns['agent_steps'] == [2**40]
  for name, value in values.items():
    assert columns[name][0] == pytest.approx(value, rel=1e-7, nan_ok=True)


def test_foreign_and_damaged_files_are_user_errors(path, open_logger):
  path.write_text('a,b\n1,2\n')
  with pytest.raises(types.UserError, match='no metrics file'):
    open_logger()
  path.write_text('agent_steps,b\n1,2\n1\n3,4\n')
  with pytest.raises(types.UserError, match='line 3'):
    csv_file.read(path)
  path.write_text('agent_steps,b\n1,two\n')
  with pytest.raises(types.UserError, match='no number'):
    csv_file.read(path)
  with pytest.raises(types.UserError, match='cannot read'):
    csv_file.read(path.with_name('absent.csv'))
