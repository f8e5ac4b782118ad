"""Configurations of environments, as short as tests need them."""

from seed_acme import config as config_lib


def of(environment_id, **settings):
  return config_lib.EnvironmentConfig(environment_id, settings)
