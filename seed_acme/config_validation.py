"""What a configuration must satisfy before anything is started."""

from __future__ import annotations

import math

from seed_acme import config as config_lib
from seed_acme import types


def validate(config: config_lib.ExperimentConfig) -> None:
  """Raises `types.UserError` for values that cannot work, naming value and fix."""
  _check_counts(config)
  _check_optimizer(config.agent.optimizer)
  config.agent.check()
  if isinstance(config.agent, config_lib.ReplayAgentConfig):
    _check_replay_memory(config.agent, config.replay)
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
  if replay.queue_size < agent.batch_size and not isinstance(agent, config_lib.ReplayAgentConfig):
    raise types.UserError(
      f'replay.queue_size ({replay.queue_size}) is smaller than agent.batch_size '
      f'({agent.batch_size}); the learner would wait for ever: raise replay.queue_size'
    )
  if config.inference.strictly_on_policy:
    _check_strictly_on_policy(config)
  _check_network(config)
  batch_size = config_lib.inference_batch_size(config)
  if batch_size > config_lib.num_environments(config):
    raise types.UserError(
      f'inference.batch_size ({batch_size}) exceeds the number of environments '
      f'({config_lib.num_environments(config)}): lower it, or leave it 0'
    )


def _check_network(config: config_lib.ExperimentConfig) -> None:
  agent, network = config.agent, config.network
  if config.learner.xla and not agent.makes_passes():
    raise types.UserError(
      f'learner.xla (True) compiles the passes of an agent over its samples, and {agent.agent} '
      'makes none: set it to False'
    )
  if config.learner.xla and network.core == 'lstm':
    raise types.UserError(
      "learner.xla (True) cannot compile network.core 'lstm', whose gradient "
      'is one fused operation: set it to False'
    )
  # A network of the user's own is looked at when it is made.
  has_memory = not network.module and (network.core != 'none' or network.frame_stack > 1)
  if has_memory and agent.learns_single_rows():
    raise types.UserError(
      "agent.minibatch_of ('transitions') needs a network without memory, and this one "
      f"(network.core '{network.core}', network.frame_stack {network.frame_stack}) has a state "
      "that runs along an unroll: choose 'unrolls'"
    )


def _check_strictly_on_policy(config: config_lib.ExperimentConfig) -> None:
  num_environments = config_lib.num_training_environments(config)
  if isinstance(config.agent, config_lib.ReplayAgentConfig):
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


def _check_replay_memory(
  agent: config_lib.ReplayAgentConfig, replay: config_lib.ReplayConfig
) -> None:
  if replay.unrolls_per_item != 1:
    raise types.UserError(
      f'replay.unrolls_per_item ({replay.unrolls_per_item}) must be 1 for an agent with a '
      'replay memory: each unroll is drawn by itself'
    )
  if agent.replay_min_size > agent.replay_capacity:
    raise types.UserError(
      f'agent.replay_min_size ({agent.replay_min_size}) exceeds agent.replay_capacity '
      f'({agent.replay_capacity}); the learner would wait for ever: lower it'
    )
  for name, value in (
    ('replay_min_size', agent.replay_min_size),
    ('replay_capacity', agent.replay_capacity),
  ):
    if value < 1:
      raise types.UserError(f'agent.{name} ({value}) must be >= 1')
  for name, exponent in (
    ('priority_exponent', agent.priority_exponent),
    ('importance_exponent', agent.importance_exponent),
  ):
    if not (math.isfinite(exponent) and exponent >= 0):
      raise types.UserError(f'agent.{name} ({exponent}) must be >= 0')
  if not (math.isfinite(agent.replay_ratio) and agent.replay_ratio > 0):
    raise types.UserError(f'agent.replay_ratio ({agent.replay_ratio}) must be > 0')


def _check_optimizer(config: config_lib.OptimizerConfig) -> None:
  if not config.epsilon > 0:
    raise types.UserError(
      f'agent.optimizer.epsilon ({config.epsilon}) must be > 0: the first update divides by it'
    )
  shares = {
    'adam_beta1': config.adam_beta1,
    'adam_beta2': config.adam_beta2,
    'rmsprop_decay': config.rmsprop_decay,
    'rmsprop_momentum': config.rmsprop_momentum,
  }
  for name, value in shares.items():
    if not 0 <= value < 1:
      raise types.UserError(f'agent.optimizer.{name} ({value}) must be in [0, 1)')


def _check_counts(config: config_lib.ExperimentConfig) -> None:
  at_least_one = {
    'num_actors': config.num_actors,
    'environments_per_actor': config.environments_per_actor,
    'total_steps': config.total_steps,
    'agent.unroll_length': config.agent.unroll_length,
    'agent.batch_size': config.agent.batch_size,
    'network.frame_stack': config.network.frame_stack,
    **{f'network.head_sizes[{i}]': n for i, n in enumerate(config.network.head_sizes)},
    'replay.unrolls_per_item': config.replay.unrolls_per_item,
    'inference.publish_period': config.inference.publish_period,
    'actor.max_failures': config.actor.max_failures,
    'checkpoint.keep': config.checkpoint.keep,
  }
  at_least_zero = {
    'num_evaluation_environments': config.num_evaluation_environments,
    'max_wall_s': config.max_wall_s,
    'seed': config.seed,
    'learner.log_period_s': config.learner.log_period_s,
    'learner.tensorflow_threads': config.learner.tensorflow_threads,
    'checkpoint.period_s': config.checkpoint.period_s,
    'actor.connect_timeout_s': config.actor.connect_timeout_s,
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
    'agent.optimizer.learning_rate': config.agent.optimizer.learning_rate,
    'agent.optimizer.max_gradient_norm': config.agent.optimizer.max_gradient_norm,
  }
  for bound, fields in ((1, at_least_one), (0, at_least_zero)):
    for name, value in fields.items():
      if not math.isfinite(value) or value < bound:
        raise types.UserError(f'{name} ({value}) must be >= {bound}')
