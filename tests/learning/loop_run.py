"""A training loop in a folder, with a learner that only counts and a clock that tests set."""

import dataclasses
import json

import numpy as np

from seed_acme import agent as agent_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.inference import policy as policy_lib
from seed_acme.inference import server_statistics
from seed_acme.learning import learner as learner_lib
from seed_acme.learning import peers as peers_lib
from seed_acme.learning import training_loop
from seed_acme.loggers import csv_file
from seed_acme.programs.building import sections
from seed_acme.storage import run_directory


class Learner:
  """A learner whose only weight is the number of updates."""

  def __init__(self):
    self.num_updates = 0
    self.warm_started_from, self.new_at_warm_start = None, []
    self.agent_steps = []
    self.is_spoilt = False
    self.watches = (agent_lib.Watch('toy/half', 1.0, 0.05, 50, 'no half', 'Double it.'),)

  def of_row(self, means):
    return {'toy/half': means['loss/total'] / 2} if means['loss/total'] else {}

  def step(self, sample, agent_steps):
    if self.is_spoilt:
      raise learner_lib.NonFiniteError('loss/total became nan')
    self.agent_steps.append(agent_steps)
    self.num_updates += 1
    metrics = {
      'loss/total': float(sample),
      'learner/policy_lag': float(sample),
      'learner/policy_lag_max': 2.0 * sample,
    }
    return learner_lib.Update(metrics, trained_steps=5, priorities=None)

  def variables(self):
    return types.Variables(self.num_updates, (self.num_updates,))

  def save(self):
    return {'acting/w': np.array(self.num_updates)}

  def restore(self, arrays, num_updates):
    assert arrays['acting/w'] == num_updates
    self.num_updates = num_updates

  def warm_start(self, arrays):
    self.warm_started_from = int(arrays['acting/w'])
    return self.new_at_warm_start


class Clock:
  """A stand-in for the module `time` of the training loop."""

  def __init__(self):
    self.now = 100.0

  def monotonic(self):
    return self.now


class Run:
  """A loop in a folder, surrounded by stand-ins."""

  opened: list['Run'] = []

  def __init__(self, path, clock, memory=None, peers=peers_lib.ALONE, **changes):
    """memory(folder): makes the run's memory, if it has one. changes: of the configuration."""
    self.config = dataclasses.replace(registry.load('catch_vtrace'), **changes)
    self.folder = run_directory.create(path)
    self.learner = Learner()
    self.inference = server_statistics.ServerStatistics(4)
    self.inference.new_timer()
    self.published = policy_lib.PublishedVariables()
    self.counters = peers.new_counters(clock.monotonic)
    self.csv = csv_file.CsvLogger(self.folder.metrics)
    self.memory = memory and memory(self.folder)
    self.loop = training_loop.TrainingLoop(
      sections.split(self.config).learners[0].loop,
      self.folder,
      learner=self.learner,
      inference=self.inference,
      published=self.published,
      counters=self.counters,
      csv=self.csv,
      logger=self.csv,
      memory=self.memory,
      peers=peers,
    )
    self.opened.append(self)

  def end_episodes(self, statistics, scores):
    ids = np.arange(len(scores))
    statistics.add(
      ids, np.full(len(scores), types.FIRST), np.zeros(len(scores)), np.zeros(len(scores))
    )
    return statistics.add(
      ids, np.full(len(scores), types.LAST), np.array(scores) * 10.0, np.array(scores)
    )

  def rows(self):
    return csv_file.read(self.folder.metrics)

  def status(self):
    return json.loads(self.folder.status.read_text())

  def saved_updates(self):
    return sorted(int(path.name) for path in self.folder.checkpoints.glob('[0-9]*'))


def replace(config_part, **changes):
  return dataclasses.replace(getattr(registry.load('catch_vtrace'), config_part), **changes)


def trained(path, clock, updates, **changes):
  run = Run(path, clock, learner=replace('learner', log_period_s=0.0), **changes)
  run.loop.restore()
  for _ in range(updates):
    clock.now += 1
    run.counters.add(agent_steps=10, frames=40, episodes=2)
    run.loop.train(1.0)
  return run


class Memory:
  """A memory of `size` unrolls; its checkpoint is `content`, or `fails` half-way."""

  def __init__(self, folder, size=0, content=b''):
    self._folder = folder.replay_in_progress / 'now'
    self._size = size
    self.content = content
    self.fails = False
    self.is_silent = False

  def counts(self):
    return self._size, 0

  def counts_now(self):
    return None if self.is_silent else self.counts()

  def update_priorities(self, keys, priorities):
    raise NotImplementedError

  def checkpoint(self):
    self._folder.mkdir(parents=True)
    (self._folder / 'chunks.tfrecord').write_bytes(self.content)
    if self.fails:
      raise RuntimeError('No space left on device')
    return self._folder
