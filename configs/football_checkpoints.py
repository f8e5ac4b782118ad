"""Football, a whole game against the hard opponents, with the checkpoint reward, 500e6 steps."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.configs import football_scoring


def experiment() -> config_lib.ExperimentConfig:
  """Values of the original's tuned script for this reward; the score is reported separately."""
  scoring = football_scoring.experiment()
  assert isinstance(scoring.agent, on_policy_config.OnPolicyConfig)
  agent = dataclasses.replace(
    scoring.agent,
    lambda_=1.0,
    entropy=on_policy_config.PenaltyConfig(weight=0.0007330944745454107),
    optimizer=dataclasses.replace(scoring.agent.optimizer, learning_rate=0.00012542101122072784),
  )
  return dataclasses.replace(
    scoring,
    name='football_checkpoints',
    environment=dataclasses.replace(
      scoring.environment, settings={'rewards': 'scoring,checkpoints'}
    ),
    agent=agent,
  )
