"""Atari with R2D2 at the scale of the paper, 40e9 frames; `atari_r2d2_small` fits a laptop."""

from seed_acme import config as config_lib
from seed_acme.agents.r2d2 import config as r2d2_config


def experiment() -> config_lib.ExperimentConfig:
  """Espeholt et al. 2019, appendix A.3; value by value in `tests/configs/paper_table.py`."""
  return config_lib.ExperimentConfig(
    name='atari_r2d2',
    num_actors=61,
    environments_per_actor=10,
    num_evaluation_environments=30,
    total_steps=10_000_000_000,  # agent steps of 4 frames
    environment=config_lib.EnvironmentConfig(id='atari:Pong'),
    network=config_lib.NetworkConfig(
      torso='nature_cnn',
      torso_output_size=512,
      frame_stack=4,
      core='lstm',
      core_size=512,
      head_sizes=(512,),
      previous_action_input=True,
      previous_reward_input=True,
      previous_reward_bound=0.0,  # not clipped
    ),
    agent=r2d2_config.R2D2Config(),
    inference=config_lib.InferenceConfig(batch_size=64),
    # With one thread, the convolutions of training and inference would run one after the other.
    # Unrolls arrive in bursts, from all environments at once: with a shorter period rates jump.
    learner=config_lib.LearnerConfig(tensorflow_threads=2, log_period_s=5.0),
    checkpoint=config_lib.CheckpointConfig(period_s=1800.0),
  )
