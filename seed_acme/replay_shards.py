"""What a configuration for several replay shards must satisfy."""

from __future__ import annotations

from seed_acme import config as config_lib
from seed_acme import sizes
from seed_acme import types
from seed_acme.checks import equal_parts


def check(config: config_lib.ExperimentConfig) -> None:
  """Raises `types.UserError`, naming value and fix.

  Each shard gets as much as every other: a batch has equal parts of all of them, so what comes
  faster into one would only wait.
  """
  shards, hosts = config.replay.num_shards, config.num_learner_hosts
  if shards == 1:
    return
  given = f'replay.num_shards ({shards})'
  if hosts > 1:
    given = f'{given} x num_learner_hosts ({hosts})'
  equal_parts.check(
    {'num_actors': config.num_actors, **sizes.divided(config)}, shards * hosts, given
  )


def check_beside(config: config_lib.ExperimentConfig) -> None:
  """Raises `types.UserError` where replay nodes would be on other machines: there is one at most.
  Shards within the learner can be anywhere."""
  shards = config.replay.num_shards
  if config.replay.separate_process and shards > 1:
    raise types.UserError(
      f'replay.num_shards ({shards}) with replay.separate_process needs --launch=local_mp, where '
      'each shard is a process of this machine: set one of them back, to 1 or to False'
    )
