"""The README.md of an exported policy says in which units it acts."""

import dataclasses
import re

from dm_env import specs
import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.envs import choices
from seed_acme.programs.building import build
from seed_acme.programs.tools.export import exported_policy
from seed_acme.programs.tools.export import readme

_RECORD = {
  'environment': 'catch',
  'run_dir': 'runs/latest',
  'checkpoint_updates': 7,
  'checkpoint_agent_steps': 70,
  'greedy': True,
}


@pytest.fixture(scope='module', name='text')
def _text():
  spec = types.EnvironmentSpec(
    observation={
      'place': choices.ChoicesArray([3, 5]),
      'room': specs.DiscreteArray(4),
      'speed': specs.BoundedArray((2,), np.float32, -4.8, 4.8),
      'wind': specs.Array((2,), np.float32),
      'many': specs.BoundedArray((20,), np.float32, -np.arange(20), np.inf),
    },
    action={'push': specs.BoundedArray((1,), np.float32, -1, 1), 'button': specs.DiscreteArray(3)},
  )
  config = registry.load('pendulum_ppo')
  network_config = dataclasses.replace(config.network, mlp_sizes=(4,))
  acting = build.make_acting(config.agent, network_config, spec)
  network = acting.agent.acting.make()
  policy = exported_policy.ExportedPolicy(spec, acting.agent.acting, network, True, 70)
  environment_config = config_lib.EnvironmentConfig('catch', {'rows': 6})
  return readme.text(_RECORD, policy, spec, environment_config)


def test_the_table_has_the_range_of_each_observation_and_action(text):
  rows = [line.strip('| ').split(' | ') for line in text.splitlines() if line.startswith('| `')]
  values = {row[0].strip('`'): row[3].strip() if len(row) > 3 else '' for row in rows}
  assert {name: values[name] for name in values if not name.startswith('state_')} == {
    'observation_place': '0 ... [2, 4]',
    'observation_room': '0 ... 3',
    'observation_speed': '-4.8 ... 4.8',
    'observation_wind': '',
    'observation_many': '[ 0., -1., -2., ..., -17., -18., -19.] ... inf',
    'reward': '',
    'discount': '',
    'is_first': '',
    'action_push': '-1.0 ... 1.0',
    'action_button': '0 ... 2',
  }


def test_it_says_how_to_convert_actions(text):
  assert 'low + (a + 1) / 2 * (high - low)' in text
  assert '`start`' in text


def test_it_makes_the_environments_of_the_run(text):
  block = re.findall(r'```python\n(.*?)```', text, re.DOTALL)[-1]
  names = {'rows': 3}
  exec(block, names)
  environments = names['environments']
  assert environments.reset().observation.shape == (3, 30)  # 6 rows of 5 columns
  environments.close()
