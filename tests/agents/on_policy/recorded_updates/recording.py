"""The recorded numbers: reading, writing, and tolerances."""

from __future__ import annotations

from collections.abc import Iterator
import json
import math
import pathlib
from typing import Any

PATH = pathlib.Path(__file__).with_name('recorded.json')
# Another processor may add numbers in another order, with float32 rounding of 6e-8. A number near 0
# that is the difference of larger numbers has their rounding error: metrics are about 1, and
# projections are bounded by the norm of their gradient.
_RELATIVE = 1e-5
_OF_METRICS = 2e-6
_OF_NORM = 1e-5
# A gradient that is 0 except for rounding.
_OF_GREATEST_NORM = 1e-7


def load() -> dict[str, dict[str, Any]]:
  return json.loads(PATH.read_text(encoding='utf-8'))


def save(cases: dict[str, dict[str, Any]]) -> None:
  """Writes a line for each group of metrics and each variable, so that diffs are readable."""
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
  """Returns the differences of one case, a line each."""
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
