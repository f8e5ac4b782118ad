"""`seed-acme plan`: predicts a run at any scale from the measured costs of its parts."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import math
from typing import Annotated, Any

import tyro

from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.loggers import terminal
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.tools.planning import costs as costs_lib
from seed_acme.programs.tools.planning import model
from seed_acme.programs.tools.planning import picture
from seed_acme.programs.tools.planning import prices as prices_lib


@dataclasses.dataclass(frozen=True)
class PlanArguments:
  """Plan a run at any scale from what its parts cost, compared with inference on the actors.

  bench_files: a record of `seed-acme bench --json`; several --from of one configuration, with
    groups of other sizes, make the plan more accurate. Settings are those of the first; single
    calls cost what the first that measured them says.
  learners: learner hosts.
  actors: actor processes in total, with a core each.
  environments_per_actor: 0 = as measured.
  unrolls_per_update: of all learners together; 0 = as measured, for each learner.
  inference_rows: rows at which a batch runs; 0 = half of a device's environments.
  inference_devices: devices of each learner.
  training_devices: devices of each learner.
  device_speed: speed of a learner's device relative to the measured core.
  cores: cores of the measured machine that all processes share; 0 = a core for each actor.
  network_gbits: bandwidth of a learner's host, 10^9 bits a second; 0 = unlimited.
  round_trip_ms: round trip of a message over the network.
  prices: JSON file of dollars per hour by name; '' = of September 2019, from memory.
  accelerator: name of a learner's device in the prices.
  out: picture to write, of the rate against the number of environments; '' = none.
  json: print JSON.
  """

  bench_files: Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(name='from')
  ] = ()
  learners: Annotated[int, bounds.at_least(1)] = 1
  actors: Annotated[int, bounds.at_least(1)] = 1
  environments_per_actor: Annotated[int, bounds.at_least(0)] = 0
  unrolls_per_update: Annotated[int, bounds.at_least(0)] = 0
  inference_rows: Annotated[int, bounds.at_least(0)] = 0
  inference_devices: Annotated[int, bounds.at_least(1)] = 1
  training_devices: Annotated[int, bounds.at_least(1)] = 1
  device_speed: Annotated[float, bounds.above(0)] = 1.0
  cores: Annotated[float, bounds.at_least(0)] = 0.0
  network_gbits: Annotated[float, bounds.at_least(0)] = 10.0
  round_trip_ms: Annotated[float, bounds.at_least(0)] = 0.5
  prices: str = ''
  accelerator: str = prices_lib.CPU_CORE
  out: str = ''
  json: bool = False


def plan(arguments: PlanArguments) -> command_lib.Answer:
  """Plans a run; raises `UserError`."""
  if not arguments.bench_files:
    raise types.UserError(
      'plan needs --from=FILE: seed-acme bench --config=NAME --json > bench.json writes one'
    )
  _check(arguments)
  prices = prices_lib.read(arguments.prices)
  prices_lib.price(prices, arguments.accelerator)
  costs = faster_devices(costs_lib.read(arguments.bench_files), arguments.device_speed)
  scale = _scale(arguments, costs)
  record = _record(arguments, costs, scale, prices)
  if arguments.out:
    picture.draw(costs, scale, arguments.out)
  return command_lib.Answer(record, describe(record))


def _check(arguments: PlanArguments) -> None:
  if arguments.actors < arguments.learners:
    raise types.UserError(
      f'--actors ({arguments.actors}) must be at least --learners ({arguments.learners}): '
      'each learner needs an actor'
    )
  if 0 < arguments.unrolls_per_update < arguments.learners:
    raise types.UserError(
      f'--unrolls_per_update ({arguments.unrolls_per_update}) must be at least --learners '
      f'({arguments.learners}): each learner trains on a part of a batch'
    )
  if arguments.cores and arguments.learners > 1:
    raise types.UserError('--cores is of one machine: leave it out, or plan --learners=1')


def faster_devices(costs: costs_lib.Costs, speed: float) -> costs_lib.Costs:
  """Returns the costs with the learners' devices `speed` times as fast."""
  faster = lambda curve: costs_lib.Curve(tuple((n, cost / speed) for n, cost in curve.points))
  return dataclasses.replace(
    costs, inference_call=faster(costs.inference_call), update=faster(costs.update)
  )


