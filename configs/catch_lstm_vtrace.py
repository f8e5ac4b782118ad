"""Catch with V-trace and an LSTM: exercises the recurrent code on a task that does not need it."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.configs import catch_vtrace


def experiment() -> config_lib.ExperimentConfig:
  """Values of `catch_vtrace` with a constant learning rate; the core is that of `bench_catch_lstm`.

  Ends with a mean return of at least 0.95 over its last 100 training episodes (seeds 1, 2, 3).
  """
  catch = catch_vtrace.experiment()
  assert isinstance(catch.agent, on_policy_config.OnPolicyConfig)
  return dataclasses.replace(
    catch,
    name='catch_lstm_vtrace',
    total_steps=500_000,  # agent steps
    network=dataclasses.replace(
      catch.network, core='lstm', core_size=128, previous_action_input=True
    ),
    agent=dataclasses.replace(
      catch.agent, optimizer=config_lib.OptimizerConfig(learning_rate=3e-3)
    ),
  )
