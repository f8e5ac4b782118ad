"""Alternating measurements of two configurations, or of two launches of one.

A busy machine then slows both alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import statistics
from typing import Any, NamedTuple

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme.envs import experiment_environments


class Contender(NamedTuple):
  """One of the two measured alternatives. launch: as for `train`."""

  config: config_lib.ExperimentConfig
  launch: str


Measure = Callable[[Contender], dict[str, Any]]


def measure(
  pair: Sequence[Contender], num_rounds: int, measure_one: Measure, tell: Callable[[str], None]
) -> dict[str, Any]:
  """Measures both alternately; returns a JSON record of each round, the ratios and their median.

  A ratio is steps per CPU-second of the second over those of the first. Odd rounds begin with the
  first and even ones with the second. tell: called with a line for each round. Raises
  `types.UserError` before anything runs if either configuration is invalid.
  """
  for config, _ in pair:
    config_validation.validate(config)
    experiment_environments.check(config)
  rounds: list[list[dict[str, Any]]] = []
  for index in range(num_rounds):
    order = (0, 1) if index % 2 == 0 else (1, 0)
    results = {i: measure_one(pair[i]) for i in order}
    rounds.append([results[0], results[1]])
    tell(f'round {index + 1} of {num_rounds}: {_round(rounds[-1])}')
  ratios = [_ratio(results) for results in rounds]
  return {
    'configs': _labels(pair),
    'rounds': rounds,
    'ratios': ratios,
    'median_ratio': statistics.median(ratios),
  }


def _labels(pair: Sequence[Contender]) -> list[str]:
  """Returns the names of the configurations, with the launch if the launches differ."""
  if pair[0].launch == pair[1].launch:
    return [contender.config.name for contender in pair]
  return [f'{config.name} ({launch})' for config, launch in pair]


def describe(record: dict[str, Any]) -> str:
  """Returns the record as aligned text."""
  names, ratios = record['configs'], sorted(record['ratios'])
  width = max(map(len, names))
  lines = [f'medians of {len(ratios)} rounds:']
  for i, name in enumerate(names):
    results = [pair[i] for pair in record['rounds']]
    costs = [result['cpu_s_per_million_steps'] for result in results]
    median = {kind: statistics.median(cost.get(kind, 0.0) for cost in costs) for kind in costs[0]}
    lines.append(
      f'  {name:{width}}  {_median(results, "steps_per_cpu_s"):9,.0f} steps per CPU-second, '
      f'{_median(results, "steps_per_s"):9,.0f} steps/s; CPU-seconds per million steps: '
      + ', '.join(
        f'{kind} {cost:.1f}' for kind, cost in sorted(median.items(), key=lambda item: -item[1])
      )
    )
  lines.append(
    f'steps per CPU-second, {names[1]} / {names[0]}: median {record["median_ratio"]:.3f}, all '
    + ' '.join(f'{ratio:.3f}' for ratio in ratios)
  )
  return '\n'.join(lines)


def _ratio(results: Sequence[dict[str, Any]]) -> float:
  return results[1]['steps_per_cpu_s'] / results[0]['steps_per_cpu_s']


def _round(results: Sequence[dict[str, Any]]) -> str:
  first, second = (result['steps_per_cpu_s'] for result in results)
  return f'{first:,.0f} and {second:,.0f} steps per CPU-second, ratio {_ratio(results):.3f}'


def _median(results: Sequence[dict[str, Any]], name: str) -> float:
  return statistics.median(result[name] for result in results)