def _scale(arguments: PlanArguments, costs: costs_lib.Costs) -> model.Scale:
  measured = costs.setting
  per_actor = arguments.environments_per_actor or measured.environments_per_actor
  of_device = arguments.actors * per_actor / arguments.learners / arguments.inference_devices
  gbits = arguments.network_gbits
  return model.Scale(
    learners=arguments.learners,
    actors=arguments.actors,
    environments_per_actor=per_actor,
    groups_per_actor=min(measured.groups_per_actor, per_actor),
    unrolls_per_update=(
      arguments.unrolls_per_update or measured.unrolls_per_update * arguments.learners
    ),
    inference_rows=arguments.inference_rows or max(1, round(of_device / 2)),
    inference_devices=arguments.inference_devices,
    training_devices=arguments.training_devices,
    cores=arguments.cores,
    # Processes of one machine need no network.
    network_bytes_per_s=gbits * 1e9 / 8 if gbits and not arguments.cores else math.inf,
    round_trip_s=0.0 if arguments.cores else arguments.round_trip_ms / 1e3,
  )


def _record(
  arguments: PlanArguments, costs: costs_lib.Costs, scale: model.Scale, prices: Mapping[str, float]
) -> dict[str, Any]:
  """Returns the printed record: both kinds of inference, with their prices."""
  record: dict[str, Any] = {'environments': scale.environments, 'scale': _finite(scale)}
  training = arguments.training_devices
  for name, planned, num_devices in (
    ('central', model.central(costs, scale), training + arguments.inference_devices),
    ('actor_side', model.actor_side(costs, scale), training),
  ):
    dollars = prices_lib.dollars_per_hour(scale, num_devices, arguments.accelerator, prices)
    record[name] = {
      **dataclasses.asdict(planned),
      'dollars_per_hour': dollars,
      'dollars_per_billion_frames': prices_lib.dollars_per_billion_frames(
        dollars, planned.frames_per_s
      ),
    }
  record['prices_are_from_memory'] = not arguments.prices
  return record


def _finite(scale: model.Scale) -> dict[str, Any]:
  """Returns the scale without an infinite bandwidth, which JSON cannot represent."""
  return {name: x for name, x in dataclasses.asdict(scale).items() if x != math.inf}


def describe(record: Mapping[str, Any]) -> str:
  """Returns the record as a table of the two kinds of inference."""
  ways = (record['central'], record['actor_side'])
  rows = [
    ('', 'central (SEED)', 'at the actors (IMPALA)'),
    ('environment frames/s', *(f'{way["frames_per_s"]:,.0f}' for way in ways)),
    ('agent steps/s', *(f'{way["steps_per_s"]:,.0f}' for way in ways)),
    ('updates/s', *(f'{way["updates_per_s"]:.2f}' for way in ways)),
    ('bottleneck', *(way['bottleneck'] for way in ways)),
  ]
  for part in ways[0]['idle']:
    idle = [f'{way["idle"][part]:.0%}' if part in way['idle'] else '-' for way in ways]
    rows.append((f'idle share, {part}', *idle))
  rows += [
    ('rows of an inference call', *(f'{way["batch_rows"]:.0f}' for way in ways)),
    ('policy lag, updates', *(f'{way["policy_lag"]:.1f}' for way in ways)),
    ('MB/s at the learners', *(f'{way["bytes_per_s"] / 1e6:,.1f}' for way in ways)),
    ('dollars an hour', *(f'{way["dollars_per_hour"]:,.2f}' for way in ways)),
    ('dollars per 1e9 frames', *(f'{way["dollars_per_billion_frames"]:,.2f}' for way in ways)),
  ]
  lines = terminal.aligned(rows, num_left=1)
  note = ', prices from memory (September 2019)' if record['prices_are_from_memory'] else ''
  return '\n'.join([f'{record["environments"]:,} environments{note}', *lines])
