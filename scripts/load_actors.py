"""Connects many actors to one learner: `python scripts/load_actors.py --actors=1000`.

The learner is that of `seed-acme node learner`. Each actor has its own environments, stream and
identity, as in a run, but a few processes hold many of them and step them in turn. The script
prints how long they took to connect, how much memory they cost the learner, and how fast they are
answered. It exits with 1 if not all of them were answered.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import contextlib
import dataclasses
import json
import os
import pathlib
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any

import psutil

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import core
from seed_acme import types
from seed_acme.acting import activity as activity_lib
from seed_acme.acting import actor as actor_lib
from seed_acme.configs import registry
from seed_acme.files import local
from seed_acme.programs.building import sections
from seed_acme.programs.nodes import actor_worker
from seed_acme.storage import run_directory
from seed_acme.transport import patience
from seed_acme.transport import wire

_LOOK_S = 0.5
_CONNECT_S = 600.0  # time for all to connect and be answered
_MIB = 2**20


def main(argv: Sequence[str] | None = None) -> int:
  arguments = _parse(argv)
  if arguments.worker is not None:
    _act(arguments)
    return 0
  try:
    config_validation.validate(make_config(arguments))
    record = measure(arguments)
  except types.UserError as error:
    print(f'error: {error}', file=sys.stderr)
    return 1
  print(json.dumps(record) if arguments.json else describe(record))
  return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
  parser.add_argument('--actors', type=int, default=1000)
  parser.add_argument('--environments', type=int, default=8, help='of each actor')
  parser.add_argument('--config', default='catch_vtrace')
  parser.add_argument('--processes', type=int, default=4, help='that hold the actors')
  parser.add_argument(
    '--seconds', type=float, default=30.0, help='measured, at least until an update'
  )
  parser.add_argument('--json', action='store_true')
  parser.add_argument('--worker', type=int, default=None, help=argparse.SUPPRESS)
  parser.add_argument('--cluster', default='', help=argparse.SUPPRESS)
  return parser.parse_args(argv)


def make_config(arguments: argparse.Namespace) -> config_lib.ExperimentConfig:
  """Returns the configuration that the learner gets from its command line and cluster file."""
  return dataclasses.replace(
    registry.load(arguments.config),
    num_actors=arguments.actors,
    environments_per_actor=arguments.environments,
    total_steps=10**12,
    transport=config_lib.TransportConfig(kind='grpc'),
  )


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
  """Measures and returns a JSON record. Raises `types.UserError` if actors are not answered."""
  with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as cleanup:
    folder = pathlib.Path(name)
    cluster = folder / 'cluster.json'
    with socket.socket() as probe:
      probe.bind(('127.0.0.1', 0))
      address = f'127.0.0.1:{probe.getsockname()[1]}'
    cluster.touch(0o600)
    text = {'learner': address, 'actors': arguments.actors, 'token': secrets.token_hex(16)}
    cluster.write_text(json.dumps(text), encoding='utf-8')
    run = run_directory.RunDirectory(folder / 'run')
    command = (
      *(sys.executable, '-m', 'seed_acme.programs.cli', 'node', 'learner'),
      *(f'--cluster={cluster}', f'--config={arguments.config}', f'--run_dir={run.path}'),
      f'--config.environments_per_actor={arguments.environments}',
      '--config.total_steps=1000000000000',
    )
    log = cleanup.enter_context(open(folder / 'learner.log', 'w', encoding='utf-8'))
    learner = _started(command, log, cleanup)
    _wait(lambda: run.addresses.exists(), learner, 'the learner')
    before_mib = _resident_mib(learner)
    began_s = time.monotonic()
    script = (sys.executable, os.path.abspath(__file__), f'--cluster={cluster}')
    same = (f'--{name}={getattr(arguments, name)}' for name in ('actors', 'environments', 'config'))
    worker = (*script, *same, f'--processes={arguments.processes}')
    workers = [
      _started((*worker, f'--worker={index}'), log, cleanup) for index in range(arguments.processes)
    ]
    _wait(lambda: all(_rows(run)), learner, 'all actors', workers)
    all_there_s = time.monotonic() - began_s
    first, start_s = local.read_json(run.status), time.monotonic()
    time.sleep(arguments.seconds)
    _wait(lambda: local.read_json(run.status)['updates'] > first['updates'], learner, 'an update')
    last, seconds = local.read_json(run.status), time.monotonic() - start_s
    return {
      'actors': arguments.actors,
      'environments': arguments.environments,
      'all_answered_s': all_there_s,
      'connected': sum(actor['is_connected'] for actor in last['actors']),
      'steps_per_s': (last['agent_steps'] - first['agent_steps']) / seconds,
      'updates': last['updates'] - first['updates'],
      'inference_latency_s': last['inference_latency_s'],
      'inference_batch_size': last['inference_batch_size'],
      'learner_mib_before': before_mib,
      'learner_mib': _resident_mib(learner),
      'learner_threads': max(p.num_threads() for p in _family(learner)),
    }


def describe(record: dict[str, Any]) -> str:
  """Returns the record as text."""
  number = record['actors']
  grown_mib = record['learner_mib'] - record['learner_mib_before']
  latency_s, rows = record['inference_latency_s'], record['inference_batch_size']
  return (
    f'{number} actors of {record["environments"]} environments: all answered '
    f'{record["all_answered_s"]:.1f} s after their start, {record["connected"]} connected\n'
    f'{record["steps_per_s"]:,.0f} steps/s, {record["updates"]} updates, batches of '
    f'{rows["mean"]:.0f} rows on average\n'
    f'answered {1e3 * latency_s["mean"]:.0f} ms after a request came, p95 '
    f'{1e3 * latency_s["p95"]:.0f} ms\n'
    f'learner: {record["learner_mib"]:.0f} MiB, {grown_mib / number:.2f} MiB more for each '
    f'actor, {record["learner_threads"]} threads'
  )


def _act(arguments: argparse.Namespace) -> None:
  """Steps every `processes`-th actor until this process is ended or the learner is gone."""
  actors_of_run = sections.split(make_config(arguments)).actors
  cluster = local.read_json(pathlib.Path(arguments.cluster))
  actors: list[actor_lib.Actor] = []
  with contextlib.suppress(core.ChannelClosed, KeyboardInterrupt):
    for index in range(arguments.worker, arguments.actors, arguments.processes):
      actor = actor_worker.make_remote_actor(
        actors_of_run[index],
        wire.Start(),
        cluster['learner'],
        cluster['token'],
        patience.on_other_hosts(_CONNECT_S),
        activity_lib.Activity(),
      )
      actors.append(actor)
    while True:
      for actor in actors:
        actor.step()


def _started(
  command: Sequence[str], log: Any, cleanup: contextlib.ExitStack
) -> subprocess.Popen[bytes]:
  process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
  cleanup.callback(_end, process)
  return process


def _end(process: subprocess.Popen[bytes]) -> None:
  family = _family(process)
  process.terminate()
  try:
    process.wait(60)
  except subprocess.TimeoutExpired:
    for one in family:
      with contextlib.suppress(psutil.NoSuchProcess):
        one.kill()


def _family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
  if process.poll() is not None:
    return []
  parent = psutil.Process(process.pid)
  return [parent, *parent.children(recursive=True)]


def _resident_mib(process: subprocess.Popen[bytes]) -> float:
  return max(p.memory_info().rss for p in _family(process)) / _MIB


def _rows(run: run_directory.RunDirectory) -> list[int]:
  """Returns the answered rows of each actor; [0] before there is a status."""
  if not run.status.exists():
    return [0]
  return [actor['rows'] for actor in local.read_json(run.status).get('actors', [])] or [0]


def _wait(
  is_so: Any,
  learner: subprocess.Popen[bytes],
  what: str,
  workers: Sequence[subprocess.Popen[bytes]] = (),
) -> None:
  deadline_s = time.monotonic() + _CONNECT_S
  while not is_so():
    if any(process.poll() is not None for process in (learner, *workers)):
      raise types.UserError(f'a process has ended before {what} came: run it by hand to see why')
    if time.monotonic() > deadline_s:
      raise types.UserError(f'{what} did not come within {_CONNECT_S:.0f} s')
    time.sleep(_LOOK_S)


if __name__ == '__main__':
  sys.exit(main())
