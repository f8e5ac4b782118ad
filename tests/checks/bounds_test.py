"""Bounds of fields: their ends, NaN and infinity, classes that redeclare a field."""

import dataclasses
import math
from typing import Annotated

import pytest

from seed_acme import types
from seed_acme.checks import bounds

_INF, _NAN = math.inf, math.nan


@pytest.mark.parametrize(
  'bound, text, inside, outside',
  [
    (bounds.above(0), '> 0', [1e-300, 1, 1e300], [0, -1e-300, -_INF, _NAN]),
    (bounds.at_least(0), '>= 0', [0, 1e-300, 1e300], [-1e-300, -_INF, _NAN]),
    (bounds.at_least(2), '>= 2', [2, 3], [1, 1.999]),
    (bounds.FINITE, 'a finite number', [0, -1e300, 1e300], [_INF, -_INF, _NAN]),
    (bounds.SHARE, 'in [0, 1]', [0, 0.5, 1], [-1e-9, 1 + 1e-9, _INF, -_INF, _NAN]),
    (bounds.Bound(0, 1, is_open_above=True), 'in [0, 1)', [0, 0.999], [-0.1, 1, _NAN]),
    (bounds.Bound(0, 1, is_open_below=True), 'in (0, 1]', [1e-9, 1], [0, 1.001, _NAN]),
  ],
)
def test_what_is_outside_is_named_with_its_value(bound, text, inside, outside):
  assert str(bound) == text
  for value in inside:
    bound.check('inside', value)
  for value in outside:
    with pytest.raises(types.UserError) as error:
      bound.check('the.setting', value)
    assert str(error.value) == f'the.setting ({value}) must be {text}'


def test_infinity_is_a_value_only_where_it_is_said():
  for bound in (bounds.above(0), bounds.at_least(0)):
    with pytest.raises(types.UserError, match=r'^clip \(inf\) must be a finite number$'):
      bound.check('clip', _INF)
  unbounded = bounds.above(0, takes_infinity=True)
  unbounded.check('clip', _INF)
  for value in (0, -_INF, _NAN):
    with pytest.raises(types.UserError, match='must be > 0'):
      unbounded.check('clip', value)


@dataclasses.dataclass(frozen=True)
class _Base:
  size: Annotated[int, bounds.at_least(1)] = 1
  share: Annotated[float, bounds.SHARE] = 0.5
  sizes: Annotated[tuple[int, ...], bounds.at_least(1)] = ()
  limit: Annotated[float | None, bounds.FINITE] = None


@dataclasses.dataclass(frozen=True)
class _Derived(_Base):
  size: int = 8
  share: Annotated[float, bounds.above(0)] = 2.0


@dataclasses.dataclass(frozen=True)
class _Outer:
  inner: _Base


def test_a_field_that_is_declared_anew_keeps_its_bound_or_has_its_own():
  bounds.check(_Derived())
  with pytest.raises(types.UserError, match=r'^size \(0\) must be >= 1$'):
    bounds.check(_Derived(size=0))
  with pytest.raises(types.UserError, match=r'^share \(0.0\) must be > 0$'):
    bounds.check(_Derived(share=0.0))


def test_records_within_a_record_and_numbers_within_a_tuple_are_named():
  bounds.check(_Outer(_Derived(sizes=(1, 2))), '--')
  with pytest.raises(types.UserError, match=r'^--inner.share \(2.0\) must be in \[0, 1\]$'):
    bounds.check(_Outer(_Base(share=2.0)), '--')
  with pytest.raises(types.UserError, match=r'^inner.sizes\[1\] \(0\) must be >= 1$'):
    bounds.check(_Outer(_Base(sizes=(1, 0))))


def test_none_has_no_bound_and_another_type_is_left_to_the_check_of_types():
  bounds.check(_Base(limit=None))
  bounds.check(_Base(size='many'))
  with pytest.raises(types.UserError, match=r'limit \(nan\)'):
    bounds.check(_Base(limit=_NAN))


def test_an_integer_that_no_float_can_hold_is_refused_with_its_name():
  with pytest.raises(types.UserError, match=r'total_steps \(1000*\) must be a finite number'):
    bounds.at_least(1).check('total_steps', 10**400)
