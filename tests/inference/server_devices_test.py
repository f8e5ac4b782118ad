"""Acting on two inference devices equals acting on one."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from seed_acme import layout as layout_lib
from seed_acme.configs import registry
from tests.inference import device_actions

_SCRIPT = pathlib.Path(device_actions.__file__)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_devices_act_as_one(tmp_path):
  """Each environment gets the same actions, whichever others share its batch."""
  path = tmp_path / 'actions.npz'
  root = _SCRIPT.parents[2]
  subprocess.run(
    [sys.executable, str(_SCRIPT), str(path)],
    check=True,
    timeout=240,
    env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2', 'PYTHONPATH': str(root)},
  )
  found = np.load(path)
  shape = (device_actions.NUM_STEPS, 2 * device_actions.NUM_ENVIRONMENTS)
  assert found['actions/1'].shape == shape and len(np.unique(found['actions/1'])) == 3
  np.testing.assert_array_equal(found['actions/1'], found['actions/2'])
  assert found['unrolls/1'].shape[0] >= 2 * device_actions.NUM_ENVIRONMENTS
  # On some processors, kernels add up a batch of four in another order than one of eight.
  np.testing.assert_allclose(found['unrolls/1'], found['unrolls/2'], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize('num_devices', [1, 2, 3])
def test_an_actor_belongs_to_one_device_for_life(num_devices):
  config = registry.load('atari_r2d2_small')
  names = [f'gpu:{i}' for i in range(num_devices)]
  layout = layout_lib.Layout.of(config).with_devices(0, names)
  of = [layout.device_of(env_id) for env_id in range(layout.num_environments)]
  per_actor = config.environments_per_actor
  assert of[:per_actor] == [0] * per_actor
  assert of[per_actor : 2 * per_actor] == [1 % num_devices] * per_actor
  assert of[2 * per_actor :] == [2 % num_devices] * config.num_evaluation_environments
