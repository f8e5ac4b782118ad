"""What a configuration must satisfy before anything is started."""

from __future__ import annotations

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.checks import field_types
from seed_acme.checks import numbers


def validate(config: config_lib.ExperimentConfig) -> None:
  """Raises `types.UserError` for values that cannot work, naming value and fix."""
  if not isinstance(config, config_lib.ExperimentConfig):
    raise types.UserError(
      f'config ({field_types.shown(config)}) is of type {type(config).__name__}; expected '
      'ExperimentConfig, as seed_acme.configs.registry.load(NAME) returns it'
    )
  field_types.check(config)
  _check_counts(config)
  layout_lib.Layout.of(config)
  if config.actor.python and config.transport.kind == 'courier':
    raise types.UserError(
      f'actor.python ({config.actor.python}) with transport.kind courier: courier is installed '
      "in the learner's Python only; set transport.kind auto or grpc"
    )
  if config.record_every and not config.num_evaluation_environments:
    raise types.UserError(
      f'record_every ({config.record_every}) films evaluation episodes, but '
      'num_evaluation_environments is 0: set num_evaluation_environments to 1 or more'
    )
  _check_network(config)
  config.agent.check(config)


def check_optimizer(optimizer: config_lib.OptimizerConfig, name: str) -> None:
  """For agents to call. name: of the field that holds the optimiser."""
  if not optimizer.epsilon > 0:
    raise types.UserError(
      f'{name}.epsilon ({optimizer.epsilon}) must be > 0: the first update divides by it'
    )
  of = lambda *fields: {f'{name}.{field}': getattr(optimizer, field) for field in fields}
  numbers.check_at_least_zero(of('learning_rate', 'max_gradient_norm'))
  for field, value in of('adam_beta1', 'adam_beta2', 'rmsprop_decay', 'rmsprop_momentum').items():
    if not 0 <= value < 1:
      raise types.UserError(f'{field} ({value}) must be in [0, 1)')


def _check_network(config: config_lib.ExperimentConfig) -> None:
  if config.learner.xla and config.network.core == 'lstm':
    raise types.UserError(
      "learner.xla (True) cannot compile network.core 'lstm', whose gradient "
      'is one fused operation: set it to False'
    )


def _check_counts(config: config_lib.ExperimentConfig) -> None:
  at_least_one = {
    'total_steps': config.total_steps,
    'agent.unroll_length': config.agent.unroll_length,
    'network.frame_stack': config.network.frame_stack,
    'network.core_size': config.network.core_size,
    'network.torso_output_size': config.network.torso_output_size,
    **{f'network.mlp_sizes[{i}]': n for i, n in enumerate(config.network.mlp_sizes)},
    **{f'network.head_sizes[{i}]': n for i, n in enumerate(config.network.head_sizes)},
    'inference.publish_period': config.inference.publish_period,
    'actor.max_failures': config.actor.max_failures,
    'checkpoint.keep': config.checkpoint.keep,
  }
  at_least_zero = {
    'record_every': config.record_every,
    'max_wall_s': config.max_wall_s,
    'learner.host_timeout_s': config.learner.host_timeout_s,
    'learner.stall_s': config.learner.stall_s,
    'learner.log_period_s': config.learner.log_period_s,
    'learner.tensorflow_threads': config.learner.tensorflow_threads,
    'checkpoint.period_s': config.checkpoint.period_s,
    'actor.connect_timeout_s': config.actor.connect_timeout_s,
    'actor.step_timeout_s': config.actor.step_timeout_s,
    'actor.reset_timeout_s': config.actor.reset_timeout_s,
    'agent.overlap': config.agent.overlap,
    'network.previous_reward_bound': config.network.previous_reward_bound,
    'network.hidden_gain': config.network.hidden_gain,
    'network.policy_head_gain': config.network.policy_head_gain,
    'network.value_head_gain': config.network.value_head_gain,
    'replay.prefetch_batches': config.replay.prefetch_batches,
    'transport.port': config.transport.port,
    'inference.timeout_ms': config.inference.timeout_ms,
  }
  numbers.check_counts(at_least_one, 1)
  numbers.check_counts(at_least_zero, 0)
