"""Which devices train and which act."""

import dataclasses

import pytest
import tensorflow as tf

from seed_acme import config_validation
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.utils import devices


def _config(training='', inference='', num_actors=8, **learner):
  config = registry.load('catch_vtrace')
  chosen = dataclasses.replace(
    config.learner, training_devices=training, inference_devices=inference, **learner
  )
  return dataclasses.replace(config, learner=chosen, num_actors=num_actors)


@pytest.fixture
def there(monkeypatch):
  """Sets the logical devices that TensorFlow sees."""

  def see(gpus, cpus=1):
    number = {'GPU': gpus, 'CPU': cpus}
    monkeypatch.setattr(tf.config, 'list_logical_devices', lambda kind: ['device'] * number[kind])

  return see


_G = tuple(f'gpu:{i}' for i in range(4))


@pytest.mark.parametrize(
  'gpus, training, inference, expected',
  [
    (0, '', '', (('cpu:0',), ('cpu:0',))),
    (1, '', '', (_G[:1], _G[:1])),
    (4, '', '', (_G[:3], _G[3:])),
    (4, '2', '', (_G[:2], _G[2:])),
    (4, '', '2', (_G[:2], _G[:1:-1])),
    (4, '4', '4', (_G, _G[::-1])),
    (4, '1', '1', (_G[:1], _G[3:])),
    (4, 'gpu:2', '', (_G[2:3], (_G[0], _G[1], _G[3]))),
    (1, 'cpu:0', 'gpu:0', (('cpu:0',), _G[:1])),
    (1, '1', '1', (_G[:1], _G[:1])),
  ],
)
def test_what_is_left_open_takes_what_the_other_leaves(there, gpus, training, inference, expected):
  there(gpus)
  assert devices.choose(_config(training, inference)) == expected


def test_no_more_are_taken_by_default_than_can_be_used(there):
  there(4)
  assert len(devices.choose(_config(inference='1', xla=True)).training) == 1
  assert len(devices.choose(_config(training='1', num_actors=2)).inference) == 2


@pytest.mark.parametrize(
  'gpus, training, said',
  [
    (0, '2', r'learner.training_devices \(2\): TensorFlow sees 0 GPUs'),
    (1, 'gpu:0,gpu:1', r'gpu:1 is not there; TensorFlow sees gpu:0, cpu:0'),
    (0, 'gpu:0', r'gpu:0 is not there; TensorFlow sees cpu:0'),
  ],
)
def test_a_device_that_is_not_there_is_refused(there, gpus, training, said):
  there(gpus)
  with pytest.raises(types.UserError, match=said):
    devices.choose(_config(training))


@pytest.mark.parametrize(
  'config, said',
  [
    (_config('cpu:0,cpu:0'), 'names a device twice'),
    (_config('0'), 'must be >= 1'),
    (_config(inference='9'), r'learner.inference_devices \(9\) are more than num_actors \(8\)'),
    (_config('1000'), r'learner.training_devices \(1000\) are more than the unrolls'),
    (_config('2', xla=True), r'learner.xla \(True\) compiles for one device'),
  ],
)
def test_what_cannot_be_on_any_machine_is_refused_before_the_run(config, said):
  with pytest.raises(types.UserError, match=said):
    config_validation.validate(config)


def test_logical_devices_come_before_tensorflow_is_used():
  tf.zeros([1])
  with pytest.raises(types.UserError, match='cpu:1 cannot be made, as this process has used'):
    devices.configure(_config('cpu:0,cpu:1').learner)
