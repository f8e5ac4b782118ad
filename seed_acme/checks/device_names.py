"""Parses the devices that a configuration names: `''`, a count, or names such as `gpu:0,gpu:1`."""

from __future__ import annotations

import re
from typing import Union

from seed_acme import types

_NAME = re.compile(r'(cpu|gpu):([0-9]+)')
# The number of GPUs that a container was given; its learner refuses to train with fewer.
GPUS_VARIABLE = 'SEED_ACME_GPUS'
_MAX_CPUS = 64  # logical devices; nobody needs more

# A number of devices, or their names; None = chosen by what is available.
Choice = Union[int, tuple[str, ...], None]


def parse(text: str, field: str) -> Choice:
  """Parses a field's text. Raises `types.UserError`, which names the field."""
  text = text.strip().lower()
  if not text:
    return None
  if re.fullmatch(r'-?[0-9]+', text):
    if int(text) < 1:
      raise types.UserError(f"{field} ({text}) must be >= 1, or '' for all that suit")
    return int(text)
  names = tuple(name.strip() for name in text.split(','))
  for name in names:
    if not _NAME.fullmatch(name) or (name.startswith('cpu') and index(name) >= _MAX_CPUS):
      raise types.UserError(
        f'{field} ({text}): {name!r} is no device; give a count, or names such as gpu:0,gpu:1, '
        'or cpu:0,cpu:1 to divide the CPU into logical devices'
      )
  names = tuple(f'{name.partition(":")[0]}:{index(name)}' for name in names)  # gpu:00 is gpu:0
  if len(set(names)) < len(names):
    raise types.UserError(f'{field} ({text}) names a device twice: leave one out')
  return names


def index(name: str) -> int:
  """Returns the device's index among the devices of its kind."""
  return int(name.partition(':')[2])


def number_of(choice: Choice) -> int:
  """Returns the least number of devices that the choice asks for."""
  return 1 if choice is None else choice if isinstance(choice, int) else len(choice)
