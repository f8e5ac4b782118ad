"""Search spaces of a sweep: a range or choices for each field, from text or a JSON file.

```
agent.optimizer.learning_rate=1e-5..1e-2:log agent.num_epochs=1..10 network.mlp_sizes=[64,64],[128]
```
Choices are written like the values of a grid. A range includes both ends, and has integers if the
field does. `:log` samples it on a logarithmic scale.
"""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any, Union

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.programs.tools.sweep import grid as sweep_grid
from seed_acme.storage import saved_config

OPTION = '--search'
_LOOKS_LIKE_A_RANGE = re.compile(r'[-+.\w]+\.\.[-+.\w]+(:\w*)?')
_DIGITS = 6  # significant digits of a sampled number, so that tables and folders stay readable


@dataclasses.dataclass(frozen=True)
class Range:
  """A range with both ends included; of integers if both are `int`. is_log: see the module."""

  low: int | float
  high: int | float
  is_log: bool = False


@dataclasses.dataclass(frozen=True)
class Choices:
  """A list of choices. values: at least two, all different."""

  values: tuple[Any, ...]


Domain = Union[Range, Choices]
Space = dict[str, Domain]  # by field


def parse(search: str, base: config_lib.ExperimentConfig) -> Space:
  """Parses a space from text, or from a file `{"FIELD": "LOW..HIGH" or [VALUE, ...], ...}`.

  search: the text, or the path of the `.json` file. Raises `UserError` for bad syntax, unknown
    fields, and values that do not fit.
  """
  fields = _load(search) if search.endswith('.json') else sweep_grid.split(search, OPTION)
  return {field: _domain(field, values, base) for field, values in fields.items()}


def text(space: Space) -> str:
  """Returns the space as it is written on the command line."""
  return ' '.join(f'{field}={_domain_text(domain)}' for field, domain in space.items())


def to_json(space: Space) -> dict[str, Any]:
  """Returns the record for `from_json`, with choices in JSON's types."""
  return {
    field: {'choices': saved_config.to_json(domain.values)}
    if isinstance(domain, Choices)
    else dataclasses.asdict(domain)
    for field, domain in space.items()
  }


def from_json(record: dict[str, Any]) -> Space:
  """Returns the space that `to_json` wrote."""
  return {
    field: Choices(saved_config.from_json(domain['choices']))
    if 'choices' in domain
    else Range(domain['low'], domain['high'], domain['is_log'])
    for field, domain in record.items()
  }


def extremes(domain: Domain) -> tuple[Any, ...]:
  """Returns both ends of a range, or all choices."""
  return domain.values if isinstance(domain, Choices) else (domain.low, domain.high)


def rounded(value: int | float, domain: Range) -> int | float:
  """Returns a sampled number for the configuration: six significant digits, within the range."""
  if isinstance(domain.low, int):
    return int(value)
  return min(max(float(f'{value:.{_DIGITS}g}'), domain.low), domain.high)


def contains(domain: Domain, value: Any) -> bool:
  """Whether a configuration's value could have been sampled."""
  if isinstance(domain, Choices):
    return sweep_grid.text(value) in map(sweep_grid.text, domain.values)
  if isinstance(value, bool) or not isinstance(value, type(domain.low)):
    return False
  return domain.low <= value <= domain.high and rounded(value, domain) == value


def _domain(
  field: str, values: list[sweep_grid.Value], base: config_lib.ExperimentConfig
) -> Domain:
  sweep_grid.check_field(field, base, OPTION)
  ranges = [given for given in values if _is_range(given)]
  if ranges and len(values) > 1:
    raise types.UserError(
      f'{OPTION} has {field} with the range {ranges[0]} beside other values: give a range alone, '
      'or only values'
    )
  if ranges:
    return _range(field, ranges[0], base)
  choices = sweep_grid.parse_values(field, values, base, OPTION)
  if len(choices) == 1:
    raise types.UserError(
      f'{OPTION} has {field}={values[0]}, which leaves nothing to search: give several values or a '
      f'range LOW..HIGH, or --config.{field} for all runs'
    )
  return Choices(choices)


def _is_range(given: sweep_grid.Value) -> bool:
  return not given.is_bracketed and bool(_LOOKS_LIKE_A_RANGE.fullmatch(given.words[0]))


def _range(field: str, given: sweep_grid.Value, base: config_lib.ExperimentConfig) -> Range:
  written = f'{field}={given}'
  ends, colon, scale = given.words[0].partition(':')
  if colon and scale != 'log':
    raise types.UserError(f"{OPTION} has {written}: after ':' only log is known, LOW..HIGH:log")
  low_text, _, high_text = ends.partition('..')
  low, high = (
    sweep_grid.parse_value(field, sweep_grid.Value((end,)), base, OPTION)
    for end in (low_text, high_text)
  )
  for end in (low, high):
    is_number = isinstance(end, (int, float)) and not isinstance(end, bool)
    if not is_number or not math.isfinite(end):
      raise types.UserError(
        f'{OPTION} has {written}, but a range is for numbers: list the values, {field}=VALUE,VALUE'
      )
  if isinstance(low, int) != isinstance(high, int):
    low, high = float(low), float(high)
  if not low < high:
    raise types.UserError(f'{OPTION} has {written}: LOW ({low}) must be below HIGH ({high})')
  if scale and low <= 0:
    raise types.UserError(f'{OPTION} has {written}: LOW ({low}) must be > 0 on a logarithmic scale')
  return Range(low, high, bool(scale))


def _load(path: str) -> dict[str, list[sweep_grid.Value]]:
  content = sweep_grid.load_json(path, OPTION)
  if not isinstance(content, dict) or not content:
    raise types.UserError(
      f'{OPTION} file {path} must hold {{"FIELD": "LOW..HIGH" or [VALUE, ...], ...}}, not '
      f'{sweep_grid.shown(content)}'
    )
  fields = {}
  for field, given in content.items():
    values = given if isinstance(given, list) and given else [given]
    if isinstance(given, list) and not given:
      raise types.UserError(f'{OPTION} file {path}: {field} has no values: list two or more')
    fields[field] = [sweep_grid.json_value(path, field, value, OPTION) for value in values]
  return fields


def _domain_text(domain: Domain) -> str:
  if isinstance(domain, Choices):
    return ','.join(map(sweep_grid.text, domain.values))
  return f'{domain.low}..{domain.high}{":log" if domain.is_log else ""}'
