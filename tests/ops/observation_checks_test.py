"""A field that normalises observations is refused if there is nothing to normalise."""

import dataclasses

from dm_env import specs
import numpy as np
import pytest

from seed_acme import types
from seed_acme.configs import registry

_IMAGE = specs.BoundedArray((8, 8, 1), np.uint8, 0, 255)
_CHOICE = specs.DiscreteArray(3)
_FLOAT = specs.Array((2,), np.float32)


def _on_policy(statistics):
  agent = registry.load('cartpole_ppo').agent
  observations = dataclasses.replace(agent.observations, statistics=statistics)
  return dataclasses.replace(agent, observations=observations)


def _sac(is_on):
  return dataclasses.replace(registry.load('pendulum_sac').agent, normalize_observations=is_on)


@pytest.mark.parametrize(
  'agent, text',
  [
    (_on_policy('ema'), 'agent.observations.statistics (ema) does nothing: '),
    (_on_policy('average'), 'agent.observations.statistics (average) does nothing: '),
    (_sac(True), 'agent.normalize_observations (True) does nothing: '),
  ],
)
def test_normalising_no_floats_is_told(agent, text):
  spec = types.EnvironmentSpec({'image': _IMAGE, 'word': _CHOICE}, _CHOICE)
  [notice] = agent.notices(spec)
  assert notice.startswith(text) and '(int32, uint8)' in notice
  with_float = {'image': _IMAGE, 'speed': _FLOAT}
  assert agent.notices(types.EnvironmentSpec(with_float, _CHOICE)) == ()


@pytest.mark.parametrize('agent', [_on_policy('none'), _sac(False)])
def test_what_is_off_is_not_told(agent):
  assert agent.notices(types.EnvironmentSpec(_IMAGE, _CHOICE)) == ()


def test_an_agent_without_statistics_has_nothing_to_tell():
  assert registry.load('catch_r2d2').agent.notices(types.EnvironmentSpec(_IMAGE, _CHOICE)) == ()
