"""The choice of devices for training and for inference."""

import dataclasses

import pytest
import tensorflow as tf

from seed_acme import config_validation
from seed_acme import types
from seed_acme.checks import device_names
from seed_acme.configs import registry
from seed_acme.parallel import devices


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


def _choose(training='', inference='', **fields):
  config = _config(training, inference, **fields)
  return devices.choose(config.learner, config.agent.batch_size, config.num_actors)


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
  assert _choose(training, inference) == expected


def test_no_more_are_taken_by_default_than_can_be_used(there):
  there(4)
  assert len(_choose(inference='1', xla=True).training) == 1
  assert len(_choose(training='1', num_actors=2).inference) == 2


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
    _choose(training)


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


@pytest.fixture
def gpu(monkeypatch):
  """Simulates a GPU on which the CPU computes. Sets its compute capability."""

  def pretend(*capability):
    details = {'device_name': 'NVIDIA X', 'compute_capability': capability}
    [cpu] = tf.config.list_logical_devices('CPU')[:1]
    monkeypatch.setattr(tf.config, 'list_physical_devices', lambda kind: ['gpu'])
    monkeypatch.setattr(tf.config, 'list_logical_devices', lambda kind: [cpu])
    monkeypatch.setattr(tf.config.experimental, 'get_device_details', lambda device: details)

  return pretend


@pytest.mark.parametrize(
  'capability, compiles', [((7, 5), False), ((8, 0), False), ((8, 9), False), ((9, 0), True)]
)
def test_the_start_says_where_the_driver_compiles_kernels(capability, compiles, gpu):
  gpu(*capability)
  told = []
  devices.check_gpus(told.append)
  assert len(told) == compiles
  assert all('NVIDIA X' in text and 'CUDA_CACHE_PATH' in text for text in told)


def test_a_card_that_cannot_train_is_named_before_the_run_begins(gpu, monkeypatch):
  def fail(*_, **__):
    raise tf.errors.UnknownError(None, None, 'CUDA_ERROR_INVALID_PTX\nno kernel')

  gpu(12, 0)
  monkeypatch.setattr(tf.nn, 'conv2d', fail)
  with pytest.raises(types.Failure, match=r'NVIDIA X \(12\.0\).*INVALID_PTX no kernel') as caught:
    devices.check_gpus(lambda text: None)
  assert 'CUDA_VISIBLE_DEVICES=-1' in str(caught.value)


def test_without_a_card_nothing_is_tried(monkeypatch):
  monkeypatch.setattr(tf.nn, 'conv2d', None)
  devices.check_gpus(lambda text: pytest.fail(text))


def test_fewer_cards_than_were_asked_for_are_refused(gpu, monkeypatch):
  """A container without the driver would train on its CPU, and the card would be paid for."""
  gpu(8, 0)
  monkeypatch.setenv(device_names.GPUS_VARIABLE, '1')
  devices.check_gpus(lambda text: None)
  monkeypatch.setenv(device_names.GPUS_VARIABLE, '2')
  with pytest.raises(types.Failure, match='2 GPUs were asked for, and TensorFlow finds 1'):
    devices.check_gpus(lambda text: None)
