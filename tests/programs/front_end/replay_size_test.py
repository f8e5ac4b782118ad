"""The size of a replay memory is reported in time, with settings that fit."""

import dataclasses
import re

from dm_env import specs
import numpy as np
import pytest
import tree

from seed_acme import config_validation
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.envs import registry as suites
from seed_acme.programs.front_end import attempt
from seed_acme.programs.front_end import launches
from seed_acme.programs.front_end import replay_size
from seed_acme.storage import run_directory
from tests import built

_GB = 10**9


def _with_agent(config, **changes):
  return dataclasses.replace(config, agent=dataclasses.replace(config.agent, **changes))


def _replay_bytes(config):
  return replay_size.replay_bytes(config, lambda: suites.environment_spec(config.environment))


def _suggested(config, warning):
  """Returns the configuration with the settings that the warning suggests."""
  found = dict(re.findall(r'--config.agent.(replay_\w+)=(\d+)', warning))
  return _with_agent(config, **{name: int(value) for name, value in found.items()})


@pytest.mark.slow
@pytest.mark.parametrize('name', ['atari_r2d2_small', 'catch_r2d2'])
def test_it_is_what_the_unrolls_hold_or_little_more(name):
  """The estimate has at most one number per row more, since not every agent stores a value."""
  config = registry.load(name)
  unroll = built.make_acting(config).example_unroll()
  unroll_bytes = sum(array.nbytes for array in tree.flatten(unroll))
  value_bytes = 4 * config.agent.unroll_rows
  estimate = _replay_bytes(config) / config.agent.replay_capacity
  assert unroll_bytes <= estimate <= unroll_bytes + value_bytes


@pytest.mark.parametrize(
  'action, num_choices',
  [
    (specs.DiscreteArray(18), 18),
    (specs.BoundedArray((2,), np.int32, minimum=0, maximum=[2, 4]), 3 + 5),
    (specs.BoundedArray((), np.int64, minimum=-3, maximum=3), 7),
  ],
)
def test_a_number_is_kept_for_each_choice(action, num_choices):
  spec = types.EnvironmentSpec(specs.Array((), np.float32), action)
  config = registry.load('catch_r2d2')
  config = dataclasses.replace(config, network=dataclasses.replace(config.network, core='none'))
  rows = config.agent.unroll_rows
  # Observation; both actions; step type, reward, discount, version; choices and value.
  row_bytes = 4 + 2 * action.generate_value().nbytes + 17 + 4 * (num_choices + 1)
  num_bytes = replay_size.replay_bytes(config, lambda: spec)
  assert num_bytes == config.agent.replay_capacity * rows * row_bytes


def test_the_papers_memory():
  assert 89.0 * _GB < _replay_bytes(registry.load('atari_r2d2')) < 89.2 * _GB
  assert _replay_bytes(registry.load('catch_vtrace')) == 0


@pytest.mark.slow
@pytest.mark.parametrize('available', [100 * _GB, 10 * _GB, _GB, 10**8])
def test_the_suggested_settings_fit_and_are_accepted(available):
  config = registry.load('atari_r2d2')
  warning = replay_size.memory_warning(config, _replay_bytes(config), available)
  assert '89.1 GB' in warning
  fitting = _suggested(config, warning)
  config_validation.validate(fitting)
  needed = _replay_bytes(fitting)
  assert 0.7 * available < needed <= 0.8 * available
  assert not replay_size.memory_warning(fitting, needed, available)
  assert (fitting.agent.replay_min_size < 5_000) == (available < 5 * _GB)


def test_no_warning_where_it_fits():
  config = registry.load('atari_r2d2')
  assert not replay_size.memory_warning(config, _replay_bytes(config), 120 * _GB)


@pytest.fixture
def control_group(tmp_path, monkeypatch):
  """`control_group(**files)`: a container with these figures, on a machine with 20 GB left."""
  monkeypatch.setattr(replay_size, '_CGROUP', tmp_path)
  monkeypatch.setattr(
    replay_size.psutil, 'virtual_memory', lambda: type('Memory', (), {'available': 20 * _GB})
  )

  def write(**files):
    for name, text in files.items():
      (tmp_path / f'memory.{name}').write_text(f'{text}\n')

  return write


_STAT = f'anon {_GB}\nfile {4 * _GB}\ninactive_file {3 * _GB}'


@pytest.mark.parametrize(
  'files, expected',
  [
    ({}, 20 * _GB),
    ({'max': 'max', 'current': 5 * _GB, 'stat': _STAT}, 20 * _GB),
    ({'max': 12 * _GB, 'current': 5 * _GB, 'stat': _STAT}, 10 * _GB),
    ({'max': 90 * _GB, 'current': 5 * _GB, 'stat': _STAT}, 20 * _GB),
    ({'max': 4 * _GB, 'current': 8 * _GB, 'stat': _STAT}, 0),
  ],
)
def test_in_a_container_what_it_has_left(control_group, files, expected):
  control_group(**files)
  assert replay_size.available_memory() == expected


@pytest.mark.slow
def test_train_says_so_at_the_start(tmp_path, monkeypatch):
  monkeypatch.setattr(replay_size, 'available_memory', lambda: 10 * _GB)
  monkeypatch.setattr(attempt.Attempt, 'run', lambda self: 0)
  for name, says in (('atari_r2d2', True), ('catch_r2d2', False)):
    shown = []
    config, run = registry.load(name), run_directory.create(tmp_path / name)
    launches.load('local_mp').start(
      launches.Run(config, run),
      layout_lib.Layout.of(config),
      launches.Supervision(show=shown.append),
    )
    warnings = [line for line in shown if line.startswith('Warning: ')]
    assert len(warnings) == says
    if says:
      assert '89.1 GB' in warnings[0] and '--config.agent.replay_capacity=8900 fits' in warnings[0]
