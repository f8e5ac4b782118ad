"""`package.module:factory` or `package.module.factory`: a user's own function."""

from __future__ import annotations

import re

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme.envs import action_scaling
from seed_acme.envs import factories
from seed_acme.envs import gym_vector_adapter
from seed_acme.envs import suite

_ID = re.compile(r'^[^\W\d]\w*(\.[^\W\d]\w*)*[.:][^\W\d]\w*$')


def _make(order: suite.Order) -> core.VectorEnvironment:
  name, settings = order.environment_id, order.settings
  factory = factories.find(name)
  make = factories.seeded(factory)
  if factories.makes_vectors(factory):
    made = make(order.seed, num_environments=order.num_environments, **settings)
    if gym_vector_adapter.is_vector(made):
      return gym_vector_adapter.GymVector(made, order.num_environments, order.seeds(), name)
    return factories.require_vector(name, made, order.num_environments)
  return order.one_by_one(lambda seed: factories.as_dm_env(name, make(seed, **settings), seed))


def _check(config: config_lib.EnvironmentConfig) -> None:
  factories.check(config, factories.find(config.id))
  action_scaling.split(config.id, config.settings)


SUITE = suite.Suite(
  id='package.module:factory',
  description='your own factory(seed, **settings); takes its settings too',
  settings=(),
  matches=lambda environment_id: _ID.match(environment_id) is not None,
  make=_make,
  check=_check,
  names=list,
  named_module=lambda environment_id: environment_id.replace(':', '.').rpartition('.')[0],
)
