"""Properties that hold for all choices: order, masks, padding, the first step on policy."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import learner
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import presets
from seed_acme.agents.on_policy import resolve

LAST = types.LAST
_AVERAGE = on_policy_config.NormalizationConfig('average')
Penalty = on_policy_config.PenaltyConfig
_EVERY_PENALTY = {
  'entropy': Penalty(weight=0.1, threshold=-0.5),
  'kl_to_behaviour': Penalty(weight=0.2),
  'kl_from_behaviour': Penalty(weight=0.3, threshold=0.01),
  'kl_from_reference': Penalty(weight=0.1),
}
_PRESETS = ['vpg', 'ppo', 'vtrace', 'awr', 'vmpo']


def _preset(name, **fields):
  return getattr(presets, name)(
    **{
      'unroll_length': 6,
      'batch_size': 4,
      'minibatch_size': 0,
      'discount': 0.9,
      'values': _AVERAGE,
      'observations': _AVERAGE,
      'value_clip': 0.3,
      **_EVERY_PENALTY,
      **fields,
    }
  )


def _run(network, batch, config, gradients):
  loss, found = gradients(
    lambda: loss_lib.loss(resolve.algorithm(config), network, batch, None).losses['policy'],
    network.trainable_variables,
  )
  return [loss, *found]


def _with_inputs(sample, **fields):
  inputs = sample.unroll.inputs._replace(**fields)
  return sample._replace(unroll=sample.unroll._replace(inputs=inputs))


def _with_prediction(sample, **fields):
  prediction = sample.unroll.outputs.prediction._replace(**fields)
  outputs = sample.unroll.outputs._replace(prediction=prediction)
  return sample._replace(unroll=sample.unroll._replace(outputs=outputs))


@pytest.mark.slow
@pytest.mark.parametrize('name', _PRESETS)
def test_permuting_a_minibatch_changes_nothing(name, make_network, make_sample, gradients):
  config = _preset(name)
  network = make_network(config)
  batch = learner.prepare(
    resolve.algorithm(config), network, make_sample(network, config, lag=0.3), True
  ).batch
  number = on_policy_config.num_elements(config)
  order = np.random.default_rng(0).permutation(number)
  axis = 0 if config.minibatch_of == 'transitions' else 1
  results = [
    _run(network, learner.take(batch, tf.constant(indices), axis=axis), config, gradients)
    for indices in (np.arange(number), order)
  ]
  assert (order != np.arange(number)).any()
  for a, b in zip(*results):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
  'name, recompute, penalties_in_rewards, kind',
  [
    ('vpg', 'never', 'none', 'continuous'),
    ('ppo', 'never', 'subtracted', 'discrete'),
    ('ppo', 'minibatch', 'subtracted', 'continuous'),
    ('vtrace', 'minibatch', 'subtracted', 'discrete'),
    ('vtrace', 'never', 'none', 'continuous'),
    ('awr', 'never', 'subtracted', 'continuous'),
    ('vmpo', 'never', 'none', 'discrete'),
    ('vmpo', 'minibatch', 'subtracted', 'continuous'),
  ],
)
def test_nan_in_everything_masked_changes_no_bit(
  name, recompute, penalties_in_rewards, kind, make_network, make_sample, gradients
):
  """Rewards and discounts into FIRST rows, and data stored in LAST rows, are NaN.

  Penalties have a gradient of their own if they are not in the rewards.
  """
  of = 'unrolls' if recompute == 'minibatch' else _preset(name).minibatch_of
  config = _preset(
    name,
    recompute_advantages=recompute,
    minibatch_of=of,
    penalties_in_rewards=penalties_in_rewards,
    max_abs_reward=1.0,
  )
  results = []
  for poisoned in (False, True):
    network = make_network(config, kind)
    sample = make_sample(network, config, kind, lag=0.3)
    inputs, prediction = sample.unroll.inputs, sample.unroll.outputs.prediction
    masked = inputs.step_type[:-1] == LAST
    assert masked.sum() > 2
    if poisoned:
      after = np.concatenate([np.zeros((1, 4), bool), masked])
      nan = lambda rows, x: np.where(rows, np.nan, x).astype(np.float32)
      at_last = np.concatenate([masked, np.ones((1, 4), bool)])  # also in the row that bootstraps
      sample = _with_inputs(
        sample, reward=nan(after, inputs.reward), discount=nan(after, inputs.discount)
      )
      sample = _with_prediction(
        sample,
        value=nan(at_last, prediction.value),
        policy_params=nan(at_last[..., None], prediction.policy_params),
      )
    batch = learner.prepare(resolve.algorithm(config), network, sample, True).batch
    metrics = learner.finish(resolve.algorithm(config), network, sample)
    results.append(
      [
        *_run(network, batch, config, gradients),
        *metrics.values(),
        *loss_lib.loss(resolve.algorithm(config), network, batch, None).metrics.values(),
      ]
    )
  assert np.isfinite(results[0][0])
  for a, b in zip(*results):
    np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize('name', _PRESETS)
def test_a_batch_of_nothing_but_padding_moves_nothing(name, make_network, make_sample, gradients):
  config = _preset(name, penalties_in_rewards='subtracted')
  network = make_network(config)
  sample = make_sample(network, config, step_type=np.full((7, 4), LAST, np.uint8))
  before = [np.array(v) for v in network.variables]
  batch = learner.prepare(resolve.algorithm(config), network, sample, True).batch
  learner.finish(resolve.algorithm(config), network, sample)
  loss, *found = _run(network, batch, config, gradients)
  assert loss == 0.0
  for gradient in found:
    np.testing.assert_array_equal(gradient, np.zeros_like(gradient))
  for a, b in zip(before, network.variables):
    np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize(
  'name, compensates, kind',
  [
    ('vpg', True, 'discrete'),
    ('ppo', True, 'continuous'),
    ('ppo', False, 'nested'),
    ('vtrace', False, 'discrete'),
    ('awr', False, 'continuous'),
    ('vmpo', True, 'nested'),
  ],
)
def test_the_first_gradient_step_is_exactly_on_policy(
  name, compensates, kind, make_network, make_sample
):
  """This also holds in the second update, after the statistics have changed."""
  config = _preset(name, value_compensation=compensates, advantage='vtrace')
  network = make_network(config, kind)
  for seed in range(2):
    sample = make_sample(network, config, kind, seed=seed)
    batch = learner.prepare(resolve.algorithm(config), network, sample, True).batch
    metrics = loss_lib.loss(resolve.algorithm(config), network, batch, None).metrics
    np.testing.assert_allclose(metrics['policy/ratio_mean'], 1.0, rtol=1e-5)
    np.testing.assert_allclose(metrics['policy/kl_behaviour'], 0.0, atol=1e-6)
    assert metrics['policy/ratio_clipped_share'] == 0.0
    learner.finish(resolve.algorithm(config), network, sample)
  # Within the update the statistics of observations must not change, because the outputs depend on
  # them.
  batch = learner.prepare(resolve.algorithm(config), network, sample, True).batch
  assert (
    loss_lib.loss(resolve.algorithm(config), network, batch, None).metrics['policy/kl_behaviour']
    > 1e-4
  )


@pytest.mark.slow
def test_on_policy_the_policy_gradients_of_vpg_ppo_and_vtrace_are_one(
  make_config, make_network, make_sample, gradients
):
  found = {}
  for name in ('vpg', 'ppo', 'vtrace'):
    config = make_config(policy_loss=name, value_cost=0.0)
    network = make_network(config)
    batch = learner.prepare(
      resolve.algorithm(config), network, make_sample(network, config), True
    ).batch
    found[name] = _run(network, batch, config, gradients)[1:]
  for name in ('ppo', 'vtrace'):
    for a, b in zip(found[name], found['vpg']):
      np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
  assert max(np.abs(g).max() for g in found['vpg']) > 0.01
