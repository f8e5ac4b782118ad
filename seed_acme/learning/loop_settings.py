"""Settings of the training loop, taken from an experiment's configuration."""

from __future__ import annotations

from typing import NamedTuple

from seed_acme import config as config_lib


class LoopSettings(NamedTuple):
  """Settings of one run.

  total_steps: agent steps after which it ends. max_wall_s: seconds after which it ends; 0 = no
  limit. batch_size: unrolls in an update. min_unrolls: unrolls that must be in this host's
  replay memory before the first update. publish_period: updates between two publications of the
  weights. log_period_s: seconds between two rows of the log. initial_checkpoint: checkpoint whose
  weights to start from, '' = none. evaluates: whether there are evaluation environments. is_filmed:
  whether their episodes are filmed. common: values that must be equal on all learner hosts, by
  field.
  """

  total_steps: int
  max_wall_s: float
  batch_size: int
  min_unrolls: int
  publish_period: int
  log_period_s: float
  checkpoint: config_lib.CheckpointConfig
  initial_checkpoint: str
  evaluates: bool
  is_filmed: bool
  common: dict[str, str]
