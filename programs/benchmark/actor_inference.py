"""`seed-acme bench --compare_actor_inference`: central inference or inference in the actors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
import json
import pathlib
import sys
from typing import Any

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import types
from seed_acme.envs import experiment_environments as environments
from seed_acme.programs.reports import drawing
from seed_acme.programs.system import processes
from seed_acme.storage import files

FACTORS = (0.25, 1.0, 4.0)
CENTRAL = 'central'
IN_ACTORS = ('actor_every_update', 'actor_every_unroll')
_LABELS = {
  CENTRAL: 'inference in the server',
  'actor_every_update': 'in the actors, weights at every update',
  'actor_every_unroll': 'in the actors, weights at every unroll',
}
_SECONDS, _BYTES = 'cpu_s_per_million_steps', 'bytes_per_step'
_UNITS = {_SECONDS: 'CPU-seconds per million steps', _BYTES: 'bytes per step'}
_MIN_S = 0.5  # CPU-seconds of one try


def command(
  config: config_lib.ExperimentConfig, factors: Sequence[float], out: str, as_json: bool
) -> int:
  """Prints the record; with `out` draws it there and saves it beside. The exit code."""
  if not factors:
    raise types.UserError('--network_factors is empty: give one number or more, such as 0.25 1 4')
  if config.network.module and set(factors) != {1.0}:
    raise types.UserError(
      f'network.module={config.network.module} is of your own, and its size is not known here: '
      'add --network_factors 1'
    )
  config_validation.validate(config)
  environments.check(config)
  if out:  # a name that cannot be written is refused before the work, not after it
    drawing.write(drawing.new_figure(1, 1), out)
  result = record(config, _measured(config, factors))
  print(json.dumps(result) if as_json else describe(result), flush=True)
  if out:
    files.write_json(pathlib.Path(out).with_suffix('.json'), result)
    draw(result, out)
  return 0


def _measured(
  config: config_lib.ExperimentConfig, factors: Sequence[float]
) -> list[dict[str, Any]]:
  processes.load_tensorflow()
  processes.configure_tensorflow(1)  # an actor has one core
  from seed_acme.programs.benchmark import (
    actor_inference_costs,  # takes seconds; wrong arguments are answered before
  )

  measured = []
  for number, factor in enumerate(factors, start=1):
    _tell(f'measuring network x {factor:g} ({number} of {len(factors)})')
    network = actor_inference_costs.scaled(config.network, factor)
    costs = actor_inference_costs.measure(dataclasses.replace(config, network=network), _MIN_S)
    _tell(f'network x {factor:g}: {costs["num_weights"]:,} weights')
    measured.append({'network_factor': factor, **costs})
  return measured


def _tell(line: str) -> None:
  print(line, file=sys.stderr, flush=True)


def record(
  config: config_lib.ExperimentConfig, measured: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
  """A JSON record of what `actor_inference_costs.measure` returned for each network."""
  networks = sorted(measured, key=lambda costs: costs['num_weights'])
  return {
    'config': config.name,
    'num_actors': config.num_actors,
    'environments_per_actor': config.environments_per_actor,
    'networks': networks,
    'break_even': {
      placement: {kind: break_even(networks, placement, kind) for kind in _UNITS}
      for placement in IN_ACTORS
    },
  }


def total(costs: Mapping[str, Any], placement: str, kind: str) -> float:
  """Of one network, over all parts of a placement."""
  return sum(costs[placement][kind].values())


def break_even(networks: Sequence[Mapping[str, Any]], placement: str, kind: str) -> dict[str, Any]:
  """Whether a placement in the actors is cheaper than the server, and where that changes.

  networks: by number of weights. num_weights: of each change, between two measured sizes on the
  straight line through them; for bytes this is exact, since only weights grow with the network.
  is_cheaper: at each measured size.
  """
  gains = [total(costs, CENTRAL, kind) - total(costs, placement, kind) for costs in networks]
  sizes = [costs['num_weights'] for costs in networks]
  changes = []
  for i in range(len(gains) - 1):
    if (gains[i] > 0) != (gains[i + 1] > 0):
      share = gains[i] / (gains[i] - gains[i + 1])
      changes.append(sizes[i] + share * (sizes[i + 1] - sizes[i]))
  return {'num_weights': changes, 'is_cheaper': [gain > 0 for gain in gains]}


def describe(result: Mapping[str, Any]) -> str:
  """The record as aligned text."""
  first = result['networks'][0]
  lines = [
    '{config}: {num_actors} actors, inference of '.format(**result)
    + '{server_rows} rows in the server or of {actor_rows} in each actor, '.format(**first)
    + '{steps_per_update:,.0f} steps per update'.format(**first)
  ]
  for costs in result['networks']:
    lines.append(f'{costs["num_weights"]:,} weights (network x {costs["network_factor"]:g})')
    for placement, label in _LABELS.items():
      of_kinds = [
        f'{total(costs, placement, kind):,.1f} {unit} ('
        + ', '.join(f'{name} {value:,.1f}' for name, value in costs[placement][kind].items())
        + ')'
        for kind, unit in _UNITS.items()
      ]
      lines.append(f'  {label}: ' + '; '.join(of_kinds))
  for placement in IN_ACTORS:
    for kind, unit in _UNITS.items():
      found = _described(result['break_even'][placement][kind])
      lines.append(f'break-even, {_LABELS[placement]}, {unit}: {found}')
  return '\n'.join(lines)


def _described(found: Mapping[str, Any]) -> str:
  names = ['actors' if is_cheaper else 'server' for is_cheaper in found['is_cheaper']]
  if not found['num_weights']:
    return f'none, the {names[0]} {"are" if names[0] == "actors" else "is"} cheaper throughout'
  at = ' and '.join(f'{size:,.0f}' for size in found['num_weights'])
  return f'{at} weights ({names[0]} cheaper below, {names[-1]} above)'


def draw(result: Mapping[str, Any], out: str) -> None:
  """Both costs against the size of the network, a panel each. Raises `UserError`."""
  figure = drawing.new_figure(10, 4.4)
  panels = figure.subplots(1, 2)
  weights = [costs['num_weights'] for costs in result['networks']]
  for panel, (kind, unit) in zip(panels, _UNITS.items()):
    for i, (placement, label) in enumerate(_LABELS.items()):
      style, colour = drawing.line_style(i)
      values = [total(costs, placement, kind) for costs in result['networks']]
      panel.plot(weights, values, style, color=colour, marker='o', linewidth=2.0, label=label)
    panel.set_xscale('log')
    panel.set_yscale('log')
    drawing.dress(panel, 'weights of the network')
    panel.set_ylabel(unit, color=drawing.INK)
  drawing.title(
    figure,
    f'{result["config"]}: {result["num_actors"]} actors of '
    f'{result["environments_per_actor"]} environments',
  )
  drawing.legend(figure, panels[0], len(_LABELS))
  drawing.write(figure, out)
