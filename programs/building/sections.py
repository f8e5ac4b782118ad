"""What the nodes of a run are told of its configuration, which is split once: when it is launched.

A section is sent to its node as it is. Nothing in here loads TensorFlow: launchers split, and the
supervisors of actors receive.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, Protocol

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme.learning import loop_settings
from seed_acme.programs.building import shared_settings
from seed_acme.storage import saved_config


class AnySections(Protocol):
  """Of one node."""

  @property
  def name(self) -> str:
    """Of the node."""


@dataclasses.dataclass(frozen=True)
class ActorSections:
  """Of one actor.

  seed: of the run. record_every: as configured for the actor that films, 0 for all others. shared:
  what it must have in common with its learner, by field.
  """

  place: layout_lib.Actor
  seed: int
  environment: config_lib.EnvironmentConfig
  actor: config_lib.ActorConfig
  transport: config_lib.TransportConfig
  record_every: int
  shared: dict[str, str]

  @property
  def name(self) -> str:
    """Of the node."""
    return f'actor/{self.place.index}'


@dataclasses.dataclass(frozen=True)
class ReplaySections:
  """Of a shard of the replay that is a node of its own.

  is_saved: whether checkpoints hold the replay memory. shared: as of an actor.
  """

  place: layout_lib.Shard
  layout: layout_lib.Layout
  environment: config_lib.EnvironmentConfig
  network: config_lib.NetworkConfig
  agent: config_lib.AgentConfig
  actor: config_lib.ActorConfig
  record_every: int
  is_saved: bool
  shared: dict[str, str]

  @property
  def name(self) -> str:
    """Of the node."""
    return f'replay/{self.place.index}'


@dataclasses.dataclass(frozen=True)
class LearnerSections:
  """Of one learner host.

  inference_timeout_s: after it a batch is run that is not full. prefetch_batches: as of
  `config.ReplayConfig`. shared: what others must have in common with it, by kind of node and by
  field. record: the whole configuration as JSON, as it is saved and logged.
  """

  place: layout_lib.Learner
  layout: layout_lib.Layout
  environment: config_lib.EnvironmentConfig
  network: config_lib.NetworkConfig
  agent: config_lib.AgentConfig
  actor: config_lib.ActorConfig
  learner: config_lib.LearnerConfig
  transport: config_lib.TransportConfig
  record_every: int
  inference_timeout_s: float
  prefetch_batches: int
  loop: loop_settings.LoopSettings
  shared: dict[str, dict[str, str]]
  record: dict[str, Any]

  @property
  def name(self) -> str:
    """Of the node."""
    return f'learner/{self.place.index}'


class Sections(NamedTuple):
  """Of all nodes of a run. replays: of the first learner host, which alone may have such nodes."""

  layout: layout_lib.Layout
  learners: tuple[LearnerSections, ...]
  replays: tuple[ReplaySections, ...]
  actors: tuple[ActorSections, ...]


def split(config: config_lib.ExperimentConfig) -> Sections:
  """Raises `types.UserError` as `Layout.of` does."""
  layout, shared = layout_lib.Layout.of(config), shared_settings.by_kind(config)
  record = saved_config.to_json(config)
  loop = _loop_settings(config)
  learners = tuple(
    LearnerSections(
      place=place,
      layout=layout,
      environment=config.environment,
      network=config.network,
      agent=config.agent,
      actor=config.actor,
      learner=config.learner,
      transport=config.transport,
      record_every=config.record_every,
      inference_timeout_s=config.inference.timeout_ms / 1e3,
      prefetch_batches=config.replay.prefetch_batches,
      loop=loop,
      shared=shared,
      record=record,
    )
    for place in layout.learners
  )
  replays = tuple(
    ReplaySections(
      place=place,
      layout=layout,
      environment=config.environment,
      network=config.network,
      agent=config.agent,
      actor=config.actor,
      record_every=config.record_every,
      is_saved=config.checkpoint.replay,
      shared=shared['replay'],
    )
    for place in layout.learners[0].shards
  )
  actors = tuple(
    ActorSections(
      place=place,
      seed=layout.seed,
      environment=config.environment,
      actor=config.actor,
      transport=config.transport,
      record_every=config.record_every if place.shard is None else 0,
      shared=shared['actor'],
    )
    for place in layout.actors
  )
  return Sections(layout, learners, replays, actors)


def _loop_settings(config: config_lib.ExperimentConfig) -> loop_settings.LoopSettings:
  """What the training loop is told of the experiment."""
  flat = saved_config.flatten(config)
  return loop_settings.LoopSettings(
    total_steps=config.total_steps,
    max_wall_s=config.max_wall_s,
    batch_size=config.agent.batch_size,
    min_unrolls=config.agent.replay_spec().min_size,
    publish_period=config.inference.publish_period,
    log_period_s=config.learner.log_period_s,
    checkpoint=config.checkpoint,
    initial_checkpoint=config.initial_checkpoint,
    is_filmed=bool(config.record_every),
    common={k: str(v) for k, v in flat.items() if k not in saved_config.MAY_CHANGE_ON_RESUME},
  )
