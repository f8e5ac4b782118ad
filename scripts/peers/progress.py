"""The reports of a peer's process to `compare.py` on the steps that it has trained."""

from __future__ import annotations

import json
import sys


def configure_torch(num_threads: int) -> None:
  """Sets PyTorch's threads within an op; between ops it gets one."""
  import torch  # not every peer uses it

  torch.set_num_threads(num_threads)
  torch.set_num_interop_threads(1)


def report(trained_steps: int) -> None:
  """Reports, after an update, the agent steps trained since the start of the process."""
  sys.stdout.write(json.dumps({'trained_steps': int(trained_steps)}) + '\n')
  sys.stdout.flush()
