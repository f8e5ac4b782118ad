"""`seed-acme bench --sweep`: throughput and latency over actors, environments and batch sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import dataclasses
import json
import pathlib
from typing import Any, NamedTuple

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import types
from seed_acme.envs import experiment_environments
from seed_acme.files import local
from seed_acme.programs.pictures import drawing
from seed_acme.programs.tools.benchmark import bench
from seed_acme.storage import saved_config

DEFAULT = 'default'
_DEFAULT_SHAPES = '1x32,1x512,2x256,4x32,8x32'
_RECORD, _FIGURE = 'sweep.json', 'sweep.png'
_RESULT, _ERROR = 'result', 'error'


class Point(NamedTuple):
  """One shape to measure. label: `4x32` for four actors of 32 environments, with the batch size."""

  label: str
  config: config_lib.ExperimentConfig


class Window(NamedTuple):
  """The measurement of each point, with arguments of `bench.bench`."""

  seconds: float
  warmup_seconds: float
  launch: str


def points(config: config_lib.ExperimentConfig, shapes: str, batches: str) -> list[Point]:
  """Returns every shape with every batch size. Raises `types.UserError` for those that cannot run.

  shapes: `ACTORSxENVIRONMENTS`, separated by commas, or `DEFAULT`. batches: unrolls per update,
    separated by commas; '' = the configuration's.
  """
  sizes = [_number(text, '--sweep_batches', batches) for text in batches.split(',') if batches]
  found = []
  for shape in (_DEFAULT_SHAPES if shapes == DEFAULT else shapes).split(','):
    actors, _, environments = shape.partition('x')
    for batch in sizes or [config.agent.batch_size]:
      point = Point(
        f'{shape.strip()}, batch {batch}',
        dataclasses.replace(
          config,
          num_actors=_number(actors, '--sweep', shapes),
          environments_per_actor=_number(environments, '--sweep', shapes),
          agent=dataclasses.replace(config.agent, batch_size=batch),
        ),
      )
      _check(point)
      found.append(point)
  return found


def _number(text: str, option: str, whole: str) -> int:
  try:
    number = int(text)
  except ValueError:
    number = 0
  if number < 1:
    form = '1x32,4x32' if option == '--sweep' else '64,256'
    raise types.UserError(f'{option}={whole}: {text!r} is no number >= 1; write {option}={form}')
  return number


def _check(point: Point) -> None:
  try:
    config_validation.validate(point.config)
    experiment_environments.check(point.config)
  except types.UserError as error:
    raise types.UserError(f'{point.label}: {error}') from error


def measure(
  asked: Sequence[Point], window: Window, folder: pathlib.Path, tell: Callable[[str], None]
) -> dict[str, Any]:
  """Measures all points; returns their `label`, and `result` of `bench.bench` or `error`.

  Each result is written to the folder as soon as it is measured. A point that the folder already
  has, measured with the same window, is not measured again unless it failed. tell: called with a
  line for each point.
  """
  path = folder / _RECORD
  known = _read(path)
  rows = []
  for point in asked:
    key = json.loads(json.dumps([saved_config.to_json(point.config), window._asdict()]))
    row = next((r for r in known if r['key'] == key and _RESULT in r), None)
    if row is None:
      row = {'label': point.label, 'key': key, **_measured(point, window)}
      known = [*(r for r in known if r['key'] != key), row]
      folder.mkdir(parents=True, exist_ok=True)
      local.write_json(path, {'rows': known})
    tell(_line(row))
    rows.append(row)
  return {'config': asked[0].config.name, 'rows': rows}


def _read(path: pathlib.Path) -> list[dict[str, Any]]:
  if not path.exists():
    return []
  try:
    return list(local.read_json(path)['rows'])
  except (ValueError, KeyError, TypeError) as error:
    raise types.UserError(
      f'{path} is no record of a sweep: move it, or choose another --sweep_out'
    ) from error


def _measured(point: Point, window: Window) -> dict[str, Any]:
  """Measures a point; returns its error instead if that fails, so that the others still run."""
  try:
    result = bench.bench(
      point.config,
      window.seconds,
      window.warmup_seconds,
      measures_bounds=False,
      launch=window.launch,
    )
  except bench.BenchFailed as error:
    return {_ERROR: str(error)}
  return {_RESULT: result}


def is_whole(record: dict[str, Any]) -> bool:
  """Whether every point was measured without an error."""
  return all(_RESULT in row for row in record['rows'])


def describe(record: dict[str, Any]) -> str:
  """Returns the record as aligned text."""
  return '\n'.join([f'{record["config"]}:', *map(_line, record['rows'])])


def _line(row: dict[str, Any]) -> str:
  if _ERROR in row:
    return f'  {row["label"]:18}  failed: {row[_ERROR]}'
  speed, wall, latency_ms = _figures(row)
  return (
    f'  {row["label"]:18}  {speed:9,.0f} steps per CPU-second, {wall:9,.0f} steps/s, latency p95 '
    f'{latency_ms:.1f} ms, window {row[_RESULT]["window_s"]:.1f} s'
  )


def _figures(row: dict[str, Any]) -> tuple[float, float, float]:
  """Returns steps per CPU-second, steps/s and latency p95 in ms."""
  result = row[_RESULT]
  latency_ms = result['inference_latency_ms']['p95']
  return result['steps_per_cpu_s'], result['steps_per_s'], latency_ms


def draw(record: dict[str, Any], folder: pathlib.Path) -> pathlib.Path | None:
  """Draws two panels with a bar for each point that was measured; None if there is none."""
  rows = [row for row in record['rows'] if _RESULT in row]
  if not rows:
    return None
  figure = drawing.new_figure(8, 2 + 0.5 * len(rows))
  left, right = figure.subplots(1, 2, sharey=True)
  names = [row['label'] for row in rows]
  _, colour = drawing.line_style(0)
  speeds, _, latencies_ms = zip(*map(_figures, rows))
  for panel, values, label in (
    (left, speeds, 'agent steps per CPU-second'),
    (right, latencies_ms, 'inference latency p95, ms'),
  ):
    panel.barh(range(len(names)), values, color=colour)
    drawing.dress(panel, label)
  left.set_yticks(range(len(names)), names)
  left.invert_yaxis()
  drawing.count_steps(left)
  drawing.title(figure, f'{record["config"]}: actors × environments')
  return drawing.write(figure, folder / _FIGURE)
