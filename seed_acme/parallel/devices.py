"""Choice of the devices of this host for training and inference, by TensorFlow's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import contextlib
import os
from typing import Any, NamedTuple

import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import device_names

# The newest compute capability that runs the kernels built into TensorFlow 2.15 (those for 8.0);
# for later cards the driver compiles them at the first start
# (https://developer.nvidia.com/cuda-gpus).
_NEWEST_WITH_KERNELS = (8, 9)
_FIELDS = ('training_devices', 'inference_devices')  # of `config.LearnerConfig`


class Devices(NamedTuple):
  """Device names such as `gpu:0`, at least one for each purpose; one device may serve both."""

  training: tuple[str, ...]
  inference: tuple[str, ...]


def configure(config: config_lib.LearnerConfig) -> None:
  """Divides the CPU into the logical devices that are named, and provides a thread per device.

  Must run before TensorFlow's first operation; raises `types.UserError` if it is too late for
  cpu:1 and higher.
  """
  num_devices = sum(device_names.number_of(choice) for choice in _choices(config))
  if 0 < tf.config.threading.get_inter_op_parallelism_threads() < num_devices:
    tf.config.threading.set_inter_op_parallelism_threads(num_devices)
  wanted = _num_cpus(config)
  if wanted == 1:
    return
  cpu = tf.config.list_physical_devices('CPU')[0]
  try:
    tf.config.set_logical_device_configuration(
      cpu, [tf.config.LogicalDeviceConfiguration() for _ in range(wanted)]
    )
  except RuntimeError as error:
    if _num_logical('cpu') < wanted:
      raise types.UserError(
        f'cpu:{wanted - 1} cannot be made, as this process has used TensorFlow already: '
        'start the run in a process of its own'
      ) from error


def choose(config: config_lib.LearnerConfig, batch_size: int, num_actors: int) -> Devices:
  """Chooses devices by name, by number or automatically; see `config.LearnerConfig`.

  batch_size: unrolls of this host in an update. num_actors: training actors of this host.
  Raises `types.UserError` for a device that does not exist.
  """
  gpus, cpus = ([f'{kind}:{i}' for i in range(_num_logical(kind))] for kind in ('gpu', 'cpu'))
  training, inference = _choices(config)
  for field, choice in zip(_FIELDS, (training, inference)):
    _check_there(choice, f'learner.{field}', gpus, cpus)
  found = _chosen(training, inference, gpus or cpus[:1])
  if training is None:  # no more devices than can be used
    limit = 1 if config.xla else batch_size
    found = found._replace(training=found.training[:limit])
  if inference is None:
    found = found._replace(inference=found.inference[:num_actors])
  return found


def check_gpus(tell: Callable[[str], None]) -> None:
  """Trains one convolution on each GPU, to detect an unusable GPU before the run begins.

  tell: called with an explanation before a check that may take minutes. Raises `types.Failure`
  with the card and the reason, also if there are fewer than `device_names.GPUS_VARIABLE` says.
  """
  physical = tf.config.list_physical_devices('GPU')
  given = int(os.environ.get(device_names.GPUS_VARIABLE, 0))
  if len(physical) < given:
    raise types.Failure(
      f'{given} GPUs were asked for, and TensorFlow finds {len(physical)}: the image must be made '
      'with the extra cuda (Dockerfile.gpu), and the driver must lie on LD_LIBRARY_PATH; unset '
      f'{device_names.GPUS_VARIABLE} to train with what there is'
    )
  for gpu, logical in zip(physical, tf.config.list_logical_devices('GPU')):
    details = tf.config.experimental.get_device_details(gpu)
    capability = details.get('compute_capability', (0, 0))
    card = f'{details.get("device_name", logical.name)} ({".".join(map(str, capability))})'
    if capability > _NEWEST_WITH_KERNELS:
      tell(
        f'The driver compiles kernels for {card}: half a minute or more at the first start, less '
        'later, if CUDA_CACHE_PATH names a folder that stays'
      )
    try:
      _train_convolution(logical.name)
    except tf.errors.OpError as error:
      reason = ' '.join(str(error.message).split())[:300]
      raise types.Failure(
        f'{card} cannot train a convolution: {reason}; see `seed-acme doctor`, or set '
        'CUDA_VISIBLE_DEVICES=-1 and train on the CPU'
      ) from error


def _train_convolution(device: str) -> None:
  with tf.device(device):
    w = tf.Variable(tf.ones([3, 3, 4, 8]))
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(tf.nn.conv2d(tf.ones([2, 16, 16, 4]), w, 1, 'VALID'))
    tape.gradient(loss, w).numpy()


def default() -> Devices:
  """Returns TensorFlow's default device, for both purposes."""
  device = ('gpu:0' if _num_logical('gpu') else 'cpu:0',)
  return Devices(device, device)


def scope(device: str) -> contextlib.AbstractContextManager[Any]:
  """Places operations and variables on a device; does nothing for TensorFlow's default device."""
  return contextlib.nullcontext() if device in default().training else tf.device(device)


def _choices(config: config_lib.LearnerConfig) -> list[device_names.Choice]:
  return [device_names.parse(getattr(config, field), f'learner.{field}') for field in _FIELDS]


def _num_cpus(config: config_lib.LearnerConfig) -> int:
  names = [name for choice in _choices(config) if isinstance(choice, tuple) for name in choice]
  return 1 + max((device_names.index(x) for x in names if x.startswith('cpu')), default=0)


def _num_logical(kind: str) -> int:
  return len(tf.config.list_logical_devices(kind.upper()))


def _check_there(
  choice: device_names.Choice, field: str, gpus: Sequence[str], cpus: Sequence[str]
) -> None:
  seen = ', '.join([*gpus, *cpus])
  if isinstance(choice, int) and choice > max(1, len(gpus)):
    raise types.UserError(
      f'{field} ({choice}): TensorFlow sees {len(gpus)} GPUs here ({seen}; `seed-acme doctor` '
      'says why). Lower it; cpu:0,cpu:1 instead divides the CPU, to try it out'
    )
  if isinstance(choice, tuple):
    absent = [name for name in choice if name not in gpus and name not in cpus]
    if absent:
      raise types.UserError(
        f'{field}: {", ".join(absent)} is not there; TensorFlow sees {seen} '
        '(`seed-acme doctor` says why): name one of these'
      )


def _chosen(
  training: device_names.Choice, inference: device_names.Choice, there: Sequence[str]
) -> Devices:
  """Resolves both choices. A number takes the first devices for training and the last ones for
  inference. None takes the devices that the other choice leaves; if both are None, the last device
  runs inference."""
  if training is None and inference is None:
    inference = 1
  acting = _named(inference, there[::-1])
  learning = _named(training, there)
  if learning is None:
    assert acting is not None
    learning = tuple(x for x in there if x not in acting) or tuple(there)
  if acting is None:
    acting = tuple(x for x in there if x not in learning) or tuple(there[-1:])
  return Devices(learning, acting)


def _named(choice: device_names.Choice, there: Sequence[str]) -> tuple[str, ...] | None:
  return tuple(there[:choice]) if isinstance(choice, int) else choice
