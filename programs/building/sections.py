"""What the nodes of a run are told of its configuration, which is split once: when it is launched.

A section is sent to its node as it is. Nothing in here loads TensorFlow: launchers split, and the
supervisors of actors receive.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme.envs import experiment_environments as environments
from seed_acme.learning import loop_settings
from seed_acme.programs.building import shared_settings
from seed_acme.storage import saved_config


@dataclasses.dataclass(frozen=True)
class NodeSections(environments.Section):
  """Of one node, a `kind` of which each place in the layout has one.

  shared: what others must have in common with it, by field; of a learner, by kind of node before.
  """

  place: Any
  shared: Any
  kind: ClassVar[str]

  @property
  def name(self) -> str:
    """Such as `learner/0`."""
    return f'{self.kind}/{self.place.index}'


@dataclasses.dataclass(frozen=True)
class ActorSections(NodeSections):
  """Of one actor. record_every: 0 for all that do not film. seed: of the run."""

  place: layout_lib.Actor
  shared: dict[str, str]
  seed: int
  transport: config_lib.TransportConfig
  kind = 'actor'


@dataclasses.dataclass(frozen=True)
class _ActingSections(NodeSections):
  """Of a node that knows the agent."""

  layout: layout_lib.Layout
  network: config_lib.NetworkConfig
  agent: config_lib.AgentConfig


@dataclasses.dataclass(frozen=True)
class ReplaySections(_ActingSections):
  """Of a shard of the replay that is a node of its own. is_saved: whether checkpoints hold it."""

  place: layout_lib.Shard
  shared: dict[str, str]
  is_saved: bool
  kind = 'replay'


@dataclasses.dataclass(frozen=True)
class LearnerSections(_ActingSections):
  """Of one learner host.

  inference_timeout_s: after it a batch is run that is not full. prefetch_batches: as of
  `config.ReplayConfig`. record: the whole configuration as JSON, as it is saved and logged.
  """

  place: layout_lib.Learner
  shared: dict[str, dict[str, str]]
  learner: config_lib.LearnerConfig
  transport: config_lib.TransportConfig
  inference_timeout_s: float
  prefetch_batches: int
  loop: loop_settings.LoopSettings
  record: dict[str, Any]
  kind = 'learner'


class Sections(NamedTuple):
  """Of all nodes of a run. replays: of the first learner host, which alone may have such nodes."""

  layout: layout_lib.Layout
  learners: tuple[LearnerSections, ...]
  replays: tuple[ReplaySections, ...]
  actors: tuple[ActorSections, ...]


def split(config: config_lib.ExperimentConfig) -> Sections:
  """Raises `types.UserError` as `Layout.of` does."""
  layout, shared = layout_lib.Layout.of(config), shared_settings.by_kind(config)
  record, loop = saved_config.to_json(config), _loop_settings(config)
  common: dict[str, Any] = {'environment': config.environment, 'actor': config.actor}
  acting = {**common, 'layout': layout, 'network': config.network, 'agent': config.agent}
  learners = tuple(
    LearnerSections(
      place=place,
      shared=shared,
      record_every=config.record_every,
      learner=config.learner,
      transport=config.transport,
      inference_timeout_s=config.inference.timeout_ms / 1e3,
      prefetch_batches=config.replay.prefetch_batches,
      loop=loop,
      record=record,
      **acting,
    )
    for place in layout.learners
  )
  replays = tuple(
    ReplaySections(
      place=place,
      shared=shared['replay'],
      record_every=config.record_every,
      is_saved=config.checkpoint.replay,
      **acting,
    )
    for place in layout.learners[0].shards
  )
  actors = tuple(
    ActorSections(
      place=place,
      shared=shared['actor'],
      record_every=config.record_every if place.shard is None else 0,
      seed=layout.seed,
      transport=config.transport,
      **common,
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
