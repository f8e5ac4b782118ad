"""Training on several devices equals training on one."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from tests.learning import device_weights

pytestmark = pytest.mark.slow

_SCRIPT = pathlib.Path(device_weights.__file__)
# Relative to the largest element of each array. The devices add up in another order, and Adam
# divides by the size of the gradient: after 50 updates the largest difference in weights and
# moments was 2e-5.
_TOLERANCE = 2e-4
_METRIC_TOLERANCE = 5e-3  # for means of numbers near 0; the largest difference was 3e-4


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Makes an archive for each case."""
  folder = tmp_path_factory.mktemp('weights')
  subprocess.run(
    [sys.executable, str(_SCRIPT), str(folder)],
    check=True,
    timeout=1800,
    env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2', 'PYTHONPATH': str(_SCRIPT.parents[2])},
  )
  return folder


@pytest.fixture(scope='module', params=device_weights.CASES)
def found(request, folder):
  """Returns the state before, and after training on one device and on four, as `{name: array}`."""
  archive = np.load(folder / f'{request.param}.npz')
  of = lambda number: {
    name.removeprefix(f'{number}/'): archive[name]
    for name in archive.files
    if name.startswith(f'{number}/')
  }
  return of(0), of(1), of(4)


def _difference(one, other):
  return np.max(np.abs(one - other), initial=0) / max(np.max(np.abs(one), initial=0), 1e-6)


@pytest.mark.timeout(2000)
def test_four_devices_learn_what_one_does(found):
  """Compares weights, targets, statistics, learnt multipliers, the optimiser's moments, priorities
  in the order of the unrolls, and metrics, with masks that differ between devices."""
  before, one, four = found
  assert one.keys() == four.keys() > before.keys()
  differing = {
    name: difference
    for name in one
    if (difference := _difference(one[name], four[name]))
    > (_METRIC_TOLERANCE if name.startswith('metric/') else _TOLERANCE)
  }
  assert not differing


def test_the_updates_change_far_more_than_the_devices_do(found):
  """Otherwise the comparison would prove nothing."""
  before, one, _ = found
  changes = [
    _difference(one[name], before[name])
    for name in before
    if name.startswith('acting/') and not name.endswith('weight:0')
  ]
  assert min(changes) > 10 * _TOLERANCE
