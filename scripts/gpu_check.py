"""The steps of gpu_check.sh: `python scripts/gpu_check.py RESULT.json`.

It exits with 0 if all succeed, with 1 if one fails, and with 3 if TensorFlow sees no GPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

_OURS: tuple[str, ...] = (sys.executable, '-m', 'seed_acme.programs.cli')
_TAIL = 6000  # characters kept of a step's output
_NO_GPU_EXIT = 3
_BUDGET_S = 570.0  # for all steps, to fit into ten minutes of a borrowed GPU
_LISTS_GPUS = (
  'import json, tensorflow as tf; '
  "print(json.dumps([tf.config.experimental.get_device_details(gpu)['device_name'] "
  "for gpu in tf.config.list_physical_devices('GPU')]))"
)


class Step(NamedTuple):
  """One step. is_json: the last line of its output is its result. environment: added to ours."""

  name: str
  command: Sequence[str]
  limit_s: float
  is_json: bool = False
  environment: Mapping[str, str] = {}


def steps(folder: str, cores: int) -> list[Step]:
  """Returns the steps that run, in this order, after a GPU was found. folder: for their files.

  Throughput is measured with an actor for each core but two, first with the GPU and then without it
  on the same cores; then as configured, with two actors, as in docs/performance.md for CPUs.
  """
  learn = ('train', '--config=catch_vtrace', f'--run_dir={folder}/catch')
  tests = ('-m', 'pytest', '-q', '-n0', '-m', 'gpu', 'tests/gpu_test.py')
  wide = (f'--config.num_actors={max(2, cores - 2)}', '--config.learner.tensorflow_threads=0')
  without_gpu = {'CUDA_VISIBLE_DEVICES': '-1'}

  def bench(
    config: str, suffix: str, options: Sequence[str], environment: Mapping[str, str]
  ) -> Step:
    measure = ('bench', '--seconds=12', '--warmup_seconds=5', '--no_bounds', '--json')
    command = (*_OURS, *measure, f'--config={config}', *options)
    return Step(config + suffix, command, 100, is_json=True, environment=environment)

  images = ('bench_pong_cnn', 'bench_pong_resnet_lstm')
  return [
    Step('doctor', (*_OURS, 'doctor', '--json'), 150, is_json=True),
    Step('tests', (sys.executable, *tests), 100),
    Step('catch', (*_OURS, *learn), 100),
    *(bench(name, '_wide', wide, {}) for name in images),
    *(bench(name, '_wide_without_gpu', wide, without_gpu) for name in images),
    *(bench(name, '', (), {}) for name in images),
  ]


def run(step: Step) -> dict[str, Any]:
  """Runs a step; returns its exit code (None = time-out), seconds, and output."""
  start_s = time.monotonic()
  with tempfile.TemporaryFile('w+', encoding='utf-8', errors='replace') as output:
    try:
      code: int | None = subprocess.run(
        step.command,
        stdout=output,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=step.limit_s,
        check=False,
        env={**os.environ, **step.environment},
      ).returncode
    except subprocess.TimeoutExpired:
      code = None
    output.seek(0)
    printed = output.read()
  record: dict[str, Any] = {
    'command': list(step.command),
    'environment': dict(step.environment),
    'exit_code': code,
    'seconds': round(time.monotonic() - start_s, 1),
    'printed': printed[-_TAIL:],
  }
  if step.is_json and code is not None:
    try:
      record['result'] = json.loads(printed.strip().splitlines()[-1])
    except (ValueError, IndexError):
      record['exit_code'] = code or 1
  return record


def summary(folder: str) -> dict[str, Any]:
  """Returns the summary of the Catch run, if it has finished."""
  path = pathlib.Path(folder) / 'catch' / 'summary.json'
  return json.loads(path.read_text(encoding='utf-8')) if path.exists() else {}


def main(out: str) -> int:
  start_s = time.monotonic()
  cores = len(os.sched_getaffinity(0))
  record: dict[str, Any] = {'python': sys.version, 'card': _card(), 'cores': cores, 'steps': {}}
  found = run(Step('gpus', (sys.executable, '-c', _LISTS_GPUS), 90, is_json=True))
  record['steps']['gpus'] = found
  _write(out, record)
  if not found.get('result'):
    print(f'TensorFlow sees no GPU; {out} has what it said')
    return _NO_GPU_EXIT
  with tempfile.TemporaryDirectory() as folder:
    for step in steps(folder, cores):
      print(f'{step.name} ...', flush=True)
      left_s = _BUDGET_S - (time.monotonic() - start_s)
      answer = record['steps'][step.name] = run(
        step._replace(limit_s=max(0.0, min(step.limit_s, left_s)))
      )
      if step.name == 'catch':
        answer['result'] = summary(folder)
      print(f'{step.name}: exit code {answer["exit_code"]}, {answer["seconds"]} s', flush=True)
      _write(out, record)
  return int(any(answer['exit_code'] != 0 for answer in record['steps'].values()))


def _card() -> str:
  """Returns the GPU as nvidia-smi describes it."""
  if not shutil.which('nvidia-smi'):
    return ''
  fields = '--query-gpu=name,driver_version,memory.total'
  done = subprocess.run(
    ('nvidia-smi', fields, '--format=csv,noheader'), capture_output=True, text=True, check=False
  )
  return done.stdout.strip()


def _write(out: str, record: dict[str, Any]) -> None:
  pathlib.Path(out).write_text(json.dumps(record, indent=2) + '\n', encoding='utf-8')


if __name__ == '__main__':
  sys.exit(main(sys.argv[1]))
