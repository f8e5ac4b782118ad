"""How a peer's process tells `compare.py` what it has trained."""

from __future__ import annotations

import json
import sys


def configure_torch(num_threads: int) -> None:
  """Threads of PyTorch within an op; between ops it has one."""
  import torch  # not every peer uses it

  torch.set_num_threads(num_threads)
  torch.set_num_interop_threads(1)


def report(trained_steps: int) -> None:
  """After an update: agent steps trained since the start of the process."""
  sys.stdout.write(json.dumps({'trained_steps': int(trained_steps)}) + '\n')
  sys.stdout.flush()
