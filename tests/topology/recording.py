"""The recorded topologies: reading, and writing them as readable text."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from tests.topology import cases as cases_lib

PATH = pathlib.Path(__file__).with_name('recorded.json')
_LEVELS = 3  # levels of objects whose parts have a line each


def load() -> dict[str, Any]:
  return json.loads(PATH.read_text(encoding='utf-8'))


def of(case: cases_lib.Case, found: dict[str, Any]) -> dict[str, Any]:
  """Returns the settings of a case, and the result."""
  asked = {
    'launch': case.launch,
    'replay': case.replay,
    **({'gpus': case.gpus} if case.gpus else {}),
    **({'resumptions': case.resumptions} if case.resumptions else {}),
    **({'cluster': dict(case.cluster)} if case.cluster else {}),
    **({'overridden': list(case.overridden)} if case.overridden else {}),
    **({'cloud': dict(case.settings)} if case.settings else {}),
    **case.fields,
  }
  # Converted as when it is read back, so that the two can be compared.
  return json.loads(json.dumps({'asked': asked, **found}))


def text(cases: dict[str, Any]) -> str:
  return _text(cases, _LEVELS) + '\n'


def _text(value: Any, levels: int, indent: str = '') -> str:
  inner = indent + ' '
  if isinstance(value, list) and value and isinstance(value[0], str) and ': ' in value[0]:
    return '[\n' + ',\n'.join(inner + json.dumps(x) for x in value) + f'\n{indent}]'
  if (
    not levels
    or not isinstance(value, dict)
    or not any(isinstance(x, (dict, list)) for x in value.values())
  ):
    return json.dumps(value)
  parts = (f'{inner}{json.dumps(key)}: {_text(x, levels - 1, inner)}' for key, x in value.items())
  return '{\n' + ',\n'.join(parts) + f'\n{indent}}}'
