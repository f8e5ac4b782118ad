"""Labels of groups of runs, by their saved configurations."""

import dataclasses
import itertools

from seed_acme.configs import registry
from seed_acme.programs.pictures import run_groups
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

_BASE = registry.load('catch_vtrace')


def _settings(tmp_path, configs):
  settings = []
  for i, config in enumerate(configs):
    run = run_directory.create(tmp_path / str(i))
    saved_config.save(config, run.config)
    settings.append(run_groups.settings(run.path))
  return settings


def _labels(tmp_path, configs):
  folders = [f'folder/{i}' for i in range(len(configs))]
  return run_groups.labels(_settings(tmp_path, configs), folders)


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
  assert run_groups.labels(groups, ['a', 'b', 'c', 'd']) == [
    'x, rate=1, torso.type=mlp',
    'x, rate=1, torso.type=cnn',
    'x, rate=2, torso.type=mlp',
    'x, rate=2, torso.type=cnn',
  ]
  told = [{'name': 'x', 'torso.type': 'mlp', 'torso.size': 8}, {'name': 'x', 'torso.type': 'cnn'}]
  assert run_groups.labels(told, ['a', 'b']) == ['x, torso.size=8', 'x, torso.size=absent']


def test_an_infinite_value_is_a_value_of_its_field(tmp_path):
  configs = [
    dataclasses.replace(_BASE, agent=dataclasses.replace(_BASE.agent, rho_clip=clip))
    for clip in (1.0, float('inf'))
  ]
  for label, clip in zip(_labels(tmp_path, configs), ('1.0', 'inf'), strict=True):
    assert label.endswith(f'agent.rho_clip={clip}')


def test_labels_have_the_fields_that_tell_lines_apart():
  base = {'name': 'x', **{f'agent.field_{i}': 0 for i in range(6)}}
  groups = [base, *({**base, f'agent.field_{i}': 1} for i in (0, 1, 2, 4))]
  groups += [{**base, 'agent.field_5': value} for value in (1, 2)]
  labels = run_groups.labels(groups, [f'folder/{i}' for i in range(7)])
  assert len(set(labels)) == 7 and not any('folder' in label for label in labels)
  assert labels[0] == (
    'x, agent.field_0=0, agent.field_1=0, agent.field_2=0, agent.field_4=0, agent.field_5=0'
  )


def test_the_folder_is_in_labels_that_few_fields_do_not_tell_apart():
  base = {'name': 'x', **{f'agent.field_{i}': 0 for i in range(8)}}
  groups = [base, *({**base, f'agent.field_{i}': 1} for i in range(8))]
  labels = run_groups.labels(groups, [f'folder/{i}' for i in range(9)])
  assert len(set(labels)) == 9
  assert labels[0].endswith('agent.field_4=0, ..., folder/0')
  assert labels[1].startswith('x, agent.field_0=1') and labels[1].endswith(', ...')


def _with_steps(schedule, steps):
  optimizer = dataclasses.replace(_BASE.agent.optimizer, schedule=schedule)
  agent = dataclasses.replace(_BASE.agent, optimizer=optimizer)
  return dataclasses.replace(_BASE, agent=agent, total_steps=steps)


def test_lengths_of_runs_are_compared_where_a_schedule_goes_over_them(tmp_path):
  configs = [
    _with_steps(schedule, steps) for schedule in ('constant', 'linear') for steps in (1_000, 2_000)
  ]
  settings = _settings(tmp_path, configs)
  assert run_groups.equal(settings) == [[0, 1], [2], [3]]
  schedule = 'agent.optimizer.schedule'
  assert run_groups.labels(settings[1:], ['b', 'c', 'd']) == [
    f'catch_vtrace, {schedule}=constant',
    f'catch_vtrace, {schedule}=linear, total_steps=1000',
    f'catch_vtrace, {schedule}=linear, total_steps=2000',
  ]
  assert run_groups.differences_of_runs(settings[:2]) == [[], []]
  assert run_groups.differences_of_runs(settings[2:]) == [
    ['total_steps=1000'],
    ['total_steps=2000'],
  ]
