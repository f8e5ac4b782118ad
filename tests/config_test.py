"""Values that cannot work are refused with their name and a way out."""
import dataclasses

import pytest

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import types
from seed_acme.agents.vtrace import config as vtrace_config


def _experiment(**fields):
  return config_lib.ExperimentConfig(
      name='test', environment=config_lib.EnvironmentConfig(id='catch'),
      agent=fields.pop('agent', vtrace_config.VTraceConfig()), **fields)


def _optimizer(**fields):
  return vtrace_config.VTraceConfig(optimizer=config_lib.OptimizerConfig(**fields))


@pytest.mark.parametrize('fields, named', [
    ({'num_actors': 0}, r'num_actors \(0\)'),
    ({'total_steps': 0}, r'total_steps \(0\)'),
    ({'max_wall_s': float('nan')}, r'max_wall_s \(nan\)'),
    ({'agent': vtrace_config.VTraceConfig(unroll_length=0)}, r'agent.unroll_length \(0\)'),
    ({'agent': vtrace_config.VTraceConfig(overlap=-1)}, r'agent.overlap \(-1\)'),
    ({'agent': _optimizer(epsilon=0.0)}, r'agent.optimizer.epsilon \(0.0\)'),
    ({'agent': _optimizer(adam_beta2=1.0)}, r'agent.optimizer.adam_beta2 \(1.0\)'),
    ({'agent': _optimizer(learning_rate=-1.0)}, r'agent.optimizer.learning_rate \(-1.0\)'),
    ({'environments_per_actor': 3, 'actor': config_lib.ActorConfig(environment_groups=2)},
     r'environments_per_actor \(3\)'),
    ({'replay': config_lib.ReplayConfig(unrolls_per_item=5)}, r'replay.unrolls_per_item \(5\)'),
    ({'replay': config_lib.ReplayConfig(queue_size=31)}, r'replay.queue_size \(31\)'),
    ({'inference': config_lib.InferenceConfig(batch_size=65)}, r'inference.batch_size \(65\)'),
])
def test_a_value_that_cannot_work_is_named(fields, named):
  with pytest.raises(types.UserError, match=named):
    config_validation.validate(_experiment(**fields))


def test_defaults_work():
  config_validation.validate(_experiment())


@pytest.mark.parametrize('num_actors, groups, expected', [
    (1, 1, 32), (1, 2, 16), (2, 1, 32), (4, 1, 64), (4, 2, 64)])
def test_the_automatic_batch_is_half_of_the_environments(num_actors, groups, expected):
  config = _experiment(num_actors=num_actors, environments_per_actor=32,
                       actor=config_lib.ActorConfig(environment_groups=groups))
  assert config_lib.inference_batch_size(config) == expected
  chosen = dataclasses.replace(config, inference=config_lib.InferenceConfig(batch_size=7))
  assert config_lib.inference_batch_size(chosen) == 7


def test_unroll_rows_and_backlog():
  config = _experiment(agent=vtrace_config.VTraceConfig(unroll_length=20, overlap=40))
  assert config_lib.unroll_rows(config.agent) == 61
  assert config_lib.writer_backlog(config) == config.agent.batch_size
