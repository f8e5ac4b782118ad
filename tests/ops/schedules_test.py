"""Learning-rate schedules at their ends and in between."""

import pytest

from seed_acme import types
from seed_acme.ops import schedules


@pytest.mark.parametrize('steps, expected', [(0, 0.5), (25, 0.375), (100, 0.0), (250, 0.0)])
def test_linear_falls_to_0_and_stays(steps, expected):
  assert schedules.scheduled_value('linear', 0.5, steps, 100) == expected


@pytest.mark.parametrize('steps, expected', [(0, 0.5), (50, 0.3125), (100, 0.125), (250, 0.125)])
def test_linear_falls_to_a_share_and_stays(steps, expected):
  assert schedules.scheduled_value('linear', 0.5, steps, 100, final_share=0.25) == expected


@pytest.mark.parametrize('steps', [0, 50, 250])
def test_constant_stays(steps):
  assert schedules.scheduled_value('constant', 0.5, steps, 100) == 0.5


def test_wrong_values_are_named():
  with pytest.raises(types.UserError, match="schedule \\('cosine'\\)"):
    schedules.scheduled_value('cosine', 0.5, 0, 100)
  with pytest.raises(ValueError, match=r'total_steps \(0\)'):
    schedules.scheduled_value('constant', 0.5, 0, 0)
