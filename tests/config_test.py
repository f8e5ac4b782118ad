"""Values that cannot work are refused with their name and a fix."""

import dataclasses

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.agents.on_policy import presets
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.inference import noise


def _experiment(**fields):
  return config_lib.ExperimentConfig(
    name='test',
    environment=config_lib.EnvironmentConfig(id='catch'),
    agent=fields.pop('agent', presets.vtrace()),
    **fields,
  )


def _optimizer(**fields):
  return presets.vtrace(optimizer=config_lib.OptimizerConfig(**fields))


@pytest.mark.parametrize(
  'fields, named',
  [
    ({'num_actors': 0}, r'num_actors \(0\)'),
    ({'record_every': 500}, r'record_every \(500\) .* num_evaluation_environments to 1'),
    ({'record_every': -1, 'num_evaluation_environments': 1}, r'record_every \(-1\)'),
    ({'total_steps': 0}, r'total_steps \(0\)'),
    ({'seed': -1}, r'seed \(-1\) must be in \[0, 18446744073709551615\]'),
    ({'seed': 2**64}, r'seed \(18446744073709551616\) must be in'),
    ({'max_wall_s': float('nan')}, r'max_wall_s \(nan\)'),
    ({'agent': presets.vtrace(unroll_length=0)}, r'agent.unroll_length \(0\)'),
    ({'agent': presets.vtrace(overlap=-1)}, r'agent.overlap \(-1\)'),
    ({'agent': _optimizer(epsilon=0.0)}, r'agent.optimizer.epsilon \(0.0\)'),
    ({'agent': _optimizer(adam_beta2=1.0)}, r'agent.optimizer.adam_beta2 \(1.0\)'),
    ({'agent': _optimizer(learning_rate=-1.0)}, r'agent.optimizer.learning_rate \(-1.0\)'),
    *(
      ({'agent': presets.vtrace(**{name: value})}, rf'agent.{name} \({value}\) {said}')
      for name, value, said in (
        ('discount', 1.5, 'must be in'),
        ('lambda_', -0.1, 'must be in'),
        ('discount', float('nan'), 'must be in'),
        ('rho_clip', 0.0, 'must be > 0'),
        ('c_clip', -1.0, 'must be > 0'),
        ('policy_rho_clip', float('nan'), 'must be > 0'),
        ('value_cost', -0.5, 'must be >= 0'),
        ('kl_cost', float('inf'), 'must be a finite'),
        ('max_abs_reward', -1.0, 'must be >= 0'),
      )
    ),
    ({'network': config_lib.NetworkConfig(hidden_gain=-1.0)}, r'network.hidden_gain \(-1.0\)'),
    ({'network': config_lib.NetworkConfig(mlp_sizes=(64, 0))}, r'network.mlp_sizes\[1\] \(0\)'),
    ({'network': config_lib.NetworkConfig(core_size=-1)}, r'network.core_size \(-1\)'),
    (
      {'environments_per_actor': 3, 'actor': config_lib.ActorConfig(environment_groups=2)},
      r'environments_per_actor \(3\)',
    ),
    ({'replay': config_lib.ReplayConfig(unrolls_per_item=5)}, r'replay.unrolls_per_item \(5\)'),
    ({'replay': config_lib.ReplayConfig(queue_size=31)}, r'replay.queue_size \(31\)'),
    ({'replay': config_lib.ReplayConfig(prefetch_batches=-1)}, r'replay.prefetch_batches \(-1\)'),
    ({'inference': config_lib.InferenceConfig(batch_size=65)}, r'inference.batch_size \(65\)'),
  ],
)
def test_a_value_that_cannot_work_is_named(fields, named):
  with pytest.raises(types.UserError, match=named):
    config_validation.validate(_experiment(**fields))


def test_the_greatest_seed_that_is_allowed_can_be_used():
  config = _experiment(seed=2**64 - 1)
  config_validation.validate(config)
  assert noise.stream_keys(config.seed, np.arange(3), np.zeros(3)).size == 3


