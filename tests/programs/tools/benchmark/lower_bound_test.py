"""The inputs of the lower bound of a run's cost, and how it is summed."""

import dataclasses

import pytest

from seed_acme.configs import registry
from seed_acme.envs import checked
from seed_acme.learning import peers
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


@pytest.mark.parametrize(('name', 'size'), [('gym_vtrace', 8), ('cartpole_ppo', 32)])
def test_an_update_of_fewer_unrolls_makes_its_passes_over_those(monkeypatch, name, size):
  """Indices beyond the unrolls are an error, or are clamped with XLA."""
  taken = []
  monkeypatch.setattr(lower_bound, '_CURVE_MIN_S', 1e-3)
  monkeypatch.setattr(
    lower_bound, '_training', lambda config, acting, *_: taken.append(_steps(config, acting)) or 1.0
  )
  config = registry.load(name)
  agent = dataclasses.replace(config.agent, batch_size=16, num_epochs=2, minibatch_size=size)
  lower_bound.call_costs(dataclasses.replace(config, agent=agent))
  assert [trained for trained, _ in taken] == [n * agent.unroll_length for n in (4, 16)]
  assert all(num_gradient_steps >= 1 for _, num_gradient_steps in taken)
  assert taken[0][1] < taken[1][1]


def _steps(config, acting):
  """Returns the steps that an update trains on, and its gradient steps."""
  update = built.make_learner(config, acting).step(
    lower_bound._sample(config, acting), agent_steps=0
  )
  return update.trained_steps, float(update.metrics['learner/gradient_steps'])


@pytest.mark.parametrize('name', ['catch_vtrace', 'cartpole_ppo', 'pendulum_sac'])
def test_what_learner_hosts_exchange_is_what_an_update_averages(monkeypatch, name):
  config = registry.load(name)
  acting = built.make_acting(config)
  learning = acting.agent.make_learning(acting.agent.acting.make())
  of_objectives = []  # traced once, whatever the number of gradient steps

  def mean(self, gradients):
    of_objectives.append(sum(g.shape.num_elements() * g.dtype.size for g in gradients))
    return gradients

  monkeypatch.setattr(peers.Peers, 'mean', mean)
  sample = lower_bound._sample(config, acting)
  update = built.make_learner(config, acting).step(sample, agent_steps=0)
  num_steps = update.metrics.get('learner/gradient_steps', 1)
  assert len(of_objectives) == len(learning.objectives)
  assert lower_bound._gradient_bytes(learning) == num_steps * sum(of_objectives)


@pytest.mark.parametrize(('name', 'number'), [('catch_vtrace', 1), ('cartpole_ppo', 4)])
def test_predictions_are_exchanged_in_every_pass(name, number):
  config = registry.load(name)
  agent = config.agent
  if number > 1:
    agent = dataclasses.replace(agent, num_epochs=3, recompute_advantages='never')
  acting = built.make_acting(dataclasses.replace(config, agent=agent))
  learning = acting.agent.make_learning(acting.agent.acting.make())
  unroll = acting.example_unroll()
  kept = (unroll.inputs.observation, unroll.initial_state) if learning.keeps_observations else ()
  sent = lower_bound._num_bytes(unroll) - lower_bound._num_bytes(kept)
  predictions = lower_bound._num_bytes(unroll.outputs.prediction)
  assert lower_bound._shared_bytes(unroll, learning) == sent + number * predictions
