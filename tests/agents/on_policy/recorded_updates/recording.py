"""The recorded numbers: reading, writing, and what counts as the same."""

from __future__ import annotations

from collections.abc import Iterator
import json
import math
import pathlib
from typing import Any

PATH = pathlib.Path(__file__).with_name('recorded.json')
# Another processor adds up in another order, in float32, whose rounding is 6e-8 of a number. What
# is near 0 as the difference of greater numbers has their rounding: those of metrics are about 1,
# those of a projection are bounded by the norm of its gradient.
_RELATIVE = 1e-5
_OF_METRICS = 2e-6
_OF_NORM = 1e-5
# A gradient that is 0 but for the rounding of what cancels out in it.
_OF_GREATEST_NORM = 1e-7


def load() -> dict[str, dict[str, Any]]:
  return json.loads(PATH.read_text(encoding='utf-8'))


def save(cases: dict[str, dict[str, Any]]) -> None:
  """A line for each group of metrics and each variable, so that a diff can be read."""
  PATH.write_text(_text(cases, 3) + '\n', encoding='utf-8')


def _text(value: Any, levels: int, indent: str = '') -> str:
  if not levels or not isinstance(value, dict) or _is_flat(value):
    return json.dumps(value)
  inner = indent + ' '
  items = [f'{inner}{json.dumps(key)}: {_text(x, levels - 1, inner)}' for key, x in value.items()]
  return '{\n' + ',\n'.join(items) + f'\n{indent}}}'


def _is_flat(value: dict[str, Any]) -> bool:
  return not any(isinstance(x, (dict, list)) for x in value.values())


def differences(recorded: dict[str, Any], found: dict[str, Any]) -> list[str]:
  """What of one case is not as it was, a line each."""
  return [*_differences(recorded, found)]


def _differences(recorded: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
  if recorded.keys() != found.keys():
    yield f'parts {sorted(found)}, recorded were {sorted(recorded)}'
    return
  for part, expected in recorded.items():
    if not isinstance(expected, dict):
      expected, now = {'': expected}, {'': found[part]}
    else:
      now = found[part]
    if expected.keys() != now.keys():
      other = sorted(expected.keys() ^ now.keys())
      yield f'{part}: only one of both has {other}'
      continue
    norms = [x[0] for x in expected.values() if isinstance(x, list)]
    for name, value in expected.items():
      if not _is_same(value, now[name], max(norms, default=0.0)):
        yield f'{part} {name}: {now[name]}, recorded was {value}'


def _is_same(recorded: Any, found: Any, greatest_norm: float) -> bool:
  if not isinstance(recorded, list):
    return math.isclose(recorded, found, rel_tol=_RELATIVE, abs_tol=_OF_METRICS)
  tolerance = _OF_NORM * recorded[0] + _OF_GREATEST_NORM * greatest_norm
  return len(recorded) == len(found) and all(
    math.isclose(x, y, rel_tol=_RELATIVE, abs_tol=tolerance) for x, y in zip(recorded, found)
  )
