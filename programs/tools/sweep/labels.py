"""Labels of combinations in tables and figures, and the names of their folders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import hashlib
import re
from typing import Any

from seed_acme import config as config_lib
from seed_acme.programs.tools.sweep import grid as sweep_grid

_MAX_SLUG = 100  # characters; file systems allow 255 bytes
_NO_SETTINGS = 'base'  # slug and label of the only combination of a sweep without a grid


def short_names(fields: Iterable[str], base: config_lib.ExperimentConfig) -> dict[str, str]:
  """Returns the shortest suffix of each dotted name that no other field of the configuration
  shares, such as `learning_rate`, but `entropy.weight`."""
  known = sweep_grid.field_names(base)
  return {field: _short_name(field, known) for field in fields}


def _short_name(field: str, known: Sequence[str]) -> str:
  parts = field.split('.')
  for i in reversed(range(1, len(parts))):
    name = '.'.join(parts[i:])
    if sum(other == name or other.endswith(f'.{name}') for other in known) < 2:
      return name
  return field


def label(settings: dict[str, Any], names: dict[str, str]) -> str:
  """Returns a label such as `learning_rate=0.001, lambda_=0.9`. names: by field."""
  return (
    ', '.join(f'{names[field]}={sweep_grid.text(value)}' for field, value in settings.items())
    or _NO_SETTINGS
  )


def add_slugs(
  slugs: dict[str, str], settings: dict[str, dict[str, Any]], base: config_lib.ExperimentConfig
) -> None:
  """Adds a folder name for each key that has none. slugs, settings: by key of the configuration."""
  names = short_names(dict.fromkeys(field for one in settings.values() for field in one), base)
  fresh = {key: _slug(one, names) for key, one in settings.items() if key not in slugs}
  wanted = [*slugs.values(), *fresh.values()]
  for key, slug in fresh.items():
    if wanted.count(slug) > 1 or len(slug) > _MAX_SLUG:
      digest = hashlib.sha256(label(settings[key], names).encode()).hexdigest()[:8]
      slug = f'{slug[: _MAX_SLUG - len(digest) - 1]}-{digest}'
    slugs[key] = slug


def _slug(settings: dict[str, Any], names: dict[str, str]) -> str:
  parts = []
  for field, value in settings.items():
    shown = re.sub(r'[^\w.+-]+', '-', sweep_grid.text(value).strip('[]'))
    parts.append(f'{names[field]}={shown or "empty"}')
  return ','.join(parts) or _NO_SETTINGS
