"""Pushing a box onto its place in DeepMind Lab2D, with PPO: five minutes on two cores."""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Our own values, for one box in small rooms: random actions return -5.6 and solve a third.

  In the level's default rooms, 10 x 10 with four boxes, random actions return -11.6 and solve none
  in 640 episodes. Few steps of a batch end in a solution, so batches are large and gamma is low.
  """
  return config_lib.ExperimentConfig(
    name='dmlab2d_pushbox',
    num_actors=1,
    environments_per_actor=128,
    total_steps=1_500_000,
    environment=config_lib.EnvironmentConfig(
      id='dmlab2d:pushbox',
      settings={
        'numBoxes': 1,
        'roomSteps': 10,
        'gridShape.width': 6,
        'gridShape.height': 6,
        'spriteSize': 1,  # one pixel per cell, each kind of cell in its own colour
      },
    ),
    network=config_lib.NetworkConfig(
      torso='mlp', mlp_sizes=(256, 256), initializer='orthogonal', policy_head_gain=0.01
    ),
    agent=presets.ppo(
      unroll_length=32,
      batch_size=128,  # 4,096 transitions an update
      minibatch_of='unrolls',
      minibatch_size=32,
      num_epochs=4,
      discount=0.95,
      lambda_=0.95,
      ppo_epsilon=0.2,
      value_cost=0.5,
      reward_scale=0.1,
      entropy=on_policy_config.PenaltyConfig(weight=0.02),
      optimizer=config_lib.OptimizerConfig(
        learning_rate=1e-3, schedule='linear', epsilon=1e-8, max_gradient_norm=0.5
      ),
    ),
    replay=config_lib.ReplayConfig(queue_size=128),
    inference=config_lib.InferenceConfig(strictly_on_policy=True),
    learner=config_lib.LearnerConfig(tensorflow_threads=1, log_period_s=5.0),
  )
