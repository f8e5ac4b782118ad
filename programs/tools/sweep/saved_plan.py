"""The plan of a sweep as `sweep.json` in its folder."""

from __future__ import annotations

import pathlib
from typing import Any

from seed_acme import types
from seed_acme.files import local
from seed_acme.programs.tools.sweep import grid as sweep_grid
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import search_space
from seed_acme.storage import saved_config
from seed_acme.storage import trust as trust_lib

FILE = 'sweep.json'
_FORMAT = 1


def save(plan: sweep_plan.Plan, out: pathlib.Path) -> None:
  """Writes the plan into the folder of the sweep, atomically."""
  record: dict[str, Any] = {
    'format': _FORMAT,
    'num_seeds': plan.num_seeds,
    'config': saved_config.to_json(plan.base),
    'combinations': [
      {'slug': combination.slug, 'settings': saved_config.to_json(combination.settings)}
      for combination in plan.combinations
    ],
  }
  if plan.search is not None:
    space = search_space.to_json(plan.search.space)
    record['search'] = {'num_trials': plan.search.num_trials, 'space': space}
  local.write_json(out / FILE, record)


def load(out: pathlib.Path, trust: trust_lib.Trust = trust_lib.EVERYTHING) -> sweep_plan.Plan:
  """Reads the plan of a folder; raises `UserError` if it is damaged or names untrusted code."""
  path = out / FILE
  record = local.read_json(path)
  try:
    if record['format'] != _FORMAT:
      raise types.UserError(f'format {record["format"]}, this version reads {_FORMAT}')
    trust_lib.require(record['config'], str(path), trust)
    space = record.get('search', {}).get('space', {})
    choices = {field: domain.get('choices', []) for field, domain in space.items()}
    for saved in [*(one['settings'] for one in record['combinations']), choices]:
      trust_lib.require(saved, str(path), trust)
    return _from_record(record)
  except types.UserError as error:
    raise types.UserError(f'{path}: {error}') from None
  except (KeyError, TypeError, ValueError, AttributeError) as error:
    raise types.UserError(
      f'{path} is damaged ({type(error).__name__}: {error}): restore it, or choose another --out'
    ) from None


def _from_record(record: Any) -> sweep_plan.Plan:
  base = saved_config.from_json(record['config'])
  combinations = []
  for saved in record['combinations']:
    settings = saved_config.from_json(saved['settings'])
    config = sweep_grid.replace_all(base, settings)
    combinations.append(sweep_plan.Combination(saved['slug'], settings, config))
  search = None
  if 'search' in record:
    space = search_space.from_json(record['search']['space'])
    search = sweep_plan.Search(space, int(record['search']['num_trials']))
  return sweep_plan.Plan(base, tuple(combinations), int(record['num_seeds']), search)
