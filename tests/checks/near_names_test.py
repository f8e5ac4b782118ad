"""Near names: the nearest first, and none if nothing is near."""

from seed_acme.checks import near_names


def test_the_nearest_comes_first():
  assert near_names.hint('lstn', ['gru', 'lstm', 'list']) == '; did you mean lstm or list?'


def test_of_many_three_are_named():
  assert near_names.hint('abcd', ['abca', 'abcb', 'abcc', 'abce']).count(' or ') == 2


def test_nothing_is_said_where_nothing_is_near():
  assert near_names.hint('zzz', ['lstm', 'gru']) == '' == near_names.hint('x', [])
