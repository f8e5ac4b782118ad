"""The logged value metrics: their pass, their units, and when the user gets a notice."""

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import learner as learner_lib
from seed_acme.agents.on_policy import resolve
from seed_acme.agents.on_policy import value_metrics
from seed_acme.learning import watching

_AVERAGE = on_policy_config.NormalizationConfig('average')
_FAST = config_lib.OptimizerConfig(learning_rate=0.02)


def _whole_unrolls(make_sample, network, config):
  """A sample in which no row is masked, so that all minibatches have as many steps."""
  rows = (config.unroll_length + 1, config.batch_size)
  return make_sample(network, config, step_type=np.full(rows, types.MID, np.uint8))


@pytest.mark.slow
@pytest.mark.parametrize(
  'dealt, statistics',
  [
    ({'minibatch_size': 1}, 'none'),
    ({'minibatch_size': 3, 'minibatch_of': 'transitions'}, 'average'),
  ],
)
def test_error_and_variance_are_those_of_the_first_pass_in_learnt_units(
  dealt, statistics, make_config, make_network, make_sample, make_learner
):
  fields = {
    'values': on_policy_config.NormalizationConfig(statistics),
    'optimizer': config_lib.OptimizerConfig(learning_rate=1e-7),
  }
  config = make_config(num_epochs=3, **dealt, **fields)
  network = make_network(config)
  sample = _whole_unrolls(make_sample, network, config)
  learner_lib.prepare(
    resolve.algorithm(config), network, sample, True
  )  # other statistics than the sample's
  metrics = make_learner(network, config).step(sample, 0).metrics
  targets = learner_lib.prepare(
    resolve.algorithm(config), network, sample, False
  ).batch.targets.numpy()
  values, _ = network.unroll(sample.unroll.inputs, sample.unroll.initial_state)
  values = network.normalized_value(values.value[:-1]).numpy().reshape(targets.shape)
  assert metrics['value/target_variance'] == pytest.approx(targets.var(), rel=1e-3)
  assert metrics['value/squared_error'] == pytest.approx(((targets - values) ** 2).mean(), rel=1e-3)


@pytest.mark.slow
def test_targets_that_move_with_the_weights_are_compared_within_a_minibatch(
  make_config, make_network, make_sample, make_learner
):
  optimizer = config_lib.OptimizerConfig(learning_rate=1e-7)
  fields = {'minibatch_size': 1, 'recompute_advantages': 'minibatch', 'optimizer': optimizer}
  config = make_config(**fields)
  network = make_network(config)
  sample = _whole_unrolls(make_sample, network, config)
  metrics = make_learner(network, config).step(sample, 0).metrics
  targets = learner_lib.prepare(
    resolve.algorithm(make_config()), network, sample, False
  ).batch.targets.numpy()
  of_unrolls = targets.var(axis=0).mean()
  assert metrics['value/target_variance'] == pytest.approx(of_unrolls, rel=1e-3)
  assert of_unrolls < 0.9 * targets.var()


@pytest.mark.slow
def test_what_the_weights_learn_in_later_passes_shows_in_the_last_divergence_alone(
  make_config, make_network, make_sample, make_learner
):
  def step(num_epochs):
    config = make_config(num_epochs=num_epochs, minibatch_size=2, optimizer=_FAST)
    network = make_network(config)
    return make_learner(network, config).step(make_sample(network, config), 0).metrics

  one, many = step(1), step(6)
  for name in ('value/squared_error', 'value/target_variance'):
    assert many[name] == pytest.approx(one[name], rel=1e-4)
  assert one['policy/kl_last_pass'] == pytest.approx(one['policy/kl_behaviour'])
  assert many['policy/kl_last_pass'] > 1.5 * many['policy/kl_behaviour'] > 0


@pytest.mark.parametrize(
  'error, variance, explained',
  [(0.0, 2.0, 1.0), (0.5, 2.0, 0.75), (2.0, 2.0, 0.0), (6.0, 2.0, -2.0), (1e-8, 1e-8, 0.0)],
)
def test_the_explained_variance_is_of_the_means_of_a_row(error, variance, explained):
  means = {'value/squared_error': error, 'value/target_variance': variance}
  assert value_metrics.of_row(means) == {'value/explained_variance': pytest.approx(explained)}


@pytest.mark.parametrize('variance', [0.0, 9e-9])
def test_targets_that_are_all_alike_leave_nothing_to_explain(variance):
  means = {'value/squared_error': 1.0, 'value/target_variance': variance}
  assert value_metrics.of_row(means) == {}


@pytest.mark.slow
@pytest.mark.parametrize('is_held, num_epochs', [(True, 2), (False, 1)])
def test_a_value_head_held_at_0_is_told_of(
  is_held, num_epochs, make_config, make_network, make_sample, make_learner
):
  config = make_config(num_epochs=num_epochs, discount=0.5, optimizer=_FAST)
  network = make_network(config)
  sample = make_sample(network, config)
  head = [v for v in network.trainable_variables if 'heads/value/' in v.name]
  assert len(head) == 2
  learner, notices = make_learner(network, config), []
  watcher = watching.Watcher(learner.watches, 1_000_000, notices.append)
  for agent_steps in range(1000, 60_000, 1000):
    if is_held:
      for variable in head:
        variable.assign(0 * variable)
    metrics = learner.step(sample, 0).metrics
    row = {**metrics, **learner.of_row(metrics)}
    watcher.add_row(agent_steps, row)
    assert bool(notices) == (is_held and agent_steps >= 50_000)
  if is_held:
    (notice,) = notices
    assert notice.startswith('the value explains nothing yet: value/explained_variance is ')
    assert row['value/explained_variance'] <= 1e-6
  else:
    assert row['value/explained_variance'] > 0.3


@pytest.mark.parametrize('unit', [1.0, 1e3])
def test_little_is_left_to_explain_in_units_of_the_reward(unit):
  """PopArt's own are about 1 in a solved game, and far above it when the first rewards come."""
  amounts = [
    value_metrics.WATCH.amount({'value/target_variance': x, 'value/normalizer_std': y * unit})
    for x, y in ((91.0, 0.1), (1.0, 1.0), (1.0, 0.1))
  ]
  assert np.divide(amounts, unit**2) == pytest.approx([0.91, 1.0, 0.01])
  assert value_metrics.WATCH.amount({'value/target_variance': 0.7}) == 0.7


def test_a_value_that_is_not_learnt_is_not_watched(make_config, make_network):
  for cost, number in ((0.5, 1), (0.0, 0)):
    config = make_config(value_cost=cost)
    assert (
      len(learner_lib.learning_of(resolve.algorithm(config), make_network(config)).watches)
      == number
    )
