"""Settings and levels of Football, which need no engine; football_engine_test.py plays games."""

import re

import pytest

from seed_acme import types
from seed_acme.envs import football
from seed_acme.envs import registry
from tests.envs import configs


@pytest.mark.parametrize(
  ('settings', 'message'),
  [
    ({'rewards': 'goals'}, "rewards ('goals') must be one of 'scoring', 'scoring,checkpoints'"),
    ({'observation': 'pixels'}, "observation ('pixels') must be one of"),
    ({'picture': 'film'}, "picture ('film') must be one of 'pitch', 'engine'"),
    ({'stack': 5}, 'football: stack (5) must be in [1, 4]'),
    ({'map_width': 0}, 'map_width (0) must be in [8, 512]'),
    ({'map_height': 72.0}, 'map_height (72.0) is of type float; expected int'),
    ({'packed': 1}, 'packed (1) is of type int; expected bool'),
  ],
)
def test_settings_that_cannot_be_are_named(settings, message):
  with pytest.raises(types.UserError, match=re.escape(message)):
    football.Settings(**settings)


def test_without_the_engine_the_way_to_it_is_named():
  if football.known_levels():
    pytest.skip('gfootball is installed here')
  with pytest.raises(types.UserError, match=r'needs gfootball: make football, then add --config'):
    registry.check(configs.of('football:academy_empty_goal_close'))
