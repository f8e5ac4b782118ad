"""Goals in mazes that are always new: DeepMind Lab, and the settings of its four tuned levels."""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """The values of SEED RL's gcp script for the level, except for the action repeat: see `tuned`."""
  return tuned(
    'explore_goal_locations_small',
    lambda_=0.95,
    entropy_weight=0.0009705614902108625,
    learning_rate=0.00022587896096859582,
    epsilon=3.125e-9,
  )


def tuned(
  level: str, *, lambda_: float, entropy_weight: float, learning_rate: float, epsilon: float
) -> config_lib.ExperimentConfig:
  """Returns the values that SEED RL's scripts for four levels of DMLab-30 share; 1e9 frames.

  One value differs. The scripts leave the action repeat at its default, which was 4 until August
  2020 and has been 1 since; users report that runs with 1 collapse. It is 4 here. The total of 1e9
  frames is therefore 250e6 agent steps, while the scripts, as they stand, take 1e9. An episode that
  reaches its time limit is truncated here and terminated in the original.

  The scripts use Keras's Adam, which adds epsilon before the bias correction, while Sonnet's adds
  it afterwards, so the first updates differ.
  """
  return config_lib.ExperimentConfig(
    name=f'dmlab_{level}',
    num_actors=50,
    environments_per_actor=8,
    total_steps=250_000_000,  # agent steps of 4 frames
    environment=config_lib.EnvironmentConfig(
      id=f'dmlab:{level}', settings={'num_action_repeats': 4}
    ),
    network=config_lib.NetworkConfig(
      torso='impala_resnet',
      torso_output_size=256,
      core='lstm',
      core_size=256,
      previous_action_input=True,
      previous_reward_input=True,
      previous_reward_bound=1.0,
    ),
    agent=presets.vtrace(
      unroll_length=100,
      batch_size=32,
      discount=0.99,
      lambda_=lambda_,
      value_cost=0.5,
      entropy=on_policy_config.PenaltyConfig(weight=entropy_weight, speed=10.0),
      max_abs_reward=1.0,
      optimizer=config_lib.OptimizerConfig(
        learning_rate=learning_rate,
        schedule='linear',
        adam_beta1=0.0,
        epsilon=epsilon,
        max_gradient_norm=0.0,
      ),
    ),
    replay=config_lib.ReplayConfig(queue_size=64),  # two batches; the original's holds one unroll
    inference=config_lib.InferenceConfig(batch_size=64),
    learner=config_lib.LearnerConfig(tensorflow_threads=0, log_period_s=5.0),
    checkpoint=config_lib.CheckpointConfig(period_s=1800.0),
  )
