"""Prices of cores and accelerators, and the cost of a plan."""

from __future__ import annotations

from collections.abc import Mapping
import json
import math

from seed_acme import types
from seed_acme.programs.tools.planning import model

CPU_CORE = 'cpu_core'

# Dollars per hour on Google Cloud in September 2019, from memory of the paper's table.
FROM_MEMORY: Mapping[str, float] = {CPU_CORE: 0.0475, 'p100': 1.46, 'tpu_v3_core': 1.00}


def read(path: str) -> Mapping[str, float]:
  """Returns dollars per hour by name, from a JSON file; '' = from memory. Raises `UserError`."""
  if not path:
    return FROM_MEMORY
  try:
    with open(path, encoding='utf-8') as handle:
      found = json.load(handle)
  except (OSError, ValueError) as error:
    raise types.UserError(f'cannot read the prices {path}: {error}') from error
  if not isinstance(found, dict) or not all(_is_price(value) for value in found.values()):
    raise types.UserError(
      f'{path} must be an object of prices in dollars an hour, such as {{"{CPU_CORE}": 0.05}}'
    )
  return found


def _is_price(value: object) -> bool:
  is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
  return is_number and 0 <= float(str(value)) < math.inf


def price(prices: Mapping[str, float], name: str) -> float:
  """Returns the price of a name; raises `UserError` if it has none."""
  if name not in prices:
    raise types.UserError(
      f'no price for {name!r}; known: {", ".join(sorted(prices))}; add it to the file of --prices'
    )
  return prices[name]


def dollars_per_hour(
  scale: model.Scale, num_devices: int, accelerator: str, prices: Mapping[str, float]
) -> float:
  """Returns the price of the shared machine, or of a core for each actor plus the devices.

  num_devices: of each learner, called `accelerator` in the prices.
  """
  core = price(prices, CPU_CORE)
  if scale.cores:
    return scale.cores * core
  devices = scale.learners * num_devices * price(prices, accelerator)
  return scale.actors * core + devices


def dollars_per_billion_frames(dollars_an_hour: float, frames_per_s: float) -> float:
  return dollars_an_hour / (frames_per_s * 3600) * 1e9
