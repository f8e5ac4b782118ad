"""Atari with V-trace and the shallow network of IMPALA, 200e6 frames."""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Espeholt et al. 2018, appendix G; value by value in `tests/configs/paper_table.py`.

  The paper sums its loss over a batch of 32 x 20 = 640 steps and ours is a mean, so the two
  values that depend on the scale of the gradient are divided: epsilon by 640^2, the norm by 640.
  """
  return config_lib.ExperimentConfig(
    name='atari_vtrace',
    num_actors=4,
    environments_per_actor=32,
    total_steps=50_000_000,  # agent steps of 4 frames
    environment=config_lib.EnvironmentConfig(id='atari:Pong'),
    network=config_lib.NetworkConfig(torso='impala_shallow', torso_output_size=256, frame_stack=4),
    agent=presets.vtrace(
      unroll_length=20,  # agent steps
      batch_size=32,
      discount=0.99,
      value_cost=0.5,
      entropy=on_policy_config.PenaltyConfig(weight=0.01),
      max_abs_reward=1.0,
      optimizer=config_lib.OptimizerConfig(
        name='rmsprop',
        learning_rate=6e-4,
        schedule='linear',
        rmsprop_decay=0.99,
        rmsprop_momentum=0.0,
        epsilon=0.01 / 640**2,
        max_gradient_norm=40.0 / 640,
      ),
    ),
    replay=config_lib.ReplayConfig(queue_size=64),
    # With one thread, the convolutions of training and inference would run one after the other.
    # Unrolls arrive in bursts, from all environments at once: with a shorter period rates jump.
    learner=config_lib.LearnerConfig(tensorflow_threads=2, log_period_s=5.0),
    checkpoint=config_lib.CheckpointConfig(period_s=600.0),
  )
