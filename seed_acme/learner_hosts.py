"""What a configuration for several learner hosts, or for shards of their replay, must satisfy."""

from __future__ import annotations

from seed_acme import config as config_lib
from seed_acme import sizes
from seed_acme import types
from seed_acme.checks import equal_parts


def check(config: config_lib.ExperimentConfig) -> None:
  """Raises `types.UserError`, naming value and fix."""
  number = config.num_learner_hosts
  if number == 1:
    return
  given = f'num_learner_hosts ({number})'
  if config.num_actors < number:
    raise types.UserError(
      f'{given} is more than num_actors ({config.num_actors}), which are dealt out over the '
      'hosts: change one of them'
    )
  equal_parts.check(sizes.divided(config), number, given)
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


def check_launch(config: config_lib.ExperimentConfig, how: str) -> None:
  """how: the run is started on this machine, as the user said it. Only `local_mp` starts several
  learner hosts here."""
  if config.num_learner_hosts > 1 and how not in ('local_mp', 'auto'):
    raise types.UserError(
      f'num_learner_hosts ({config.num_learner_hosts}) needs --launch=local_mp, where each host is '
      f'a process; with {how} set it to 1'
    )


def check_shards(config: config_lib.ExperimentConfig) -> None:
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


def check_shards_beside(config: config_lib.ExperimentConfig) -> None:
  """Raises `types.UserError` where replay nodes would be on other machines: there is one at most.
  Shards within the learner can be anywhere."""
  shards = config.replay.num_shards
  if config.replay.separate_process and shards > 1:
    raise types.UserError(
      f'replay.num_shards ({shards}) with replay.separate_process needs --launch=local_mp, where '
      'each shard is a process of this machine: set one of them back, to 1 or to False'
    )
