"""Atari with R2D2 as SEED RL's script for Google Cloud runs it: 32 actors of 20 games."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.configs import atari_r2d2


def experiment() -> config_lib.ExperimentConfig:
  """The values of `gcp/train_atari.sh`; those that it leaves out are as in `atari_r2d2`.

  Two differ from the script. It leaves the action repeat at its default of 1, with which the
  original's screen stands still; here it is 4. Of its 640 environments 30 evaluate; here 30 are
  added for evaluation, so that 640 train.
  """
  paper = atari_r2d2.experiment()
  return dataclasses.replace(
    paper,
    name='atari_r2d2_gcp',
    num_actors=32,
    environments_per_actor=20,
    total_steps=12_500_000_000,  # agent steps of 4 frames
    inference=dataclasses.replace(paper.inference, batch_size=32),
  )
