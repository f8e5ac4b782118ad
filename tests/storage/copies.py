"""Runs kept in a bucket, and functions that wait for their copies."""

import time

import numpy as np

from seed_acme.files import local
from seed_acme.storage import checkpoint_writer

PERIOD_S = 0.02
CHECKPOINTS = 'checkpoints'


def save(run, updates, value, keep=3, replay=None):
  local.write_json(run.config, {'checkpoint': {'keep': keep}})
  checkpoint_writer.save(
    run.checkpoints, updates, {'w': np.full(4, value)}, {'value': value}, keep, replay
  )


def wait_for(is_so):
  deadline = time.monotonic() + 30
  while not is_so():
    assert time.monotonic() < deadline
    time.sleep(PERIOD_S)


def write_log(run, text):
  path = run.logs / 'learner' / '0'
  path.parent.mkdir(parents=True)
  path.write_text(text)
