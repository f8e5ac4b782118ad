"""The run task of dm_control's cheetah, with SAC."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.agents.sac import config as sac_config
from seed_acme.configs import mujoco_sac_halfcheetah


def experiment() -> config_lib.ExperimentConfig:
  """The values of `mujoco_sac_halfcheetah`, whose body and actions this task shares.

  Rewards lie in [0, 1], about a tenth of HalfCheetah's, so the learnt weight of the entropy starts
  at a tenth, too.
  """
  config = mujoco_sac_halfcheetah.experiment()
  assert isinstance(config.agent, sac_config.SACConfig)
  return dataclasses.replace(
    config,
    name='dm_control_sac',
    environment=config_lib.EnvironmentConfig(id='dm_control:cheetah/run'),
    agent=dataclasses.replace(config.agent, entropy_weight=0.1),
  )
