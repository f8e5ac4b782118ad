"""Checks for numbers of a configuration that cannot be combined, however the run is launched."""

from __future__ import annotations

from collections.abc import Mapping

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.checks import device_names


def check(config: config_lib.ExperimentConfig) -> None:
  """Raises `types.UserError`, naming the values and the fix."""
  bounds.check(config)
  _check_unrolls(config)
  if config.inference.strictly_on_policy:
    _check_strictly_on_policy(config)
  _check_learners(config)
  _check_shards(config)
  _check_devices(config)
  num_environments = (
    config.num_actors * config.environments_per_actor + config.num_evaluation_environments
  )
  if config.inference.batch_size > num_environments:
    raise types.UserError(
      f'inference.batch_size ({config.inference.batch_size}) exceeds the number of environments '
      f'({num_environments}): lower it, or leave it 0'
    )


def _check_unrolls(config: config_lib.ExperimentConfig) -> None:
  agent, replay = config.agent, config.replay
  if config.environments_per_actor % config.actor.environment_groups:
    raise types.UserError(
      f'environments_per_actor ({config.environments_per_actor}) is not a multiple of '
      f'actor.environment_groups ({config.actor.environment_groups}): change one of them'
    )
  if replay.unrolls_per_item and agent.batch_size % replay.unrolls_per_item:
    raise types.UserError(
      f'agent.batch_size ({agent.batch_size}) is not a multiple of '
      f'replay.unrolls_per_item ({replay.unrolls_per_item}): change one of them'
    )
  if agent.replay_spec().is_memory:
    if replay.unrolls_per_item != 1:
      raise types.UserError(
        f'replay.unrolls_per_item ({replay.unrolls_per_item}) must be 1 for an agent with a '
        'replay memory: each unroll is drawn by itself'
      )
  elif replay.queue_size < agent.batch_size:
    raise types.UserError(
      f'replay.queue_size ({replay.queue_size}) is smaller than agent.batch_size '
      f'({agent.batch_size}); the learner would wait for ever: raise replay.queue_size'
    )


def _check_strictly_on_policy(config: config_lib.ExperimentConfig) -> None:
  num_environments = config.num_actors * config.environments_per_actor
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


def _check_learners(config: config_lib.ExperimentConfig) -> None:
  number = config.num_learner_hosts
  if number == 1:
    return
  given = f'num_learner_hosts ({number})'
  if config.num_actors < number:
    raise types.UserError(
      f'{given} is more than num_actors ({config.num_actors}), which are dealt out over the '
      'hosts: change one of them'
    )
  _check_equal_parts(_divided(config), number, given)
  if config.inference.strictly_on_policy and config.num_actors % number:
    raise types.UserError(
      f'num_actors ({config.num_actors}) is not a multiple of {given}, as '
      'inference.strictly_on_policy needs: change one of them'
    )
  if config.learner.xla:
    raise types.UserError(
      f'learner.xla (True) compiles for one device; {given} are several: change one of them'
    )
  if config.replay.separate_process:
    raise types.UserError(
      f'replay.separate_process (True) with {given}: each host serves its own replay; set it to '
      'False'
    )
  if config.learner.host_timeout_s <= 0:
    raise types.UserError(
      f'learner.host_timeout_s ({config.learner.host_timeout_s}) must be > 0 with {given}'
    )


def _check_shards(config: config_lib.ExperimentConfig) -> None:
  """Checks that shards get equal parts. A batch has equal parts of all of them, so a shard that got
  more would only wait for the others."""
  shards, hosts = config.replay.num_shards, config.num_learner_hosts
  if shards == 1:
    return
  given = f'replay.num_shards ({shards})'
  if hosts > 1:
    given = f'{given} x num_learner_hosts ({hosts})'
  _check_equal_parts({'num_actors': config.num_actors, **_divided(config)}, shards * hosts, given)


def _divided(config: config_lib.ExperimentConfig) -> dict[str, int]:
  """Returns the values that hosts and shards have equal parts of, by field."""
  spec = config.agent.replay_spec()
  batch = {'agent.batch_size': config.agent.batch_size}
  if not spec.is_memory:
    return {**batch, 'replay.queue_size': config.replay.queue_size}
  memory = {'agent.replay_capacity': spec.capacity, 'agent.replay_min_size': spec.min_size}
  return {**batch, **memory}


def _check_equal_parts(values: Mapping[str, int], number: int, given: str) -> None:
  """Raises `types.UserError` for a value that cannot be divided into `number` equal parts.

  values: by the fields' names. given: the fields that require `number` parts, with their values.
  """
  for name, value in values.items():
    if value % number:
      raise types.UserError(
        f'{name} ({value}) is not a multiple of {given}, which have equal shares: change one of '
        'them'
      )


def _check_devices(config: config_lib.ExperimentConfig) -> None:
  """Checks what does not depend on the devices that there are."""
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
