"""Saves configurations as JSON in the run folder, loads them, and compares them.

Every record contains its type, `"type": "seed_acme.config:NetworkConfig"`,
so that reading needs no registry and a user's own configuration class works as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
import dataclasses
import math
import os
import typing
from typing import Any, TypeVar

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import dotted_path
from seed_acme.checks import field_types
from seed_acme.files import local
from seed_acme.storage import trust as trust_lib

_TYPE = 'type'
_SPECIAL_FLOATS = {'inf': math.inf, '-inf': -math.inf, 'nan': math.nan}
_T = TypeVar('_T')

# Fields that may differ between a saved run and its continuation: how long it runs, where and
# how fast, but no setting of the algorithm. `total_steps` determines what is learnt all the same
# where a schedule goes over the whole run (`uses_of_total_steps`): a run that is extended goes on
# with the values of its new length. `num_actors` is included because one machine more or less must
# not end an experiment; `environments_per_actor` is not.
MAY_CHANGE_ON_RESUME = frozenset(
  {
    'total_steps',
    'max_wall_s',
    'num_learner_hosts',
    'num_actors',
    'num_evaluation_environments',
    'record_every',
    'replay.port',
    'replay.separate_process',
    'replay.prefetch_batches',
    'inference.batch_size',
    'inference.timeout_ms',
    'actor.max_failures',
    'actor.connect_timeout_s',
    'actor.step_timeout_s',
    'actor.reset_timeout_s',
    'actor.python',
    'transport.kind',
    'transport.host',
    'transport.port',
    'network.precision',
    'learner.tensorflow_threads',
    'learner.log_period_s',
    'learner.logger',
    'learner.training_devices',
    'learner.inference_devices',
    'learner.host_timeout_s',
    'learner.stall_s',
    'checkpoint.period_s',
    'checkpoint.keep',
    'checkpoint.keep_best',
    'checkpoint.replay',
  }
)

# Fields that were added after the first release, by their class, with the value that corresponds to
# the earlier behaviour. A saved configuration may lack them.
_ADDED: dict[str, dict[str, Any]] = {
  'seed_acme.config:NetworkConfig': {
    'precision': 'float32',
    'torso_initializer': 'default',
    'byte_scale': '255',
  },
  'seed_acme.config:OptimizerConfig': {'final_share': 0.0},
  'seed_acme.config:ReplayConfig': {'num_shards': 1},
  'seed_acme.config:LearnerConfig': {
    'training_devices': '',
    'inference_devices': '',
    'host_timeout_s': 60.0,
    'stall_s': 60.0,
  },
  'seed_acme.config:CheckpointConfig': {'keep_best': False},
  'seed_acme.config:ExperimentConfig': {'num_learner_hosts': 1, 'record_every': 0},
}


def save(config: config_lib.ExperimentConfig, path: str | os.PathLike[str]) -> None:
  """Writes the configuration, atomically."""
  local.write_json(path, to_json(config))


def load(
  path: str | os.PathLike[str],
  trust: trust_lib.Trust = trust_lib.EVERYTHING,
  only_types: bool = False,
) -> config_lib.ExperimentConfig:
  """Reads a saved experiment; `UserError` names the file and the field that is wrong or not trusted
  (`trust.require`)."""
  try:
    record = local.read_json(path)
    trust_lib.require(record, os.fspath(path), trust, only_types)
    value = from_json(record)
  except types.UserError as error:
    message = str(error)
    raise types.UserError(
      message if os.fspath(path) in message else f'{os.fspath(path)}: {message}'
    ) from error
  if not isinstance(value, config_lib.ExperimentConfig):
    raise types.UserError(f'{os.fspath(path)} holds a {type(value).__name__}, no ExperimentConfig')
  return value


def to_json(value: Any) -> Any:
  """Converts nested frozen dataclasses, tuples, dicts and scalars to JSON values."""
  if _is_record(type(value)):
    return _record_to_json(value)
  if isinstance(value, tuple):
    return [to_json(item) for item in value]
  if isinstance(value, dict) and all(isinstance(key, str) for key in value):
    if _TYPE in value:
      raise types.UserError(f'a setting cannot be called {_TYPE!r} ({value!r}): rename it')
    return {key: to_json(item) for key, item in value.items()}
  if isinstance(value, float) and not math.isfinite(value):
    return {_TYPE: 'float', 'value': str(value)}
  if value is None or isinstance(value, (bool, int, float, str)):
    return value
  raise types.UserError(
    f'a configuration holds {value!r} of type {type(value).__name__}, which cannot be saved: '
    'use frozen dataclasses, tuples, dicts with names, numbers, strings and None'
  )


def _record_to_json(record: Any) -> dict[str, Any]:
  fields = {
    field.name: to_json(getattr(record, field.name)) for field in dataclasses.fields(record)
  }
  if _TYPE in fields:
    raise types.UserError(f'{type(record).__name__} has a field called {_TYPE!r}: rename it')
  return {_TYPE: _type_name(type(record)), **fields}


def trust_in(config: config_lib.ExperimentConfig) -> trust_lib.Trust:
  """Returns trust in all that a configuration names, for one that the command has chosen."""
  return trust_lib.Trust(paths=frozenset(path for _, path in trust_lib.untrusted(to_json(config))))


def from_json(value: Any) -> Any:
  """Converts what `to_json` returned back to a value. Lists become tuples."""
  return _decode(value, '')


def compare_for_resume(
  saved: config_lib.ExperimentConfig, new: config_lib.ExperimentConfig
) -> None:
  """Raises `UserError`, which names the fields that differ but must not (MAY_CHANGE_ON_RESUME)."""
  differing = differences(saved, new)
  if differing:
    raise types.UserError(
      'this run was started with other values (saved -> now):\n  '
      + ('\n  ' if len(differing) <= 2 else '; ').join(differing)
      + '\nset them back to continue this run, or start a new one from its weights: '
      '--config.initial_checkpoint=RUN'
    )


def differences(saved: config_lib.ExperimentConfig, new: config_lib.ExperimentConfig) -> list[str]:
  """Returns `name: saved -> new` of each field that differs and is not in MAY_CHANGE_ON_RESUME."""
  return [text for name, text in _all_differences(saved, new) if name not in MAY_CHANGE_ON_RESUME]


def permitted_differences(
  saved: config_lib.ExperimentConfig, new: config_lib.ExperimentConfig, known: Collection[str]
) -> list[str]:
  """Returns the same of the fields in MAY_CHANGE_ON_RESUME that are not among the `known`."""
  return [
    text
    for name, text in _all_differences(saved, new)
    if name in MAY_CHANGE_ON_RESUME and name not in known
  ]


def _all_differences(
  saved: config_lib.ExperimentConfig, new: config_lib.ExperimentConfig
) -> list[tuple[str, str]]:
  """Returns the dotted names of fields that differ, with `name: saved -> new`."""
  before, after = flatten(saved), flatten(new)
  return [
    (name, f'{name}: {_value_of(before, name)} -> {_value_of(after, name)}')
    for name in sorted(before.keys() | after.keys())
    if not _below_changed_type(name, before, after)
    and _differ(before.get(name, _ABSENT), after.get(name, _ABSENT))
  ]


def uses_of_total_steps(flat: Mapping[str, Any]) -> list[str]:
  """Returns why runs of other `total_steps` would learn otherwise; [] if they would not.

  flat: a configuration by dotted names, from `flatten` or from the JSON of a run.

  These are the schedules of learning rates that are not constant, as `field=value`, and agents of
  one's own, whose losses get the fraction of the run that is over (`progress`). Our agents do not
  use it, and whether another one does is not known.
  """
  uses = []
  for name, value in flat.items():
    optimizer, _, field = name.rpartition('.')
    is_scheduled = name.startswith('agent.') and field == 'schedule' and value != 'constant'
    if is_scheduled and flat.get(f'{optimizer}.final_share') != 1:
      uses.append(f'{name}={value}')
  agent = flat.get('agent.agent')
  if isinstance(agent, str) and ':' in agent:
    uses.append(f'agent.agent={agent}, whose losses get the progress of the run')
  return uses


def _value_of(flat: dict[str, Any], name: str) -> str:
  return _short(flat.get(name, 'absent')) or "''"


def _differ(before: Any, after: Any) -> bool:
  return before != after and repr(before) != repr(after)  # NaN differs from itself


class _Absent:
  """Marks a missing field; it differs from every value, even None."""


_ABSENT = _Absent()


def flatten(value: Any, path: str = '') -> dict[str, Any]:
  """Returns scalars and tuples by dotted name: `{'agent': type name, 'agent.batch_size': 32}`."""
  if _is_record(type(value)):
    flat: dict[str, Any] = {path: _type_name(type(value))} if path else {}
    items = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
  elif isinstance(value, dict):
    flat, items = {}, value
  else:
    return {path: value}
  for name, item in items.items():
    flat.update(flatten(item, f'{path}.{name}' if path else name))
  return flat


def _below_changed_type(name: str, before: dict[str, Any], after: dict[str, Any]) -> bool:
  """Whether a field is in a record whose type differs, so that only the type is reported."""
  parts = name.split('.')
  parents = ('.'.join(parts[:end]) for end in range(1, len(parts)))
  return any(parent in before and before[parent] != after.get(parent) for parent in parents)


def _short(value: Any) -> str:
  text = str(value)
  return text if len(text) <= 60 else f'{text[:28]}...{text[-29:]}'  # paths differ at their end


def _is_record(kind: Any) -> bool:
  if not isinstance(kind, type) or not dataclasses.is_dataclass(kind):
    return False
  return kind.__dataclass_params__.frozen  # type: ignore[attr-defined]


def _type_name(kind: type) -> str:
  name = f'{kind.__module__}:{kind.__qualname__}'
  if kind.__module__ == '__main__' or not dotted_path.NAMED.fullmatch(name):
    raise types.UserError(
      f'the configuration class {name} cannot be found again when the run is resumed: '
      'define it at the top level of a module that can be imported'
    )
  return name


def _decode(value: Any, path: str) -> Any:
  if isinstance(value, list):
    return tuple(_decode(item, f'{path}[{i}]') for i, item in enumerate(value))
  if not isinstance(value, dict):
    return value
  if _TYPE not in value:
    return {key: _decode(item, _join(path, key)) for key, item in value.items()}
  if value[_TYPE] == 'float':
    return _decode_float(value, path)
  kind = _resolve(value[_TYPE], path)
  given = {**_ADDED.get(value[_TYPE], {}), **value}
  del given[_TYPE]
  known = {field.name for field in dataclasses.fields(kind)}
  for names, what in ((known - given.keys(), 'lacks'), (given.keys() - known, 'has unknown')):
    if names:
      listed = ', '.join(_join(path, name) for name in sorted(names))
      raise types.UserError(
        f'the saved configuration {what} {listed}: it was written by another version; '
        'use that version, or start a new run'
      )
  hints = typing.get_type_hints(kind)
  fields = {}
  for name, item in given.items():
    fields[name] = _decode(item, _join(path, name))
    if not field_types.fits(fields[name], hints[name]):
      raise types.UserError(
        f'the saved configuration has {_join(path, name)} = {_short(fields[name])!r}, '
        f'which is no {getattr(hints[name], "__name__", hints[name])}: correct the file'
      )
  return kind(**fields)


def _join(path: str, name: str) -> str:
  return f'{path}.{name}' if path else name


def _decode_float(value: dict[str, Any], path: str) -> float:
  if value.get('value') not in _SPECIAL_FLOATS:
    raise types.UserError(f'the saved configuration has {path} = {value!r}, which is no number')
  return _SPECIAL_FLOATS[value['value']]


def _resolve(name: Any, path: str) -> Any:
  """Returns the frozen dataclass with a type name."""
  where = f' ({path})' if path else ''
  if not isinstance(name, str) or not dotted_path.NAMED.fullmatch(name):
    raise types.UserError(f'{name!r}{where} is no type name of the form package.module:Class')
  module_name, class_name = name.split(':')
  try:
    module = dotted_path.import_module(module_name, f'the configuration type {name}{where}')
  except ImportError as error:
    raise types.UserError(
      f'the configuration type {name}{where} cannot be imported: {error}. {dotted_path.IMPORTABLE}'
    ) from error
  kind = getattr(module, class_name, None)
  if not _is_record(kind):
    raise types.UserError(f'{name}{where} is no frozen dataclass, so no configuration type')
  return kind
