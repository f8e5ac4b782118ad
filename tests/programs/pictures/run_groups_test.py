"""Labels of groups of runs, by their saved configurations."""

import dataclasses
import itertools

from seed_acme.configs import registry
from seed_acme.programs.pictures import run_groups
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

_BASE = registry.load('catch_vtrace')


def _labels(tmp_path, configs):
  settings = []
  for i, config in enumerate(configs):
    run = run_directory.create(tmp_path / str(i))
    saved_config.save(config, run.config)
    settings.append(run_groups.settings(run.path))
  return run_groups.labels(settings)


def test_a_field_whose_name_ends_in_type_is_in_the_label(tmp_path):
  configs = [
    dataclasses.replace(
      _BASE,
      agent=dataclasses.replace(_BASE.agent, unroll_length=length),
      environment=dataclasses.replace(_BASE.environment, settings={'reward_type': reward}),
    )
    for reward, length in itertools.product(('sparse', 'dense'), (5, 7))
  ]
  labels = _labels(tmp_path, configs)
  assert len(set(labels)) == 4
  for label, config in zip(labels, configs, strict=True):
    assert f'environment.settings.reward_type={config.environment.settings["reward_type"]}' in label
    assert f'agent.unroll_length={config.agent.unroll_length}' in label


def test_the_type_of_a_record_is_left_out_only_if_its_fields_tell_it(tmp_path):
  groups = [
    {'name': 'x', 'rate': rate, 'torso.type': torso} for rate in (1, 2) for torso in ('mlp', 'cnn')
  ]
  assert run_groups.labels(groups) == [
    'x, rate=1, torso.type=mlp',
    'x, rate=1, torso.type=cnn',
    'x, rate=2, torso.type=mlp',
    'x, rate=2, torso.type=cnn',
  ]
  told = [{'name': 'x', 'torso.type': 'mlp', 'torso.size': 8}, {'name': 'x', 'torso.type': 'cnn'}]
  assert run_groups.labels(told) == ['x, torso.size=8', 'x, torso.size=absent']
