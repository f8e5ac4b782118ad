"""The settings that the nodes of a run must have in common, compared when a separate node joins.

Actors step environments, so they share environments, counts and seed with the learner. A replay
node stores what acting writes and learning reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seed_acme import config as config_lib
from seed_acme.storage import saved_config

_OF_ACTORS = (
  'environment',
  'seed',
  'num_actors',
  'environments_per_actor',
  'num_evaluation_environments',
  'actor.environment_groups',
)
_OF_REPLAY = ('environment', 'network', 'agent', 'replay')
_FREE = ('replay.port', 'replay.writer_backlog', 'replay.prefetch_batches')
_OPTIMIZER = f'{config_lib.OptimizerConfig.__module__}:{config_lib.OptimizerConfig.__qualname__}'
_PREFIXES = {'actor': _OF_ACTORS, 'replay': _OF_REPLAY}


def of(kind: str, config: config_lib.ExperimentConfig) -> dict[str, str]:
  """Returns the settings that a node of this kind (`actor`, `replay`) shares, by dotted name."""
  return {
    name: str(value)
    for name, value in _flat(saved_config.to_json(config), '')
    if _is_below(name, _PREFIXES[kind]) and not _is_below(name, _FREE)
  }


def by_kind(config: config_lib.ExperimentConfig) -> dict[str, dict[str, str]]:
  """Returns the result of `of` for every kind of node."""
  return {kind: of(kind, config) for kind in _PREFIXES}


def _is_below(name: str, prefixes: tuple[str, ...]) -> bool:
  return any(name == prefix or name.startswith(f'{prefix}.') for prefix in prefixes)


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
  if not isinstance(value, dict):
    yield path, value
    return
  if value.get('type') == _OPTIMIZER:  # only the learner uses it
    return
  for name, item in value.items():
    yield from _flat(item, f'{path}.{name}' if path else name)
