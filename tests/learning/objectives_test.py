"""Several objectives in one learner: the variables that each trains, and when it steps."""

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.learning import learner as learner_lib
from seed_acme.learning import objectives


class _Policy(snt.Module):
  """A network that acts with a single number."""

  def __init__(self):
    super().__init__(name='policy')
    self.p = tf.Variable([2.0], name='p')

  @property
  def trainable_variables(self):
    return (self.p,)


def _sgd(rate, **fields):
  """Returns an optimiser whose first step is the sign of the gradient times the rate."""
  return config_lib.OptimizerConfig(learning_rate=rate, max_gradient_norm=0.0, **fields)


def _learner(critic, losses, *, objectives_of=None, after_update=None, xla=False, seed=3):
  policy = _Policy()

  def make_learning(network):
    made = (
      objectives_of(network)
      if objectives_of
      else {
        'policy': agent_lib.Objective([network.p], _sgd(0.1, schedule='linear')),
        'critic': agent_lib.Objective([critic], _sgd(0.01)),
      }
    )
    return agent_lib.Learning(
      variables={'critic/q': critic},
      objectives=made,
      prepare=lambda sample, key, is_first: agent_lib.Prepared(
        sample, tf.ones([2, 1], tf.bool), tf.zeros([2, 1], tf.int64)
      ),
      losses=lambda batch, key, progress: losses(network, batch, key, progress),
      after_update=after_update,
    )

  agent = agent_lib.Agent(agent_lib.Acting(lambda: policy, None, 0), make_learning)
  return learner_lib.Learner(
    agent, published=[0], total_steps=100, seed=seed, xla=xla, devices=['cpu:0']
  ), policy


def _product(network, batch, key, progress):
  """Returns losses of policy and critic that each depend on both networks."""
  del batch, key, progress
  q = _product.critic
  return types.LossOutput(
    {'policy': tf.reduce_sum(network.p * q), 'critic': tf.reduce_sum(network.p * q)},
    metrics={'toy/policy': network.p[0], 'toy/critic': q[0]},
  )


@pytest.mark.parametrize('xla', [False, True])
def test_each_loss_moves_its_own_variables_alone_from_the_weights_before(xla):
  _product.critic = critic = tf.Variable([-3.0], name='q')
  learner, policy = _learner(critic, _product, xla=xla)
  metrics = learner.step(tf.zeros([1]), agent_steps=50).metrics
  assert (metrics['toy/policy'], metrics['toy/critic']) == (2.0, -3.0)
  # dL/dp = q = -3 and dL/dq = p = 2, with the weights before: p goes up, q down.
  np.testing.assert_allclose(policy.p, [2.0 + 0.05], rtol=1e-5)  # half of the schedule has passed
  np.testing.assert_allclose(critic, [-3.0 - 0.01], rtol=1e-5)
  assert metrics['policy/gradient_norm'] == 3.0
  assert metrics['critic/gradient_norm'] == 2.0
  assert metrics['policy/learning_rate'] == pytest.approx(0.05)
  assert metrics['critic/learning_rate'] == pytest.approx(0.01)
  assert {name for name in learner.save() if not name.startswith('optimizer/')} == {
    'acting/policy/p:0',
    'learning/critic/q',
  }


def test_what_follows_an_update_comes_after_all_steps():
  _product.critic = critic = tf.Variable([-3.0], name='q')
  seen = tf.Variable([0.0, 0.0, 0.0])
  network = []

  def after_update(number):
    seen.assign(tf.stack([network[0].p[0], critic[0], tf.cast(number, tf.float32)]))

  learner, policy = _learner(critic, _product, after_update=after_update)
  network.append(policy)
  learner.step(tf.zeros([1]), agent_steps=0)
  np.testing.assert_allclose(seen, [policy.p[0], critic[0], 1.0])


def _drawn(network, batch, key, progress):
  del batch
  noise = tf.random.stateless_uniform([], key)
  loss = tf.reduce_sum(network.p) * noise
  return types.LossOutput(
    {'policy': loss, 'critic': tf.reduce_sum(_product.critic)},
    metrics={'toy/noise': noise, 'toy/progress': progress},
  )


@pytest.mark.slow
@pytest.mark.parametrize('xla', [False, True])
def test_randomness_depends_on_seed_and_update_alone(xla):
  _product.critic = critic = tf.Variable([1.0], name='q')
  (one, _), (other, _) = (_learner(critic, _drawn, seed=seed, xla=xla) for seed in (3, 4))

  def noises(learner, first, number):
    learner.num_updates = first
    return [learner.step(tf.zeros([1]), 0).metrics['toy/noise'] for _ in range(number)]

  whole = noises(one, 0, 4)
  assert len(set(whole)) == 4 and all(0 < x < 1 for x in whole)
  assert noises(one, 2, 2) == whole[2:]
  assert noises(other, 0, 4) != whole


def test_progress_is_the_share_of_the_run_that_is_over():
  _product.critic = critic = tf.Variable([1.0], name='q')
  learner, _ = _learner(critic, _drawn)
  found = [learner.step(tf.zeros([1]), steps).metrics['toy/progress'] for steps in (0, 25, 500)]
  assert found == [0.0, 0.25, 1.0]


def test_losses_and_objectives_have_the_same_names():
  critic = tf.Variable([1.0], name='q')
  losses = lambda network, *_: types.LossOutput({'policy': tf.reduce_sum(network.p)}, {})
  learner, _ = _learner(critic, losses)
  with pytest.raises(ValueError, match=r"losses \['policy'\] are not those of the objectives"):
    learner.step(tf.zeros([1]), agent_steps=0)


@pytest.mark.parametrize(
  'objectives_of, said',
  [
    (lambda network: {}, 'policy/p:0 can be trained, and no objective does'),
    (
      lambda network: {name: agent_lib.Objective([network.p], _sgd(0.1)) for name in 'ab'},
      'policy/p:0 is in the objectives a and b',
    ),
    (
      lambda network: {
        'a': agent_lib.Objective([network.p, tf.Variable(1.0, name='z')], _sgd(0.1))
      },
      'z:0 of the objective a is neither',
    ),
  ],
)
def test_objectives_are_a_partition(objectives_of, said):
  with pytest.raises(ValueError, match=said):
    _learner(tf.Variable([1.0], name='q'), None, objectives_of=objectives_of)


def test_the_slots_of_an_optimiser_are_there_before_the_first_step():
  variable = tf.Variable([1.0, 2.0])
  stepper = objectives.Stepper(agent_lib.Objective([variable], _sgd(0.1)))
  assert len(stepper.optimizer.variables) >= 2
  np.testing.assert_array_equal(variable, [1.0, 2.0])
  for slot in stepper.optimizer.variables:
    assert not np.any(slot)
