"""The suite record of DeepMind Lab2D."""

from seed_acme.envs import registry
from seed_acme.envs.suites import dmlab2d


def test_the_record_lists_the_levels_and_the_settings():
  assert 'dmlab2d:pushbox' in dmlab2d.SUITE.names()
  listed = {known.id: known for known in registry.known_environments()}
  assert listed['dmlab2d:LEVEL'].settings == ('max_steps', 'flat_actions')
  assert "'.[dmlab2d]'" in listed['dmlab2d:LEVEL'].install


def test_no_human_score_is_known():
  assert dmlab2d.SUITE.normalized_score('dmlab2d:pushbox', 1.0) is None
