"""Catch with V-trace and an LSTM: exercises the recurrent code on a task that does not need it."""

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets


def experiment() -> config_lib.ExperimentConfig:
  """Our own values, as in `catch_vtrace`; the size of the core is that of `bench_catch_lstm`.

  Ends with a mean return of at least 0.95 over its last 100 training episodes (seeds 1, 2, 3).
  """
  return config_lib.ExperimentConfig(
    name='catch_lstm_vtrace',
    num_actors=2,
    environments_per_actor=32,
    total_steps=500_000,  # agent steps
    environment=config_lib.EnvironmentConfig(id='catch'),
    network=config_lib.NetworkConfig(
      torso='mlp', mlp_sizes=(64, 64), core='lstm', core_size=128, previous_action_input=True
    ),
    agent=presets.vtrace(
      unroll_length=10,  # agent steps: one episode of 10 rows
      batch_size=16,
      entropy=on_policy_config.PenaltyConfig(weight=0.01),
      optimizer=config_lib.OptimizerConfig(learning_rate=3e-3),
    ),
    replay=config_lib.ReplayConfig(queue_size=32, unrolls_per_item=8),
  )
