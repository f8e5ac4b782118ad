"""What a configuration must satisfy before anything is started."""

from __future__ import annotations

import math

from seed_acme import config as config_lib
from seed_acme import learner_hosts
from seed_acme import sizes
from seed_acme import types
from seed_acme.checks import device_names
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
  agent, replay = config.agent, config.replay
  if config.environments_per_actor % config.actor.environment_groups:
    raise types.UserError(
      f'environments_per_actor ({config.environments_per_actor}) is not a multiple of '
      f'actor.environment_groups ({config.actor.environment_groups}): change one of them'
    )
  if agent.batch_size % replay.unrolls_per_item:
    raise types.UserError(
      f'agent.batch_size ({agent.batch_size}) is not a multiple of '
      f'replay.unrolls_per_item ({replay.unrolls_per_item}): change one of them'
    )
  if agent.replay_spec().is_memory:
    _check_memory(config)
  elif replay.queue_size < agent.batch_size:
    raise types.UserError(
      f'replay.queue_size ({replay.queue_size}) is smaller than agent.batch_size '
      f'({agent.batch_size}); the learner would wait for ever: raise replay.queue_size'
    )
  if config.inference.strictly_on_policy:
    _check_strictly_on_policy(config)
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
  learner_hosts.check(config)
  learner_hosts.check_shards(config)
  _check_devices(config)
  batch_size = sizes.inference_batch_size(config)
  if batch_size > sizes.num_environments(config):
    raise types.UserError(
      f'inference.batch_size ({batch_size}) exceeds the number of environments '
      f'({sizes.num_environments(config)}): lower it, or leave it 0'
    )
  agent.check(config)


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


def _check_devices(config: config_lib.ExperimentConfig) -> None:
  """What can be said before it is known which devices there are."""
  learner = config.learner
  training, inference = (
    device_names.number_of(device_names.parse(getattr(learner, field), f'learner.{field}'))
    for field in ('training_devices', 'inference_devices')
  )
  if training > config.agent.batch_size:
    raise types.UserError(
      f'learner.training_devices ({learner.training_devices}) are more than the unrolls of '
      f'agent.batch_size ({config.agent.batch_size}), which they share: change one of them'
    )
  if training > 1 and learner.xla:
    raise types.UserError(
      f'learner.xla (True) compiles for one device; learner.training_devices '
      f'({learner.training_devices}) are several: change one of them'
    )
  num_actors = config.num_actors // config.num_learner_hosts
  if inference > num_actors:
    whose = 'num_actors' if config.num_learner_hosts == 1 else 'the actors of a learner host'
    raise types.UserError(
      f'learner.inference_devices ({learner.inference_devices}) are more than {whose} '
      f'({num_actors}), which are dealt out over them: change one of them'
    )


def _check_strictly_on_policy(config: config_lib.ExperimentConfig) -> None:
  num_environments = sizes.num_training_environments(config)
  if config.agent.replay_spec().is_memory:
    raise types.UserError(
      'inference.strictly_on_policy (True) needs an agent that learns each unroll once; '
      f'{config.agent.agent} learns from a memory: set it to False'
    )
  if config.agent.batch_size % num_environments:
    raise types.UserError(
      f'agent.batch_size ({config.agent.batch_size}) is not a multiple of the number of '
      f'training environments ({num_environments}), as inference.strictly_on_policy needs: '
      'change num_actors, environments_per_actor or agent.batch_size'
    )
  if config.inference.publish_period != 1:
    raise types.UserError(
      f'inference.publish_period ({config.inference.publish_period}) must be 1 with '
      'inference.strictly_on_policy: actors wait for every update'
    )


def _check_memory(config: config_lib.ExperimentConfig) -> None:
  if config.replay.unrolls_per_item != 1:
    raise types.UserError(
      f'replay.unrolls_per_item ({config.replay.unrolls_per_item}) must be 1 for an agent with a '
      'replay memory: each unroll is drawn by itself'
    )


def _check_counts(config: config_lib.ExperimentConfig) -> None:
  at_least_one = {
    'num_learner_hosts': config.num_learner_hosts,
    'num_actors': config.num_actors,
    'environments_per_actor': config.environments_per_actor,
    'total_steps': config.total_steps,
    'agent.unroll_length': config.agent.unroll_length,
    'agent.batch_size': config.agent.batch_size,
    'network.frame_stack': config.network.frame_stack,
    'network.core_size': config.network.core_size,
    'network.torso_output_size': config.network.torso_output_size,
    **{f'network.mlp_sizes[{i}]': n for i, n in enumerate(config.network.mlp_sizes)},
    **{f'network.head_sizes[{i}]': n for i, n in enumerate(config.network.head_sizes)},
    'replay.unrolls_per_item': config.replay.unrolls_per_item,
    'replay.num_shards': config.replay.num_shards,
    'inference.publish_period': config.inference.publish_period,
    'actor.max_failures': config.actor.max_failures,
    'checkpoint.keep': config.checkpoint.keep,
  }
  at_least_zero = {
    'num_evaluation_environments': config.num_evaluation_environments,
    'record_every': config.record_every,
    'max_wall_s': config.max_wall_s,
    'seed': config.seed,
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
    'replay.writer_backlog': config.replay.writer_backlog,
    'replay.prefetch_batches': config.replay.prefetch_batches,
    'replay.port': config.replay.port,
    'transport.port': config.transport.port,
    'inference.batch_size': config.inference.batch_size,
    'inference.timeout_ms': config.inference.timeout_ms,
  }
  for bound, fields in ((1, at_least_one), (0, at_least_zero)):
    for name, value in fields.items():
      if not math.isfinite(value) or value < bound:
        raise types.UserError(f'{name} ({value}) must be >= {bound}')
