"""DMLab-30: names, pairs, scores, lengths."""

import pytest

from seed_acme import types
from seed_acme.envs import dmlab_levels


def test_thirty_pairs_of_which_two_have_a_test_level():
  assert len(dmlab_levels.PAIRS) == len(dict(dmlab_levels.PAIRS)) == 30
  assert {pair for pair in dmlab_levels.PAIRS if pair[0] != pair[1]} == {
    ('rooms_collect_good_objects_train', 'rooms_collect_good_objects_test'),
    ('rooms_exploit_deferred_effects_train', 'rooms_exploit_deferred_effects_test'),
  }
  assert dmlab_levels.HELD_OUT == (
    'rooms_collect_good_objects_test',
    'rooms_exploit_deferred_effects_test',
  )


def test_the_levels_are_of_the_families():
  families = [name.partition('_')[0] for name in dmlab_levels.LEVELS]
  assert {family: families.count(family) for family in families} == {
    'rooms': 5,
    'language': 4,
    'lasertag': 4,
    'natlab': 3,
    'skymaze': 2,
    'psychlab': 4,
    'explore': 8,
  }


@pytest.mark.parametrize('pair', dmlab_levels.PAIRS)
def test_the_human_score_is_100_percent_and_the_random_one_0_for_both_of_a_pair(pair):
  random, human, _ = dmlab_levels.LEVELS[pair[0]]
  assert human > random
  for name in (*pair, dmlab_levels.path(pair[1])):
    assert dmlab_levels.human_normalized_percent(name, human) == pytest.approx(100)
    assert dmlab_levels.human_normalized_percent(name, random) == 0
    assert dmlab_levels.human_normalized_percent(name, 2 * human - random) == pytest.approx(200)


def test_numbers_of_the_published_table():
  """Checks some rows, and the sums of the columns."""
  levels = dmlab_levels.LEVELS
  assert levels['language_select_described_object'][:2] == (-0.07, 389.5)
  assert levels['rooms_collect_good_objects_train'][:2] == (0.073, 10)
  assert levels['skymaze_irreversible_path_varied'][:2] == (14.4, 100)
  assert levels['language_execute_random_task'][:2] == (-5.913, 254.05)
  assert sum(level.random for level in levels.values()) == pytest.approx(72.617)
  assert sum(level.human for level in levels.values()) == pytest.approx(3110.15)


def test_a_score_outside_dmlab_30_is_refused():
  with pytest.raises(types.UserError, match=r"'lt_chasm': expected a level of DMLab-30"):
    dmlab_levels.human_normalized_percent('lt_chasm', 1.0)
  with pytest.raises(types.UserError, match=r'\(near: rooms_watermaze'):
    dmlab_levels.human_normalized_percent('rooms_watermze', 1.0)


def test_short_and_whole_names():
  assert dmlab_levels.path('rooms_watermaze') == 'contributed/dmlab30/rooms_watermaze'
  whole = 'contributed/dmlab30/rooms_exploit_deferred_effects_test'
  assert dmlab_levels.path('rooms_exploit_deferred_effects_test') == whole
  assert dmlab_levels.path(whole) == whole
  assert dmlab_levels.path('lt_chasm') == 'lt_chasm'
  assert dmlab_levels.path('demos/extra_entities') == 'demos/extra_entities'
  assert dmlab_levels.for_training(whole) == 'rooms_exploit_deferred_effects_train'
  assert dmlab_levels.for_testing('rooms_exploit_deferred_effects_train') == (
    'rooms_exploit_deferred_effects_test'
  )
  assert dmlab_levels.for_testing('demos/extra_entities') == 'demos/extra_entities'


def test_lengths():
  assert dmlab_levels.episode_s('contributed/dmlab30/rooms_watermaze') == 120
  assert dmlab_levels.episode_s('rooms_collect_good_objects_test') == 60
  assert dmlab_levels.episode_s('lt_chasm') == 0
  assert all(level.episode_s > 0 for level in dmlab_levels.LEVELS.values())
