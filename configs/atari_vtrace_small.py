"""Pong with V-trace on a laptop with two cores, in some two and a half hours of one of them."""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Our own values: eight passes with V-trace's loss over large fresh batches, with a KL penalty.

  Without that penalty several passes do not learn, and with a single pass the policy stays uniform
  for two million steps. With four passes it takes twice as many steps as with eight to leave a
  return of -20. With Glorot initialisation of the torso, the value improves later.
  """
  return config_lib.ExperimentConfig(
    name='atari_vtrace_small',
    num_actors=1,
    environments_per_actor=16,
    total_steps=2_000_000,  # agent steps of 4 frames
    environment=config_lib.EnvironmentConfig(id='atari:Pong', settings={'full_action_set': False}),
    network=config_lib.NetworkConfig(
      torso='nature_cnn',
      torso_output_size=512,
      torso_initializer='orthogonal',
      frame_stack=4,
      initializer='orthogonal',
      policy_head_gain=0.01,
    ),
    agent=presets.vtrace(
      unroll_length=32,  # agent steps
      batch_size=32,  # 1,024 transitions an update
      minibatch_of='unrolls',
      minibatch_size=8,
      num_epochs=8,
      normalize_advantages=True,
      kl_from_behaviour=on_policy_config.PenaltyConfig(weight=1.0),
      lambda_=0.95,
      value_cost=0.5,
      entropy=on_policy_config.PenaltyConfig(weight=0.01),
      max_abs_reward=1.0,
      optimizer=config_lib.OptimizerConfig(
        learning_rate=4e-4, schedule='linear', epsilon=1e-8, max_gradient_norm=0.5
      ),
    ),
    replay=config_lib.ReplayConfig(queue_size=32),
    inference=config_lib.InferenceConfig(strictly_on_policy=True),
    learner=config_lib.LearnerConfig(tensorflow_threads=2, log_period_s=5.0),
  )
