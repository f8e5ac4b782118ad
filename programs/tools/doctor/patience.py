"""Advice about a process that has not answered in time."""

from __future__ import annotations

import os


def fix(if_idle: str) -> str:
  """Returns a fix, which is only to try again if a busy machine explains the silence.

  if_idle: the fix if the machine had time to answer.
  """
  load, num_cpus = os.getloadavg()[0], len(os.sched_getaffinity(0))
  again = 'run `seed-acme doctor` again'
  if load > num_cpus:
    return f'the machine is busy (load {load:.1f} on {num_cpus} CPUs): {again} when it is idle'
  return f'{again}; if there is no answer then, either: {if_idle}'
