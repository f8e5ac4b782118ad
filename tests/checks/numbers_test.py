"""Ranges of configured numbers: what is at their ends, and NaN and infinity."""

import math

import pytest

from seed_acme import types
from seed_acme.checks import numbers

_INF, _NAN = math.inf, math.nan


@pytest.mark.parametrize(
  'check, inside, outside',
  [
    (numbers.check_above_zero, [1e-300, 1, 1e300], [0, -1e-300, _INF, -_INF, _NAN]),
    (numbers.check_at_least_zero, [0, 1e-300, 1e300], [-1e-300, _INF, -_INF, _NAN]),
    (numbers.check_finite, [0, -1e300, 1e300], [_INF, -_INF, _NAN]),
    (numbers.check_shares, [0, 0.5, 1], [-1e-9, 1 + 1e-9, _INF, -_INF, _NAN]),
  ],
)
def test_what_is_outside_is_named_with_its_value(check, inside, outside):
  check({f'inside.{value}': value for value in inside})
  for value in outside:
    with pytest.raises(types.UserError, match=rf'^the\.setting \({value}\) must be '):
      check({'inside': 1, 'the.setting': value})


def test_a_bound_may_be_infinite_where_it_is_said():
  numbers.check_above_zero({'bound': _INF}, infinite=True)
  for value in (0, -_INF, _NAN):
    with pytest.raises(types.UserError, match='must be > 0'):
      numbers.check_above_zero({'bound': value}, infinite=True)
