"""The layout of a run: who acts for whom, on which learner host, replay shard and device.

What follows from the counts of a configuration is decided here, and looked up here by all other
code. No TensorFlow in here: actor processes import it.
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import functools
import math

import numpy as np

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import layout_checks


@dataclasses.dataclass(frozen=True)
class Actor:
  """A process that steps environments.

  learner: the host that acts for it. shard: the shard of that host's replay that gets its unrolls;
  None = it evaluates. groups: env_ids of the environments that are stepped together.
  """

  index: int
  learner: int
  shard: int | None
  groups: tuple[range, ...]

  @property
  def env_ids(self) -> range:
    """The env_ids of all its environments."""
    return range(self.groups[0].start, self.groups[-1].stop)


@dataclasses.dataclass(frozen=True)
class Shard:
  """One Reverb server, which holds a part of the replay.

  port: 0 = any free one. spec: describes its table. queue_size: unrolls that a queue holds.
  batch_size: unrolls that an update draws from it. unrolls_per_item: unrolls in a Reverb item.
  writer_backlog: finished unrolls that may wait for its writer.
  """

  index: int
  port: int
  spec: core.ReplaySpec
  queue_size: int
  batch_size: int
  unrolls_per_item: int
  writer_backlog: int


@dataclasses.dataclass(frozen=True)
class Device:
  """An inference device. name: TensorFlow's. rows: number at which a batch is run immediately."""

  name: str
  rows: int


@dataclasses.dataclass(frozen=True)
class Learner:
  """A process that acts and learns.

  batch_size: unrolls that it contributes to an update. shards: shards of its replay. devices:
  inference devices; () = not chosen yet.
  """

  index: int
  batch_size: int
  shards: tuple[Shard, ...]
  devices: tuple[Device, ...] = ()


