"""The inputs of the lower bound of a run's cost, and how it is summed."""

import dataclasses

import pytest

from seed_acme.configs import registry
from seed_acme.envs import checked
from seed_acme.programs.tools.benchmark import lower_bound
from tests import built

pytestmark = pytest.mark.slow


def test_the_made_up_sample_can_be_learnt_from():
  """With R2D2; `bench_test` learns from that of an on-policy run."""
  config = registry.load('catch_r2d2')
  small = dataclasses.replace(config.agent, unroll_length=4, overlap=2, batch_size=4)
  config = dataclasses.replace(config, agent=small)
  acting = built.make_acting(config)
  learner = built.make_learner(config, acting)
  sample = lower_bound._sample(config, acting)
  for _ in range(3):
    update = learner.step(sample, agent_steps=0)  # raises if a number is not finite
  assert update.trained_steps == 4 * 4


def test_an_error_of_close_costs_no_measurement(monkeypatch):
  def close(self):
    raise RuntimeError('the window is gone')

  monkeypatch.setattr(checked.CheckedEnvironment, 'close', close)
  config = registry.load('catch_vtrace')
  assert lower_bound._environment(config, built.make_acting(config), 4, min_s=1e-3) > 0


def test_training_counts_as_often_as_the_replay_ratio_says(monkeypatch):
  for name in ('_environment', '_inference', '_training'):
    monkeypatch.setattr(lower_bound, name, lambda *_: 640.0)
  config = registry.load('catch_r2d2')
  costs = [lower_bound.measure(config, 64, 0.5, ratio) for ratio in (1.0, 3.0)]
  assert costs[0] == {'environment': 80.0, 'inference': 20.0, 'training': 2.0}
  assert costs[1] == {**costs[0], 'training': 6.0}
