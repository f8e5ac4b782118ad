"""The suite record of DeepMind Lab."""

from seed_acme.envs import dmlab_levels
from seed_acme.envs import registry
from seed_acme.envs.suites import dmlab


def test_the_record_lists_the_levels_and_the_settings():
  names = dmlab.SUITE.names()
  assert 'dmlab:rooms_watermaze' in names and 'dmlab:rooms_collect_good_objects_test' in names
  assert len(names) == len(set(names)) == 30 + 2 + len(dmlab_levels.OTHERS)
  listed = {known.id: known for known in registry.known_environments()}
  assert listed['dmlab:LEVEL'].settings[:3] == ('width', 'height', 'num_action_repeats')


def test_it_has_its_own_ids_only():
  assert dmlab.SUITE.matches('dmlab:demos/extra_entities')
  assert not dmlab.SUITE.matches('dmlab2d:pushbox')


def test_normalised_scores_are_of_dmlab_30():
  assert dmlab.SUITE.normalized_score('dmlab:rooms_keys_doors_puzzle', 53.8) == 1
  assert dmlab.SUITE.normalized_score('dmlab:demos/extra_entities', 1.0) is None