@dataclasses.dataclass(frozen=True)
class Layout:
  """The layout of one run; `print` shows it.

  Training environments have env_ids 0 ... num_training - 1. Evaluation environments follow, and
  belong to the last actor.

  seed: seed of the run. unrolls_per_update: unrolls that each training environment contributes to a
    strictly on-policy update; 0 = updates are not strictly on-policy. has_replay_nodes: the shards
    are separate processes. inference_rows: as configured, 0 = by the number of environments.
  """

  seed: int
  num_training: int
  num_evaluation: int
  learners: tuple[Learner, ...]
  actors: tuple[Actor, ...]
  unrolls_per_update: int
  has_replay_nodes: bool
  inference_rows: int

  @classmethod
  def of(cls, config: config_lib.ExperimentConfig) -> Layout:
    """Derives the layout of a configuration.

    Raises `types.UserError` for numbers that cannot be combined, naming the values and the fix.
    """
    layout_checks.check(config)
    num_training = config.num_actors * config.environments_per_actor
    num_evaluation = config.num_evaluation_environments
    learners = range(config.num_learner_hosts)
    unrolls = config.agent.batch_size // num_training
    return cls(
      seed=config.seed,
      num_training=num_training,
      num_evaluation=num_evaluation,
      learners=tuple(
        Learner(i, config.agent.batch_size // len(learners), _shards(config, i)) for i in learners
      ),
      actors=tuple(_actor(config, i) for i in range(config.num_actors + bool(num_evaluation))),
      unrolls_per_update=unrolls if config.inference.strictly_on_policy else 0,
      has_replay_nodes=config.replay.separate_process,
      inference_rows=config.inference.batch_size,
    )

  @property
  def num_environments(self) -> int:
    """Number of training and evaluation environments."""
    return self.num_training + self.num_evaluation

  @property
  def num_training_actors(self) -> int:
    """Number of training actors; the one that evaluates, if there is one, comes after them."""
    return len(self.actors) - bool(self.num_evaluation)

  @property
  def has_several_learners(self) -> bool:
    """Whether several hosts learn together."""
    return len(self.learners) > 1

  @property
  def exchanging(self) -> tuple[Learner, ...]:
    """Learner hosts that exchange gradients; () if there is only one."""
    return self.learners if self.has_several_learners else ()

  @property
  def is_sharded(self) -> bool:
    """Whether a host has several Reverb servers."""
    return len(self.learners[0].shards) > 1

  @property
  def environments_per_group(self) -> int:
    """Number of environments in each group of a training actor."""
    return len(self.actors[0].groups[0])

  def actor_of(self, env_id: int) -> Actor:
    """Returns the actor that steps this environment."""
    return self.actors[min(env_id // len(self.actors[0].env_ids), self.num_training_actors)]

  def actors_of(self, learner: int) -> tuple[Actor, ...]:
    """Returns the training actors of a learner host."""
    its = (actor for actor in self.actors if actor.learner == learner)
    return tuple(actor for actor in its if actor.shard is not None)

  def shards_of(self, env_ids: np.ndarray) -> np.ndarray:
    """Returns the shards of their host that the unrolls of training environments always go to."""
    return self._shard_of_env[env_ids]

  @functools.cached_property
  def _shard_of_env(self) -> np.ndarray:
    training = self.actors[: self.num_training_actors]
    return np.concatenate([np.full(len(actor.env_ids), actor.shard) for actor in training])

  def with_devices(self, learner: int, names: Sequence[str]) -> Layout:
    """Returns the layout with a host's inference devices, over which its actors are distributed."""
    devices = tuple(map(Device, names, self.batch_rows(learner, len(names))))
    its_learner = dataclasses.replace(self.learners[learner], devices=devices)
    replaced = (*self.learners[:learner], its_learner, *self.learners[learner + 1 :])
    return dataclasses.replace(self, learners=replaced)

  def batch_rows(self, learner: int, num_devices: int) -> tuple[int, ...]:
    """Returns the number of rows at which each of a host's devices runs a batch immediately: by
    default half of its training environments, so that the others step meanwhile. That is rounded
    down to whole groups, which come as one request: half a group would only be waited for."""
    if self.inference_rows and num_devices == len(self.learners) == 1:
      return (self.inference_rows,)  # evaluation may share the batch
    rows = []
    for device in range(num_devices):
      its = [a for a in self.actors_of(learner) if self._device(a, num_devices) == device]
      number = sum(len(actor.env_ids) for actor in its)
      half = number // max(1, min(2, sum(len(actor.groups) for actor in its)))
      half -= half % self.environments_per_group
      rows.append(min(self.inference_rows, number) if self.inference_rows else half)
    return tuple(rows)

  def device_of(self, env_id: int) -> int:
    """Returns which of its host's inference devices acts for an environment: its actor's.

    Raises ValueError if the devices of that learner host are not known, because it is not this one.
    """
    actor = self.actor_of(env_id)
    devices = self.learners[actor.learner].devices
    if not devices:
      raise ValueError(f'environment {env_id} belongs to learner/{actor.learner}, not to this host')
    return self._device(actor, len(devices))

  def _device(self, actor: Actor, num_devices: int) -> int:
    return actor.index // len(self.learners) % num_devices

  def __str__(self) -> str:
    of_training, of_evaluation = f'{self.num_training:,} training', f'{self.num_evaluation:,}'
    lines = [f'{of_training} and {of_evaluation} evaluation environments, seed {self.seed}']
    for learner in self.learners:
      devices = ', '.join(f'{device.name} ({device.rows} rows)' for device in learner.devices)
      lines.append(
        f'learner/{learner.index}: {learner.batch_size} unrolls of an update; acts on: '
        f'{devices or "chosen on the host"}'
      )
      for shard in learner.shards:
        lines.append(f'  {self._shown(shard)}')
        lines += [
          f'    {_shown_actor(actor)}'
          for actor in self.actors
          if (actor.learner, actor.shard) == (learner.index, shard.index)
        ]
      lines += [
        f'  {_shown_actor(actor)}, evaluates'
        for actor in self.actors
        if actor.learner == learner.index and actor.shard is None
      ]
    return '\n'.join(lines)

  def _shown(self, shard: Shard) -> str:
    spec = shard.spec
    table = f'queue of {shard.queue_size:,} unrolls'
    if spec.is_memory:
      table = f'{spec.kind} memory of {spec.capacity:,} unrolls, drawn from after {spec.min_size:,}'
    where = 'a process of its own' if self.has_replay_nodes else 'within the learner'
    return (
      f'replay/{shard.index}, {where}: {table}, {shard.batch_size} for an update, '
      f'port {shard.port or "any"}'
    )


def group_seed(seed: int, group: range, attempt: int) -> int:
  """Returns the seed of a group's environments. It differs by attempt, so that a restarted actor
  does not repeat the same episodes. seed: seed of the run. attempt: number of earlier starts."""
  return int(np.random.SeedSequence([seed, group.start, attempt]).generate_state(1)[0])


def _shown_actor(actor: Actor) -> str:
  ids, groups = actor.env_ids, len(actor.groups)
  of_groups = f' in {groups} groups' if groups > 1 else ''
  return f'actor/{actor.index}: environments {ids[0]} ... {ids[-1]}{of_groups}'


def _actor(config: config_lib.ExperimentConfig, index: int) -> Actor:
  """Makes an actor. Actors go to the learner hosts in turn, and those of a host to its shards."""
  turn, learner = divmod(index, config.num_learner_hosts)
  each = config.environments_per_actor
  first = index * each
  if index == config.num_actors:
    evaluation = range(first, first + config.num_evaluation_environments)
    return Actor(index, learner, None, (evaluation,))
  size = each // config.actor.environment_groups
  groups = tuple(range(start, start + size) for start in range(first, first + each, size))
  return Actor(index, learner, turn % config.replay.num_shards, groups)


def _shards(config: config_lib.ExperimentConfig, learner: int) -> tuple[Shard, ...]:
  """Makes equal parts of the replay. Only the first learner host's have the configured ports."""
  replay, number = config.replay, config.num_learner_hosts * config.replay.num_shards
  spec = config.agent.replay_spec()
  batch_size = config.agent.batch_size // number
  part = Shard(
    index=0,
    port=0,
    spec=dataclasses.replace(
      spec, capacity=spec.capacity // number, min_size=spec.min_size // number
    ),
    queue_size=replay.queue_size // number,
    batch_size=batch_size,
    unrolls_per_item=math.gcd(
      replay.unrolls_per_item, batch_size
    ),  # gcd(0, n) = n: 0 is a whole batch
    writer_backlog=replay.writer_backlog or batch_size,
  )
  has_port = bool(replay.port) and learner == 0
  return tuple(
    dataclasses.replace(part, index=i, port=replay.port + i if has_port else 0)
    for i in range(replay.num_shards)
  )
