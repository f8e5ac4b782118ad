"""Checks of this machine's software and hardware, each with a fix for what is wrong.

The heavy libraries are imported in processes of their own, so that one that hangs or crashes
becomes a finding instead of ending the examination.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
import importlib.util
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from typing import Any, Literal, NamedTuple

from seed_acme.checks import actor_packages
from seed_acme.checks import distribution
from seed_acme.checks import extras
from seed_acme.envs.interpreters import interpreter
from seed_acme.programs.system import graphics
from seed_acme.programs.system import versions
from seed_acme.programs.tools.doctor import children
from seed_acme.programs.tools.doctor import local_call
from seed_acme.programs.tools.doctor import patience

State = Literal['ok', 'warning', 'wrong']
_GIB = 2**30
_IMPORT_TIMEOUT_S = 120.0  # TensorFlow takes 3 to 6 s, ten times that on a cold disk
# The smallest program that exercises each library; the last line that it prints is shown.
IMPORTS = {
  'launchpad': 'import launchpad as lp; lp.Program("doctor"); print("imports")',
  'courier': 'import courier; courier.Server(); print("imports")',
  'reverb': local_call.CODE,
  'sonnet': 'import sonnet as snt; snt.Linear(2); print("imports")',
  'tensorflow': graphics.CODE,
}
# For a host that runs actors only.
IMPORTS_OF_ACTORS = {
  'actor_worker': 'from seed_acme.programs.nodes import actor_worker; print("imports")'
}
# module: (distribution, extra of this package)
_OPTIONAL = {
  'gym': ('gym', 'gym'),
  'gymnasium': ('gymnasium', 'gymnasium'),
  'ale_py': ('ale-py', 'atari'),
  'cv2': ('opencv-python', 'atari'),
  'mujoco': ('mujoco', 'mujoco'),
  'Box2D': ('box2d', 'box2d'),
  'dm_control': ('dm_control', 'dm-control'),
  'imageio': ('imageio', 'video'),
  'imageio_ffmpeg': ('imageio-ffmpeg', 'video'),
  'pygame': ('pygame', 'video'),
  'pandas': ('pandas', 'metrics'),
  'wandb': ('wandb', 'wandb'),
  'mlflow': ('mlflow-skinny', 'mlflow'),
  'optuna': ('optuna', 'search'),
}


class Check(NamedTuple):
  """The result of one check. fix: how to repair it; empty if all is well."""

  name: str
  state: State
  detail: str
  fix: str = ''


def run() -> list[Check]:
  """Examines this machine; takes about as long as importing everything once (10 to 20 s).

  In an installation for actors only, it checks what actors need.
  """
  if distribution.is_for_actors():
    return _run((_platform, _python, _versions, _memory, _extras_of_actors), IMPORTS_OF_ACTORS)
  quick = (
    _platform,
    _python,
    _versions,
    _processor,
    _onednn,
    _memory,
    _shared_memory,
    _ports,
    _optional,
  )
  return _run(quick, IMPORTS)


def _run(quick: Sequence[Callable[[], list[Check]]], imports: Mapping[str, str]) -> list[Check]:
  with children.pool(2) as pool:
    imported = [pool.submit(check_import, name, code) for name, code in imports.items()]
    checks = [check for examine in quick for check in examine()]
    return checks + [check for future in imported for check in future.result()]


def is_wrong(checks: Sequence[Check]) -> bool:
  """Whether something has to be repaired before anything can run."""
  return any(check.state == 'wrong' for check in checks)


def to_json(checks: Sequence[Check]) -> dict[str, Any]:
  """Returns the record for `--json`."""
  return {'wrong': is_wrong(checks), 'checks': [check._asdict() for check in checks]}


def to_text(checks: Sequence[Check]) -> str:
  """Returns aligned lines, with each fix below its finding and the totals at the end."""
  width = max((len(check.name) for check in checks), default=0)
  lines = []
  for check in checks:
    lines.append(f'{check.state:7}  {check.name:{width}}  {check.detail}'.rstrip())
    if check.fix:
      lines.append(f'{"":7}  {"":{width}}  -> {check.fix}')
  counts = {
    state: sum(check.state == state for check in checks) for state in ('ok', 'warning', 'wrong')
  }
  lines.append(', '.join(f'{count} {state}' for state, count in counts.items()))
  return '\n'.join(lines)


def check_import(name: str, code: str, timeout_s: float = _IMPORT_TIMEOUT_S) -> list[Check]:
  """Runs `code` in a fresh interpreter; for TensorFlow a second check lists the devices."""
  environment = {**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '3'}
  try:
    process = subprocess.run(
      [sys.executable, '-c', code],
      capture_output=True,
      text=True,
      errors='replace',
      timeout=timeout_s,
      env=environment,
      stdin=subprocess.DEVNULL,
      check=False,
    )
  except subprocess.TimeoutExpired:
    detail = f'no answer within {timeout_s:g} s'
    return [Check(f'import {name}', 'wrong', detail, patience.fix(extras.reinstall()))]
  if name == 'reverb' and process.returncode == local_call.NO_ANSWER_EXIT:
    return [Check('import reverb', 'wrong', *local_call.why_unreachable())]
  if process.returncode:
    last = (process.stderr.strip().splitlines() or ['no message'])[-1]
    died = f'killed by signal {-process.returncode}' if process.returncode < 0 else last
    return [Check(f'import {name}', 'wrong', died[:200], extras.reinstall())]
  answer = (process.stdout.strip().splitlines() or [''])[-1]
  if name != 'tensorflow':
    return [Check(f'import {name}', 'ok', answer)]
  return [Check('import tensorflow', 'ok', 'imports and multiplies'), _devices(*json.loads(answer))]


def _devices(gpus: Sequence[str], is_built_with_cuda: bool, error: str) -> Check:
  if error:
    fix = 'look at the driver and at `nvidia-smi`; CUDA_VISIBLE_DEVICES=-1 trains on the CPU'
    return Check('devices', 'wrong', error, fix)
  if gpus:
    seen = '; '.join(graphics.cards()) or ', '.join(gpus)
    return Check('devices', 'ok', f'{seen}; {graphics.cache()}')
  if not graphics.is_there():
    return Check('devices', 'ok', 'CPU only')
  unseen = graphics.why_unseen(is_built_with_cuda)
  detail = f'TensorFlow does not see the GPU that is here: {unseen.reason}'
  return Check('devices', 'warning', detail, unseen.fix)


def _platform() -> list[Check]:
  detail = f'{platform.system()} {platform.machine()}, kernel {platform.release()}'
  if platform.system() == 'Linux' and platform.machine() == 'x86_64':
    return [Check('platform', 'ok', detail)]
  if platform.system() == 'Linux' and distribution.is_for_actors():
    return [Check('platform', 'warning', detail, 'actors are tested on x86-64: expect surprises')]
  return [
    Check(
      'platform',
      'wrong',
      detail,
      'Reverb and Launchpad exist for Linux on x86-64 only: use such a machine',
    )
  ]


def _python() -> list[Check]:
  detail = f'{platform.python_version()} ({sys.executable})'
  if distribution.is_for_actors():
    return [_python_of_actors(detail)]
  if extras.serves_learners():
    return [Check('python', 'ok', detail)]
  return [Check('python', 'wrong', detail, extras.reinstall())]


def _python_of_actors(detail: str) -> Check:
  if interpreter.serves_actors(sys.version_info[:2]):
    return Check('python', 'ok', detail)
  return Check('python', 'wrong', detail, f'actors run under Python {interpreter.SERVED}')


def _versions() -> list[Check]:
  return [
    Check(found.name, 'wrong' if found.fix else 'ok', found.detail, found.fix)
    for found in versions.declared()
  ]


def _processor() -> list[Check]:
  try:
    with open('/proc/cpuinfo', encoding='utf-8') as handle:
      flags = next((line for line in handle if line.startswith('flags')), '').split()
  except OSError:
    flags = []
  found = [name for name in ('avx', 'avx2', 'fma', 'avx512f', 'avx512_bf16') if name in flags]
  detail = f'{os.cpu_count()} CPUs, {len(os.sched_getaffinity(0))} usable; {" ".join(found)}'
  if 'avx' not in flags:
    return [Check('processor', 'wrong', detail, 'TensorFlow needs AVX: use a newer processor')]
  if 'avx2' not in flags:
    return [Check('processor', 'warning', detail, 'without AVX2 training is slow')]
  return [Check('processor', 'ok', detail)]


def _onednn() -> list[Check]:
  if os.environ.get('TF_ENABLE_ONEDNN_OPTS') == '0':
    return [
      Check(
        'oneDNN',
        'warning',
        'switched off by TF_ENABLE_ONEDNN_OPTS=0',
        'unset it: convolutions train about twice as fast with oneDNN',
      )
    ]
  return [Check('oneDNN', 'ok', 'not switched off; the programs switch it on')]


def _memory() -> list[Check]:
  with open('/proc/meminfo', encoding='utf-8') as handle:
    fields = dict(line.split(':', 1) for line in handle)
  total, free = (int(fields[name].split()[0]) * 1024 for name in ('MemTotal', 'MemAvailable'))
  return [_enough('memory', free, total, 2 * _GIB, 'close programs, or use fewer actors')]


def _shared_memory() -> list[Check]:
  try:
    usage = shutil.disk_usage('/dev/shm')
  except OSError as error:
    return [Check('/dev/shm', 'warning', str(error), 'mount a tmpfs at /dev/shm')]
  return [
    _enough(
      '/dev/shm', usage.free, usage.total, 64 * 2**20, 'in a container, start it with --shm-size=1g'
    )
  ]


def _enough(name: str, free: int, total: int, needed: int, fix: str) -> Check:
  detail = f'{free / _GIB:.1f} of {total / _GIB:.1f} GiB free'
  return Check(name, 'ok', detail) if free >= needed else Check(name, 'warning', detail, fix)


def _ports() -> list[Check]:
  try:
    with socket.create_server(('127.0.0.1', 0)) as server:
      with socket.create_connection(server.getsockname(), timeout=5.0):
        return [Check('ports', 'ok', 'a port of 127.0.0.1 can be bound and reached')]
  except OSError as error:
    return [
      Check(
        'ports',
        'wrong',
        f'127.0.0.1: {error}',
        'allow local TCP connections (firewall, sandbox, `ip link set lo up`)',
      )
    ]


def _optional() -> list[Check]:
  checks = []
  for module, (name, extra) in _OPTIONAL.items():
    if not importlib.util.find_spec(module):
      checks.append(_not_installed(name, extra))
      continue
    try:
      checks.append(Check(name, 'ok', metadata.version(name)))
    except metadata.PackageNotFoundError:  # such as cv2 of opencv-python-headless
      checks.append(Check(name, 'ok', f'the module {module} is there, of another distribution'))
  return checks


def _not_installed(name: str, extra: str) -> Check:
  return Check(name, 'warning', 'not installed (optional)', extras.install_command(extra))


def _extras_of_actors() -> list[Check]:
  """Returns a line for each suite that actors can have under this Python."""
  checks = []
  for extra, lines in actor_packages.EXTRAS.items():
    found = [versions.find(line) for line in lines if versions.applies(line)]
    if found and not any(version.fix for version in found):
      detail = ', '.join(f'{version.name} {version.detail}' for version in found)
      checks.append(Check(extra, 'ok', detail))
    elif found:
      checks.append(_not_installed(extra, extra))
  return checks
