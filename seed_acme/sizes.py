"""Sizes that follow from a configuration: environments, rows of a batch, unrolls."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from seed_acme import config as config_lib


def num_training_environments(config: config_lib.ExperimentConfig) -> int:
  """Training environments have ids 0 ... n-1, evaluation environments follow."""
  return config.num_actors * config.environments_per_actor


def num_environments(config: config_lib.ExperimentConfig) -> int:
  """All environments, training and evaluation."""
  return num_training_environments(config) + config.num_evaluation_environments


def learner_host(config: config_lib.ExperimentConfig, actor: int) -> int:
  """Which learner host an actor belongs to: they are dealt out in turn."""
  return actor % config.num_learner_hosts


def share(config: config_lib.ExperimentConfig) -> config_lib.ExperimentConfig:
  """The replay of one learner host: what it draws for an update, and what it keeps."""
  return _part(config, config.num_learner_hosts)


def shard(config: config_lib.ExperimentConfig) -> config_lib.ExperimentConfig:
  """The same of one replay shard of one learner host."""
  return _part(config, config.num_learner_hosts * config.replay.num_shards)


def divided(config: config_lib.ExperimentConfig) -> dict[str, int]:
  """What the parts of `share` and `shard` divide, by field."""
  spec = config.agent.replay_spec()
  batch = {'agent.batch_size': config.agent.batch_size}
  if not spec.is_memory:
    return {**batch, 'replay.queue_size': config.replay.queue_size}
  memory = {'agent.replay_capacity': spec.capacity, 'agent.replay_min_size': spec.min_size}
  return {**batch, **memory}


def replay_shard(config: config_lib.ExperimentConfig, env_ids: np.ndarray) -> np.ndarray:
  """Which shard of its host each training environment belongs to, for life: that of its actor,
  dealt out in turn."""
  actors = env_ids // config.environments_per_actor
  return actors // config.num_learner_hosts % config.replay.num_shards


def replay_port(config: config_lib.ExperimentConfig, shard: int) -> int:
  """Where a shard of the first learner host is served; 0 = any free port."""
  return config.replay.port and config.replay.port + shard


def _part(config: config_lib.ExperimentConfig, number: int) -> config_lib.ExperimentConfig:
  """One of so many equal parts of the replay."""
  if number == 1:
    return config
  agent = config.agent.share(number)
  replay = dataclasses.replace(
    config.replay,
    queue_size=config.replay.queue_size // number,
    unrolls_per_item=math.gcd(config.replay.unrolls_per_item, agent.batch_size),
  )
  return dataclasses.replace(config, agent=agent, replay=replay)


def inference_batch_size(config: config_lib.ExperimentConfig) -> int:
  """Rows at which the server runs a batch without waiting for the time-out."""
  return inference_batch_size_on(config, 0, 1)


def inference_batch_size_on(
  config: config_lib.ExperimentConfig, device: int, num_devices: int, host: int = 0
) -> int:
  """The same of one of several inference devices: half of the environments that are its own.

  host: of the device, among the learner hosts.
  """
  hosts = config.num_learner_hosts
  num_actors = len(range(host + device * hosts, config.num_actors, num_devices * hosts))
  if config.inference.batch_size and num_devices == hosts == 1:  # evaluation may share it
    return config.inference.batch_size
  if config.inference.batch_size:
    return min(config.inference.batch_size, num_actors * config.environments_per_actor)
  num_groups = num_actors * config.actor.environment_groups
  return num_actors * config.environments_per_actor // min(2, num_groups)


def inference_device(config: config_lib.ExperimentConfig, env_id: int, num_devices: int) -> int:
  """Which inference device of its host an environment belongs to: that of its actor, dealt out in
  turn."""
  actor = min(env_id // config.environments_per_actor, config.num_actors)  # the last one evaluates
  return actor // config.num_learner_hosts % num_devices


def unroll_rows(agent: config_lib.AgentConfig) -> int:
  """L, the rows of an unroll."""
  return agent.overlap + agent.unroll_length + 1


def unrolls_per_update(config: config_lib.ExperimentConfig) -> int:
  """Unrolls that each training environment gives to a strictly on-policy update."""
  return config.agent.batch_size // num_training_environments(config)


def writer_backlog(config: config_lib.ExperimentConfig) -> int:
  """Finished unrolls that may wait for the replay writer."""
  return config.replay.writer_backlog or config.agent.batch_size
