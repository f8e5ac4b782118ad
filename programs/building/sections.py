"""The part of the configuration that each node of a run receives, split once at launch.

A section is sent to its node as it is. Nothing in this module loads TensorFlow, because launchers,
which split, and the supervisors of actors, which receive, do without it.
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

# Fields that may have another value on each learner host. The limits of the run may change when it
# is resumed, but schedules and its end depend on them, and so does what is computed on the
# precision. The chief alone reads the checkpoint that a run starts from.
_MAY_DIFFER_BETWEEN_HOSTS = saved_config.MAY_CHANGE_ON_RESUME - {
  'total_steps',
  'max_wall_s',
  'network.precision',
} | {'initial_checkpoint'}


@dataclasses.dataclass(frozen=True)
class NodeSections(environments.Section):
  """The sections of one node. Each place of its kind in the layout has a node.

  shared: settings that other nodes must have in common with it, by field; a learner has such a
    dictionary for each kind of node.
  """

  place: Any
  shared: Any
  kind: ClassVar[str]

  @property
  def name(self) -> str:
    """The name of the node, such as `learner/0`."""
    return f'{self.kind}/{self.place.index}'


@dataclasses.dataclass(frozen=True)
class ActorSections(NodeSections):
  """The sections of one actor. record_every: 0 for actors that film nothing. seed: of the run."""

  place: layout_lib.Actor
  shared: dict[str, str]
  seed: int
  transport: config_lib.TransportConfig
  kind = 'actor'


@dataclasses.dataclass(frozen=True)
class _ActingSections(NodeSections):
  """The sections that nodes which know the agent have in common."""

  layout: layout_lib.Layout
  network: config_lib.NetworkConfig
  agent: config_lib.AgentConfig


@dataclasses.dataclass(frozen=True)
class ReplaySections(_ActingSections):
  """The sections of a replay node, which serves one shard. is_saved: checkpoints include it."""

  place: layout_lib.Shard
  shared: dict[str, str]
  is_saved: bool
  kind = 'replay'


@dataclasses.dataclass(frozen=True)
class LearnerSections(_ActingSections):
  """The sections of one learner host.

  inference_timeout_s: longest wait for a full batch before a smaller one is run. prefetch_batches:
    as in `config.ReplayConfig`. record: the whole configuration as JSON, as it is saved and logged.
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
  """The sections of all nodes of a run. replays: nodes for the first learner host's shards; no
  other host may have replay nodes."""

  layout: layout_lib.Layout
  learners: tuple[LearnerSections, ...]
  replays: tuple[ReplaySections, ...]
  actors: tuple[ActorSections, ...]


def split(config: config_lib.ExperimentConfig) -> Sections:
  """Splits a configuration by node. Raises `types.UserError` as `Layout.of` does."""
  layout, shared = layout_lib.Layout.of(config), shared_settings.by_kind(config)
  record, loop = saved_config.to_json(config), _loop_settings(config, layout)
  common: dict[str, Any] = {'environment': config.environment, 'actor': config.actor}
  acting = {**common, 'layout': layout, 'network': config.network, 'agent': config.agent}
  learners = tuple(
    LearnerSections(
      place=place,
      shared={**shared, 'actor': _with_learner(shared['actor'], place.index, layout)},
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
      shared=_with_learner(shared['actor'], place.learner, layout),
      record_every=config.record_every if place.shard is None else 0,
      seed=layout.seed,
      transport=config.transport,
      **common,
    )
    for place in layout.actors
  )
  return Sections(layout, learners, replays, actors)


def _with_learner(shared: dict[str, str], index: int, layout: layout_lib.Layout) -> dict[str, str]:
  """Adds the learner host that an actor belongs to, which a stale cluster file gets wrong."""
  return {**shared, 'learner host': f'{index} of {len(layout.learners)}'}


def _loop_settings(
  config: config_lib.ExperimentConfig, layout: layout_lib.Layout
) -> loop_settings.LoopSettings:
  """Returns the settings of the experiment that the training loop needs."""
  flat = saved_config.flatten(config)
  return loop_settings.LoopSettings(
    total_steps=config.total_steps,
    max_wall_s=config.max_wall_s,
    batch_size=config.agent.batch_size,
    min_unrolls=sum(shard.spec.min_size for shard in layout.learners[0].shards),
    publish_period=config.inference.publish_period,
    log_period_s=config.learner.log_period_s,
    checkpoint=config.checkpoint,
    initial_checkpoint=config.initial_checkpoint,
    evaluates=config.num_evaluation_environments > 0,
    is_filmed=bool(config.record_every),
    common={k: str(v) for k, v in flat.items() if k not in _MAY_DIFFER_BETWEEN_HOSTS},
  )
