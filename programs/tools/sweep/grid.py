"""Grids of a sweep: parsed from text or a JSON file into the values of each field.

```
agent.optimizer.learning_rate=1e-3,3e-4 network.mlp_sizes=[64,64],[128]
```
is a product of two fields. A value in brackets stands for several words, as they would follow
`--config.FIELD` on the command line: a tuple's items, or the names and values of settings.
Every value is parsed like that override.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import json
import pathlib
import re
from typing import Any, NamedTuple

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.programs.command_line import given as given_lib
from seed_acme.programs.command_line import new_settings
from seed_acme.programs.command_line import parsing
from seed_acme.programs.command_line import wrong_arguments

# words in brackets, or one word
_NEXT_VALUE = re.compile(r',(?:\[([^\[\]]*)\]|([^\s,\[\]]+))(?=,|$)')
_FIELD = re.compile(r'[A-Za-z_][\w.]*')
_EXAMPLE = "such as 'agent.discount=0.99,0.995 network.mlp_sizes=[64,64],[128]'"
_NOT_SWEPT = {
  'seed': 'use --seeds=N, which counts up from --config.seed',
  'name': 'it names the folder; use --config.name',
}
_OPTION = '--grid'  # the option that messages name
_SECOND = {_OPTION: f', or a second {_OPTION}'}
Product = dict[str, tuple[Any, ...]]  # values by field


class Value(NamedTuple):
  """A value as the words of the command line, before they are parsed."""

  words: tuple[str, ...]
  is_bracketed: bool = False

  def __str__(self) -> str:
    return f'[{",".join(self.words)}]' if self.is_bracketed else self.words[0]


def parse(grids: Sequence[str], base: config_lib.ExperimentConfig) -> list[Product]:
  """Returns the products of all grids, each a text or the path of a `.json` file.

  Raises `UserError` for bad syntax, unknown fields, and values that do not fit.
  """
  products = [product for grid in grids for product in _read(grid)]
  return [
    {field: parse_values(field, values, base) for field, values in product.items()}
    for product in products
  ]


def field_names(config: Any, path: str = '') -> list[str]:
  """Returns the dotted names of all fields that hold a value rather than a record."""
  names = []
  for field in dataclasses.fields(config):
    value, name = getattr(config, field.name), f'{path}{field.name}'
    names += field_names(value, f'{name}.') if dataclasses.is_dataclass(value) else [name]
  return names


def get(config: Any, name: str) -> Any:
  """Returns the value of a field by its dotted name."""
  for part in name.split('.'):
    config = getattr(config, part)
  return config


def replace(config: Any, name: str, value: Any) -> Any:
  """Returns the configuration with another value in one field."""
  head, _, rest = name.partition('.')
  return dataclasses.replace(
    config, **{head: replace(getattr(config, head), rest, value) if rest else value}
  )


def replace_all(
  config: config_lib.ExperimentConfig, settings: Mapping[str, Any]
) -> config_lib.ExperimentConfig:
  """Returns the configuration with these values. settings: by dotted name of the field."""
  for field, value in settings.items():
    config = replace(config, field, value)
  return config


def text(value: Any) -> str:
  """Returns a value as it is written in a grid: `0.001`, `[64,64]`, `[rows,10]`."""
  if isinstance(value, dict):
    value = tuple(word for item in value.items() for word in item)
  if isinstance(value, tuple):
    return f'[{",".join(map(str, value))}]'
  return str(value)


def _read(grid: str) -> Iterator[dict[str, list[Value]]]:
  """Yields the products of one text or file."""
  if not grid.endswith('.json'):
    yield split(grid)
    return
  content = load_json(grid)
  for product in content if isinstance(content, list) else [content]:
    _check_product(grid, product)
    yield {
      field: [json_value(grid, field, value) for value in values]
      for field, values in product.items()
    }


def _check_product(grid: str, product: Any) -> None:
  if not isinstance(product, dict) or not product:
    raise types.UserError(
      f'--grid file {grid} must hold {{"FIELD": [VALUE, ...], ...}} or a '
      f'list of such, not {shown(product)}'
    )
  for field, values in product.items():
    if not isinstance(values, list) or not values:
      raise types.UserError(
        f'--grid file {grid}: {field} needs a list of values, not {shown(values)}'
      )


def load_json(path: str, option: str = _OPTION) -> Any:
  """Loads a JSON file. option: the option that named it, for the message if it cannot be read."""
  try:
    return json.loads(pathlib.Path(path).read_text(encoding='utf-8'))
  except OSError as error:
    raise types.UserError(f'cannot read the {option} file {path}: {error.strerror}') from None
  except ValueError as error:
    raise types.UserError(f'{option} file {path} is no JSON: {error}') from None


def json_value(path: str, field: str, value: Any, option: str = _OPTION) -> Value:
  """Returns one value of a file: a scalar, or a list or object of scalars."""
  items = [word for item in value.items() for word in item] if isinstance(value, dict) else value
  is_bracketed = isinstance(items, list)
  words = items if isinstance(items, list) else [items]
  if any(isinstance(word, (list, dict)) for word in words):
    raise types.UserError(
      f'{option} file {path}: {field} has {shown(value)}, a list within a '
      'list: give scalars, lists of scalars or objects of them'
    )
  return Value(tuple(map(str, words)), is_bracketed)


def shown(value: Any) -> str:
  """Returns a value of a JSON file for a message, cut at 60 characters."""
  text_of_it = json.dumps(value)
  return text_of_it if len(text_of_it) <= 60 else f'{text_of_it[:57]}...'


def split(grid: str, option: str = _OPTION) -> dict[str, list[Value]]:
  """Splits fields at spaces and values at commas, except within brackets.

  option: of the command line, for messages. Raises `UserError` for bad syntax.
  """
  found: dict[str, list[Value]] = {}
  for part in re.findall(r'(?:\[[^\]]*\]?|[^\s\[])+', grid):
    field, equals, values = part.partition('=')
    if not equals or not _FIELD.fullmatch(field):
      raise types.UserError(
        f'{option} has {part!r}, which is neither a .json file nor '
        f'FIELD=VALUE,VALUE without spaces, {_EXAMPLE}'
      )
    if field in found:
      raise types.UserError(
        f'{option} has {field} twice: give all its values at once{_SECOND.get(option, "")}'
      )
    found[field] = _split_values(field, values, option)
  if not found:
    raise types.UserError(f'{option} {grid!r} is empty: give FIELD=VALUE,VALUE, {_EXAMPLE}')
  return found


def _split_values(field: str, values: str, option: str) -> list[Value]:
  found: list[Value] = []
  rest = f',{values}'
  while rest:
    match = _NEXT_VALUE.match(rest)
    if not match:
      bad = rest[1:].partition(',')[0]
      wrong = f'{bad!r} is no value' if bad else 'a value is missing'
      raise types.UserError(
        f'{option} has {field}={values}, where {wrong}: give VALUE,VALUE without '
        'spaces, and a tuple as [64,64]'
      )
    inner, word = match.groups()
    if inner is None:
      found.append(Value((word,)))
    else:
      found.append(Value(tuple(re.findall(r'[^\s,]+', inner)), is_bracketed=True))
    rest = rest[match.end() :]
  return found


def parse_values(
  field: str, values: list[Value], base: config_lib.ExperimentConfig, option: str = _OPTION
) -> tuple[Any, ...]:
  """Parses each value as an override of `base` would be; option: for messages."""
  check_field(field, base, option)
  parsed: list[Any] = []
  for given in values:
    value = parse_value(field, given, base, option)
    if any(text(value) == text(other) for other in parsed):
      hint = ': a tuple is written [64,64]' if isinstance(value, tuple) else ''
      raise types.UserError(f'{option} has {field}={given} twice{hint}')
    parsed.append(value)
  return tuple(parsed)


def check_field(field: str, base: config_lib.ExperimentConfig, option: str = _OPTION) -> None:
  """Raises `UserError` for a field that the configuration lacks, or that cannot be swept."""
  if field in _NOT_SWEPT:
    raise types.UserError(f'{option} cannot hold {field!r}: {_NOT_SWEPT[field]}')
  known = field_names(base)
  if field not in known:
    near = wrong_arguments.near(field, known)
    dictionary, _, name = field.rpartition('.')
    if dictionary in new_settings.DICTIONARIES:
      raise types.UserError(
        f'{option} has {field}: write {dictionary}=[{name},VALUE],[{name},VALUE]'
      )
    hint = f'did you mean {", ".join(near)}?' if near else 'seed-acme train --help shows all fields'
    raise types.UserError(f'{option}: {base.name} has no field {field!r}; {hint}')


def parse_value(
  field: str, given: Value, base: config_lib.ExperimentConfig, option: str = _OPTION
) -> Any:
  """Parses a value as `--config.FIELD=VALUE` would be."""
  current = get(base, field)
  if given.is_bracketed and isinstance(current, (bool, int, float, str)):
    raise types.UserError(
      f'{option} has {field}={given}: this field takes one value, and several to try are written '
      f'without brackets, {field}={",".join(given.words)}'
    )
  flag = f'--config.{field}'
  argv = [flag, *given.words] if given.is_bracketed else [f'{flag}={given}']
  if field in new_settings.DICTIONARIES and given.is_bracketed and len(given.words) % 2 == 0:
    # by name, so that the other settings of the configuration stay
    argv = [f'{flag}.{name}={text}' for name, text in zip(given.words[::2], given.words[1::2])]
  try:
    base, argv = new_settings.add(base, argv)
    parsed = parsing.parse(given_lib.Overrides, argv, 'sweep', given_lib.Overrides(base))
  except types.UserError as error:
    reason = str(error).splitlines()[0]
    hint = '; a tuple is written [64,64]' if isinstance(current, tuple) else ''
    raise types.UserError(f'{option} has {field}={given}: {reason}{hint}') from None
  return get(parsed.config, field)
