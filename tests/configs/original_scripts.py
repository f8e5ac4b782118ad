"""Settings of SEED RL's eight `gcp/train_*.sh` (commit `0e1e0ac`), and their equivalents here.

The numbers are literals on purpose, as in paper_table.py.
"""

from typing import NamedTuple


class Script(NamedTuple):
  """One script. name: `gcp/train_NAME.sh`. workers, environments: machines with actors, and
  environments of each. frames: in all; the flag's default if the script does not set it. metric:
  named in its tuning block. config: the equivalent here. our_metric: its name in our logs. learner:
  machine here."""

  name: str
  workers: int
  environments: int
  inference_batch_size: int
  frames: int
  metric: str
  config: str
  our_metric: str
  learner: str


_P100 = 'n1-standard-8+1xP100'  # AI Platform's standard_p100
_OWN_METRIC, _METRIC = 'episode/return', 'episode_return'
# AI Platform's `standard` and the n1-standard-4 of Atari.
ACTORS = 'n1-standard-4'
SCRIPTS = (
  Script(
    'atari',
    32,
    20,
    32,
    50_000_000_000,
    'eval/episode_return',
    'atari_r2d2_gcp',
    'evaluation/return',
    'n1-highmem-32+2xP100',
  ),
  *(
    Script(f'dmlab_{level}', 50, 8, 64, 10**9, _METRIC, f'dmlab_{level}', _OWN_METRIC, _P100)
    for level in (
      'explore_goal_locations_small',
      'lasertag_three_opponents_small',
      'rooms_keys_doors_puzzle',
      'rooms_watermaze',
    )
  ),
  # With shaped rewards `episode_return` was the shaped one.
  Script(
    'football_checkpoints',
    25,
    8,
    64,
    500_000_000,
    _METRIC,
    'football_checkpoints',
    'episode/training_return',
    _P100,
  ),
  Script(
    'football_scoring', 25, 8, 64, 500_000_000, _METRIC, 'football_scoring', _OWN_METRIC, _P100
  ),
  # Its learner never writes the metric (D21). A batch is half of the environments, by default.
  Script('mujoco', 4, 1, 2, 2_000_000, _METRIC, 'mujoco_ppo_halfcheetah_gcp', _OWN_METRIC, _P100),
)
