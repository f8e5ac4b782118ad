"""CompositeLogger passes everything to all its loggers."""

from seed_acme import types
from seed_acme.loggers import composite
from seed_acme.loggers import csv_file


def test_each_is_closed_once():
  class Logger:
    num_closed = 0

    def close(self):
      self.num_closed += 1

  own = Logger()
  logger = composite.CompositeLogger([own])
  logger.close()
  logger.close()  # as a training loop does
  assert own.num_closed == 1


def test_films_go_to_the_loggers_that_show_them(tmp_path):
  class Films:
    def write_video(self, recording):
      self.shown = recording

  films, recording = Films(), types.Recording(5, tmp_path, tmp_path, 1.0, 9, False)
  composite.CompositeLogger([csv_file.CsvLogger(tmp_path / 'a'), films]).write_video(recording)
  assert films.shown == recording


def test_every_logger_gets_every_row(tmp_path):
  paths = [tmp_path / 'a.csv', tmp_path / 'b.csv']
  logger = composite.CompositeLogger([csv_file.CsvLogger(path) for path in paths])
  logger.write(1, {'x': 2.0})
  logger.write(2, {'x': 3.0})
  logger.close()
  for path in paths:
    assert csv_file.read(path) == {'agent_steps': [1, 2], 'x': [2, 3]}
