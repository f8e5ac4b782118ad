"""PPO's losses and GAE against TF-Agents 0.12, whose results tf_agents_numbers.py has saved."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.agents.on_policy import advantages as advantages_lib
from seed_acme.agents.on_policy import algorithm as algorithm_lib
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import resolve
from seed_acme.ops import distributions
from seed_acme.ops import transitions

_FILE = pathlib.Path(__file__).with_name('tf_agents_numbers.npz')


@pytest.fixture(scope='module')
def numbers():
  """Returns a function from a case to its arrays: random inputs, and TF-Agents' results."""
  with np.load(_FILE) as archive:
    arrays = dict(archive)

  def of(case):
    beginning = f'{case}/'
    return {
      name.removeprefix(beginning): array
      for name, array in arrays.items()
      if name.startswith(beginning)
    }

  return of


@pytest.mark.parametrize('epsilon', [0.1, 0.2, 0.5])
def test_the_clipped_policy_loss_and_its_gradient(epsilon, numbers, make_config, gradients):
  x = numbers('policy_losses')
  params, distribution = tf.constant(x['params']), distributions.Categorical(4)
  log_mu = distribution.log_prob(x['behaviour'], x['actions'])

  def ours():
    log_prob = distribution.log_prob(params, x['actions'])
    return loss_lib.policy_loss(
      resolve.algorithm(make_config(policy_loss='ppo', ppo_epsilon=epsilon)),
      algorithm_lib.Played(log_prob, log_prob - log_mu, x['advantages'], x['mask'], None),
    ).loss

  loss, [gradient] = gradients(ours, [params])
  theirs = x[f'{epsilon}/gradient']
  assert np.abs(theirs).max() > 1e-3
  np.testing.assert_allclose(loss, x[f'{epsilon}/loss'], rtol=1e-5)
  np.testing.assert_allclose(gradient, theirs, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize('clip', [0.0, 0.3])
def test_the_value_loss_and_its_gradient(clip, numbers, make_config, gradients):
  x = numbers('value_losses')
  kernel, bias = tf.Variable([0.5, -0.4, 0.3]), tf.Variable(0.2)  # the same as in TF-Agents

  def ours():
    values = tf.linalg.matvec(x['observation'], kernel) + bias
    return resolve.algorithm(make_config(value_clip=clip)).value_loss(
      values, x['returns'], x['old_values'], x['mask']
    )

  loss, found = gradients(ours, [kernel, bias])
  np.testing.assert_allclose(loss, 0.5 * x[f'{clip}/loss'], rtol=1e-5)  # TF-Agents' has no half
  for gradient, name in zip(found, ('kernel', 'bias')):
    theirs = x[f'{clip}/{name}'].squeeze()
    np.testing.assert_allclose(gradient, 0.5 * theirs, rtol=1e-4, atol=1e-6)
    assert np.abs(theirs).max() > 1e-3


@pytest.mark.parametrize('lambda_', [0.0, 0.7, 0.95, 1.0])
def test_gae(lambda_, numbers, make_config):
  x = numbers('gae')
  values, rewards, discounts = x['values'], x['rewards'], x['discounts']
  ours = resolve.algorithm(make_config(advantage='gae', lambda_=lambda_)).estimate(
    algorithm_lib.Trace(
      tf.constant(values),
      transitions.Transitions(
        tf.constant(rewards), tf.constant(discounts), tf.fill(rewards.shape, True)
      ),
      tf.zeros(rewards.shape),
    )
  )
  theirs = x[str(lambda_)]
  np.testing.assert_allclose(ours.advantages, theirs, rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(ours.targets, theirs + values[:-1], rtol=1e-4, atol=1e-5)


def test_gae_of_a_truncated_episode(numbers, make_config):
  """Our trace goes on after the truncation; TF-Agents' trace ends there."""
  x = numbers('truncated_gae')
  first, mid, last = types.FIRST, types.MID, types.LAST
  step_type = np.uint8([[first], [mid], [mid], [last], [first], [mid]])
  inputs = types.AgentInput(step_type, x['reward'], np.ones((6, 1), np.float32), None, None)
  config = make_config(advantage='gae', lambda_=0.9, discount=0.97)
  ours = resolve.algorithm(config).estimate(
    algorithm_lib.Trace(
      tf.constant(x['values']), transitions.transitions(inputs, gamma=0.97), tf.zeros([5, 1])
    )
  )
  np.testing.assert_allclose(ours.advantages[:3], x['advantages'], rtol=1e-5, atol=1e-6)


def test_normalised_advantages(numbers):
  """TF-Agents adds epsilon to the variance, we to its root, which makes no difference here."""
  x = numbers('normalised')
  ours = advantages_lib.normalized(tf.constant(x['advantages']), tf.constant(x['mask']))
  np.testing.assert_allclose(
    tf.boolean_mask(ours, x['mask']), x['normalised'], rtol=1e-4, atol=1e-5
  )
