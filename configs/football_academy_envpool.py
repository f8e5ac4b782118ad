"""Football's empty goal with V-trace, on envpool's build of the game: ten minutes on two cores.

Needs the extra `envpool` and, if the learner runs under Python 3.10, an interpreter for its actors.
"""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Our own values. The reward is 1 for a goal, -1 for one of the opponents, and otherwise 0."""
  return config_lib.ExperimentConfig(
    name='football_academy_envpool',
    num_actors=2,
    environments_per_actor=8,
    total_steps=250_000,
    environment=config_lib.EnvironmentConfig(id='envpool:gfootball/academy_empty_goal_close-v1'),
    network=config_lib.NetworkConfig(
      torso='nature_cnn', torso_output_size=256, initializer='orthogonal', policy_head_gain=0.01
    ),
    agent=presets.vtrace(
      unroll_length=16,
      batch_size=8,
      discount=0.99,
      lambda_=0.95,
      value_cost=0.5,
      entropy=on_policy_config.PenaltyConfig(weight=0.01),
      optimizer=config_lib.OptimizerConfig(
        learning_rate=5e-4, schedule='linear', epsilon=1e-8, max_gradient_norm=0.5
      ),
    ),
    replay=config_lib.ReplayConfig(queue_size=16),
    learner=config_lib.LearnerConfig(tensorflow_threads=2, log_period_s=5.0),
  )
