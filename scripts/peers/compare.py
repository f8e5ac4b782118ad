"""Compares ours with other libraries: `.venv/bin/python scripts/peers/compare.py --work=NAME`.

`scripts/peers/install.sh` makes the environment of the other libraries.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
import datetime
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
from typing import Any

import contenders
import peer_process

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.configs import registry
from seed_acme.programs.tools.benchmark import bench

_HERE = pathlib.Path(__file__).parent
RULE = (
  'agent steps that were acted and trained (where the work is acting alone: acted), per CPU-second '
  '(user and system) of all processes of the run; steps of a wrapper or a library that only reset '
  'are not counted'
)
_TRIAL_S = 8.0  # window in which one thread is compared with two
_THREADS = (1, 2)
_OURS = ('tensorflow', 'numpy', 'mujoco', 'ale-py')

Round = Mapping[str, Mapping[str, float]]  # contender -> result of `peer_process.measure`


def main(argv: Sequence[str] | None = None) -> int:
  arguments = _parse(argv)
  try:
    for name in ('rounds', 'seconds'):
      bounds.above(0).check(f'--{name}', getattr(arguments, name))
    bounds.at_least(0).check('--warmup_seconds', arguments.warmup_seconds)
    # The processes of our runs import modules of this folder, too.
    os.environ['PYTHONPATH'] = os.pathsep.join(filter(None, (str(_HERE), os.getenv('PYTHONPATH'))))
    record = compare(arguments)
  except types.UserError as error:
    print(f'error: {error}', file=sys.stderr)
    return 2
  print(describe(record))
  if arguments.json:
    pathlib.Path(arguments.json).write_text(json.dumps(record, indent=1) + '\n')
  return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
  parser.add_argument('--work', choices=tuple(contenders.WORKS), required=True)
  parser.add_argument('--rounds', type=int, default=9)
  parser.add_argument('--seconds', type=float, default=60.0, help='of each window')
  parser.add_argument('--warmup_seconds', type=float, default=8.0, help='training before it')
  parser.add_argument('--python', default='.venv-peers/bin/python', help='of the other libraries')
  parser.add_argument('--json', default='', help='file for the record')
  return parser.parse_args(argv)


def compare(arguments: argparse.Namespace) -> dict[str, Any]:
  """Measures all rounds and returns a JSON record. Raises `types.UserError`."""
  work = contenders.WORKS[arguments.work]
  if not os.access(arguments.python, os.X_OK):
    raise types.UserError(
      f'--python={arguments.python} is no Python: make one with scripts/peers/install.sh'
    )
  # before the windows, so that a missing package is found early
  versions = _versions(work, arguments.python)
  threads = {peer.name: _best_threads(peer, arguments) for peer in work.peers}
  measures: dict[str, Callable[[], Mapping[str, float]]] = {
    **{ours.name: functools.partial(_measure_ours, ours, arguments) for ours in work.ours},
    **{
      peer.name: functools.partial(_measure_peer, peer, arguments, threads[peer.name])
      for peer in work.peers
    },
  }
  rounds = [_round(index, measures) for index in range(arguments.rounds)]
  return {
    'work': arguments.work,
    'date': datetime.date.today().isoformat(),
    'num_environments': work.num_environments,
    'equal': work.equal,
    'rule': RULE,
    'seconds': arguments.seconds,
    'threads': threads,
    'versions': versions,
    'rounds': rounds,
    **summary(rounds, [ours.name for ours in work.ours]),
  }


def _round(
  index: int, measures: Mapping[str, Callable[[], Mapping[str, float]]]
) -> dict[str, Mapping[str, float]]:
  """Measures every contender once; each round begins with the next one."""
  names = list(measures)
  first = index % len(names)
  results = {}
  for name in names[first:] + names[:first]:
    results[name] = measures[name]()
    _tell(f'round {index + 1}: {name}: {results[name]["steps_per_cpu_s"]:,.0f} per CPU-second')
  return results


def _best_threads(peer: contenders.Peer, arguments: argparse.Namespace) -> int:
  """Returns the number of threads with the most steps per CPU-second in a short window."""
  rates = {}
  for number in _THREADS:
    result = peer_process.measure(_command(peer, arguments, number), _TRIAL_S, _TRIAL_S / 2)
    rates[number] = result['steps_per_cpu_s']
    _tell(f'trial: {peer.name}, {number} threads: {rates[number]:,.0f} per CPU-second')
  return max(rates, key=rates.__getitem__)


def _command(peer: contenders.Peer, arguments: argparse.Namespace, threads: int) -> list[str]:
  script = [arguments.python, str(_HERE / peer.script), *peer.arguments]
  return [*script, f'--work={arguments.work}', f'--threads={threads}']


def _measure_peer(
  peer: contenders.Peer, arguments: argparse.Namespace, threads: int
) -> dict[str, float]:
  command = _command(peer, arguments, threads)
  return peer_process.measure(command, arguments.seconds, arguments.warmup_seconds)


def _measure_ours(ours: contenders.Ours, arguments: argparse.Namespace) -> dict[str, float]:
  result = bench.bench(
    load(ours.config),
    arguments.seconds,
    arguments.warmup_seconds,
    measures_bounds=False,
    launch=ours.launch,
  )
  names = ('agent_steps', 'window_s', 'steps_per_s', 'steps_per_cpu_s', 'cores_in_use')
  return {name: result[name] for name in names}


def load(name: str) -> config_lib.ExperimentConfig:
  """Loads a configuration by name, or from a file of this folder."""
  return registry.load(str(_HERE / name) if name.endswith('.py') else name)


def summary(rounds: Sequence[Round], ours: Sequence[str]) -> dict[str, Any]:
  """Returns medians over rounds, and for each of ours the sorted ratios of it over each other
  contender in the same round."""
  rates = {
    name: [results[name]['steps_per_cpu_s'] for results in rounds] for name in dict(rounds[0])
  }
  wall = {name: [results[name]['steps_per_s'] for results in rounds] for name in rates}
  return {
    'steps_per_cpu_s': {name: statistics.median(values) for name, values in rates.items()},
    'steps_per_s': {name: statistics.median(values) for name, values in wall.items()},
    'ratios': {
      mine: {
        name: sorted(one / other for one, other in zip(rates[mine], values, strict=True))
        for name, values in rates.items()
        if name != mine
      }
      for mine in ours
    },
  }


def _versions(work: contenders.Work, python: str) -> dict[str, str]:
  extras = sorted({ours.extra for ours in work.ours} - {''})
  advice = f"PIP_CONSTRAINT=constraints.txt pip install -e '.[{','.join(extras)}]'"
  ours = _installed(sys.executable, (*_OURS, *extras), advice)
  names = sorted({package for peer in work.peers for package in peer.packages})
  theirs = _installed(python, (*names, 'numpy', 'gymnasium', 'mujoco', 'ale-py'))
  return {
    **{f'ours: {name}': version for name, version in ours.items()},
    **{f'peers: {name}': version for name, version in theirs.items()},
  }


def _installed(
  python: str, packages: Sequence[str], advice: str = 'scripts/peers/install.sh'
) -> dict[str, str]:
  code = (
    'import importlib.metadata as m, json, platform, sys; '
    'print(json.dumps({"Python": platform.python_version(), '
    '**{name: m.version(name) for name in sys.argv[1:]}}))'
  )
  answer = subprocess.run(
    [python, '-c', code, *packages], capture_output=True, text=True, check=False
  )
  if answer.returncode:
    reason = (answer.stderr.strip().splitlines() or ['no reason given'])[-1]
    raise types.UserError(f'{python} lacks a package: {reason}: run {advice}')
  found: dict[str, str] = json.loads(answer.stdout)
  return found


def describe(record: Mapping[str, Any]) -> str:
  """Returns the record as text with a Markdown table."""

  def row(*cells: str) -> str:
    return f'| {" | ".join(cells)} |'

  lines = [
    '{work}, {date}: {num_environments} environments each; {equal}'.format(**record),
    f'counted: {record["rule"]}',
    'threads of the better trial: ' + ', '.join(f'{k} {v}' for k, v in record['threads'].items()),
    'versions: ' + ', '.join(f'{k} {v}' for k, v in record['versions'].items()),
    '',
    row('contender', 'steps/s', 'per CPU-second', *(f'{mine} / this' for mine in record['ratios'])),
    row(*('---' for _ in range(3 + len(record['ratios'])))),
  ]
  for name, rate in record['steps_per_cpu_s'].items():
    cells = (_median_and_all(ratios.get(name)) for ratios in record['ratios'].values())
    lines.append(row(name, f'{record["steps_per_s"][name]:,.0f}', f'{rate:,.0f}', *cells))
  return '\n'.join(lines)


def _median_and_all(ratios: Sequence[float] | None) -> str:
  if not ratios:
    return ''
  return f'{statistics.median(ratios):.2f} ({" ".join(f"{ratio:.2f}" for ratio in ratios)})'


def _tell(line: str) -> None:
  print(line, file=sys.stderr, flush=True)


if __name__ == '__main__':
  sys.exit(main())
