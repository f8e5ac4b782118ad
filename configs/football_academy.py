"""Football's empty goal with V-trace, on the real engine: ten minutes on two cores.

The engine has to be built once: `make football`.
"""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.configs import football_academy_envpool


def experiment() -> config_lib.ExperimentConfig:
  """The values of `football_academy_envpool`; the map has the same four planes, unstacked."""
  envpool = football_academy_envpool.experiment()
  return dataclasses.replace(
    envpool,
    name='football_academy',
    environment=config_lib.EnvironmentConfig(
      id='football:academy_empty_goal_close', settings={'stack': 1, 'packed': False}
    ),
    actor=config_lib.ActorConfig(python='.venv-football/bin/python'),
  )
