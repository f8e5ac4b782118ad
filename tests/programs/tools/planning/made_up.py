"""Costs and scales in round numbers, of which each test changes some."""

import dataclasses
import math

from seed_acme.programs.tools.planning import costs
from seed_acme.programs.tools.planning import model

SETTING = costs.Setting(
  actors=4,
  environments_per_actor=8,
  groups_per_actor=2,
  frames_per_step=4,
  unroll_length=20,
  unrolls_per_update=32,
  inference_rows=16,
  inference_timeout_s=0.005,
  queued_unrolls=64,
  prefetched_updates=1,
  cores=2,
)


def flat(seconds):
  """Returns a cost in proportion to the size: `seconds` per unit."""
  return costs.Curve(((1, seconds),))


def make_costs(**changes):
  """Returns costs that are next to nothing except for `changes`."""
  tiny = flat(1e-9)
  free = costs.Costs(
    SETTING,
    tiny,
    tiny,
    tiny,
    tiny,
    tiny,
    unroll_bytes=1.0,
    shared_unroll_bytes=1.0,
    weights_bytes=1.0,
    gradient_bytes=1.0,
  )
  return dataclasses.replace(free, **changes)


def make_scale(**changes):
  return dataclasses.replace(
    model.Scale(
      learners=1,
      actors=4,
      environments_per_actor=8,
      groups_per_actor=2,
      unrolls_per_update=32,
      inference_rows=16,
      network_bytes_per_s=math.inf,
    ),
    **changes,
  )


def make_record(groups=1, batch=16, message_s=0.0, call_s=0.0, row_s=0.0, **changes):
  """Returns a bench record: 1,000 rows of 64 environments in groups, with exactly known costs."""
  rows, updates = 1000, 5
  call = 0.001 + (min(batch, 16) - 1) / 15 * 0.003 + max(0, batch - 16) * 0.0002
  messages = rows * groups / 64
  learner = rows / batch * (call + call_s) + updates * 0.1 + messages * message_s + rows * row_s
  return {
    'config': 'made_up',
    'agent_steps': 900,
    'steps_per_row': 0.9,
    'updates': updates,
    'window_s': 2.0,
    'replay_ratio': 1.0,
    'cpu_s': {'learner': learner, 'actor': rows * 1e-3 + messages * 2e-3},
    'phase_shares': {'inference': {'wait': 1.0}, 'learner': {'sample': 1.0}},
    'inference_batch_size': {'mean': batch},
    'setting': {**dataclasses.asdict(SETTING), 'environments_per_actor': 64}
    | {'groups_per_actor': groups},
    'calls': {
      'environment_call_s': [[1, 1e-3], [64, 64e-3]],
      'inference_call_s': [[1, 0.001], [16, 0.004]],
      'update_s': [[32, 0.1]],
      'exchange_bytes': [[1, 100], [64, 6400]],
      'unroll_bytes': 2000,
      'shared_unroll_bytes': 300,
      'weights_bytes': 5000,
      'gradient_bytes': 6000,
    },
    **changes,
  }