def test_defaults_work():
  config_validation.validate(_experiment())


@pytest.mark.parametrize('name', ['rho_clip', 'c_clip', 'policy_rho_clip'])
def test_importance_weights_may_go_without_a_bound(name):
  config_validation.validate(_experiment(agent=presets.vtrace(**{name: float('inf')})))


def _strict(batch_size=32, publish_period=1, agent=None, **fields):
  """Returns an experiment with two actors of eight environments."""
  return _experiment(
    agent=agent or presets.vtrace(batch_size=batch_size),
    num_actors=2,
    environments_per_actor=8,
    **fields,
    inference=config_lib.InferenceConfig(strictly_on_policy=True, publish_period=publish_period),
  )


@pytest.mark.parametrize('batch_size, num_unrolls', [(16, 1), (32, 2), (80, 5)])
def test_strictly_on_policy_every_environment_gives_as_many_unrolls(batch_size, num_unrolls):
  config = _strict(batch_size)
  config_validation.validate(config)
  assert layout_lib.Layout.of(config).unrolls_per_update == num_unrolls


@pytest.mark.parametrize(
  'fields, named',
  [
    ({'batch_size': 24}, r'agent.batch_size \(24\).*training environments \(16\)'),
    ({'batch_size': 8}, r'agent.batch_size \(8\).*training environments \(16\)'),
    ({'publish_period': 2}, r'inference.publish_period \(2\) must be 1'),
    (
      {'agent': r2d2_config.R2D2Config(batch_size=32)},
      r'inference.strictly_on_policy \(True\).*r2d2 learns from a memory',
    ),
  ],
)
def test_what_cannot_be_strictly_on_policy_is_named_and_allowed_otherwise(fields, named):
  config = _strict(**fields)
  with pytest.raises(types.UserError, match=named) as error:
    config_validation.validate(config)
  assert len(str(error.value).splitlines()) <= 4
  config_validation.validate(
    dataclasses.replace(
      config, inference=dataclasses.replace(config.inference, strictly_on_policy=False)
    )
  )


def test_evaluation_environments_give_nothing_to_an_update():
  config_validation.validate(_strict(batch_size=16, num_evaluation_environments=3))


@pytest.mark.parametrize(
  'num_actors, groups, expected',
  [(1, 1, 32), (1, 2, 16), (2, 1, 32), (4, 1, 64), (4, 2, 64), (3, 1, 32), (5, 1, 64), (3, 2, 48)],
)
def test_the_automatic_batch_is_half_of_the_environments_in_whole_groups(
  num_actors, groups, expected
):
  config = _experiment(
    num_actors=num_actors,
    environments_per_actor=32,
    actor=config_lib.ActorConfig(environment_groups=groups),
  )
  assert layout_lib.Layout.of(config).batch_rows(0, 1)[0] == expected
  chosen = dataclasses.replace(config, inference=config_lib.InferenceConfig(batch_size=7))
  assert layout_lib.Layout.of(chosen).batch_rows(0, 1)[0] == 7


@pytest.mark.parametrize(
  'batch_size, expected', [(0, [32, 32]), (48, [48, 32]), (96, [64, 32]), (7, [7, 7])]
)
def test_a_device_waits_for_no_more_than_the_environments_of_its_own(batch_size, expected):
  """Three actors of 32 environments on two devices: the first device has two of them."""
  inference = config_lib.InferenceConfig(batch_size=batch_size)
  config = _experiment(num_actors=3, environments_per_actor=32, inference=inference)
  assert layout_lib.Layout.of(config).batch_rows(0, 2) == tuple(expected)


def test_unroll_rows_and_backlog():
  config = _experiment(agent=presets.vtrace(unroll_length=20, overlap=40))
  assert config.agent.unroll_rows == 61
  assert (
    layout_lib.Layout.of(config).learners[0].shards[0].writer_backlog == config.agent.batch_size
  )
