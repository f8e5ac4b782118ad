"""The list of known environments."""

from seed_acme.envs import action_scaling
from seed_acme.envs import registry


def test_listing_names_settings():
  listed = {known.id: known for known in registry.known_environments()}
  assert listed['catch'].settings == ('rows', 'columns')
  assert listed['bit_flip'].settings == ('num_bits',)
  assert listed['memory_chain'].settings == ('length', 'num_cues')
  assert listed['toy'].settings[:2] == ('size', 'length')
  assert listed['toy_memory'].settings[:3] == ('size', 'delay', 'num_vectors')
  assert listed['dm_control:DOMAIN/TASK'].settings[0] == 'time_limit'
  for name in (
    'toy',
    'toy_memory',
    'gym:ID',
    'gymnasium:ID',
    'dm_control:DOMAIN/TASK',
    'package.module:factory',
  ):
    assert listed[name].settings[-4:] == action_scaling.NAMES
  assert all(known.description for known in listed.values())
