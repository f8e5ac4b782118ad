"""A handmade run that was never trained, for tests that pack it."""

import dataclasses

import numpy as np

from seed_acme.configs import registry
from seed_acme.loggers import csv_file
from seed_acme.progress import counting
from seed_acme.storage import checkpoint
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

EVALUATION = [(1.0, 1.0, 9), (3.0, 3.0, 9)]  # mean 2, standard error 1


def make(folder, environment='catch', evaluation=EVALUATION, updates=(3, 7)):
  """Makes a run with a log and a checkpoint at each of the updates; the first one is the best."""
  config = registry.load('catch_vtrace')
  config = dataclasses.replace(
    config, environment=dataclasses.replace(config.environment, id=environment)
  )
  run = run_directory.create(folder)
  saved_config.save(config, run.config)
  csv = csv_file.CsvLogger(run.metrics)
  for i in range(1, 5):
    csv.write(i * 1000, {'episode/return': float(i), 'wall_s': float(i)})
  csv.close()
  for number in updates:
    counts = counting.Counts(agent_steps=number * 1000, frames=number * 4000, updates=number)
    episodes = {'training': [(0.5, 0.5, 9)], 'evaluation': evaluation}
    best = checkpoint.Best(updates[0], 2.5, 10)
    checkpoint_writer.save(
      run.checkpoints,
      number,
      {'acting/w': np.full(3, number, np.float32)},
      {'counts': counts._asdict(), 'resumptions': 0, 'episodes': episodes, 'best': best._asdict()},
      keep=3,
    )
  return run
