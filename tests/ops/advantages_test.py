"""GAE against its sum, and its two limits."""

import numpy as np
import pytest

from seed_acme.ops import advantages
from seed_acme.ops import nstep


def _random(num_steps=8, batch_size=3, seed=0):
  rng = np.random.default_rng(seed)
  shape = (num_steps, batch_size)
  return {
    'values': rng.normal(size=(num_steps + 1, batch_size)).astype(np.float32),
    'rewards': rng.normal(size=shape).astype(np.float32),
    'discounts': (0.9 * (rng.random(shape) > 0.2)).astype(np.float32),
    'mask': rng.random(shape) > 0.25,
  }


@pytest.mark.parametrize('seed', range(3))
def test_equals_the_discounted_sum_of_td_errors(seed):
  x, lambda_ = _random(seed=seed), 0.8
  num_steps, batch_size = x['rewards'].shape
  expected = np.zeros((num_steps, batch_size))
  for b in range(batch_size):
    for t in range(num_steps):
      weight = 1.0
      for k in range(t, num_steps):
        if not x['mask'][k, b]:
          break
        v_k, v_kp1 = x['values'][k : k + 2, b]
        expected[t, b] += weight * (x['rewards'][k, b] + x['discounts'][k, b] * v_kp1 - v_k)
        weight *= x['discounts'][k, b] * lambda_
  result = advantages.gae(**x, lambda_=lambda_)
  np.testing.assert_allclose(result.advantages, expected, rtol=1e-5, atol=1e-5)
  np.testing.assert_allclose(result.targets, expected + x['values'][:-1], rtol=1e-5, atol=1e-5)


def test_lambda_1_and_lambda_0_are_n_step_returns():
  x = _random()
  for lambda_, n in ((1.0, 8), (0.0, 1)):
    targets = advantages.gae(**x, lambda_=lambda_).targets
    np.testing.assert_allclose(targets, nstep.nstep_returns(**x, n=n), rtol=1e-5, atol=1e-5)


def test_by_hand():
  result = advantages.gae(
    values=[[1.0], [2.0], [4.0]],
    rewards=[[1.0], [3.0]],
    discounts=[[0.5], [0.5]],
    mask=[[True], [True]],
    lambda_=0.5,
  )
  # A_1 = 3 + 2 - 2 = 3; A_0 = 1 + 1 - 1 + 0.25 * 3.
  np.testing.assert_allclose(result.advantages[:, 0], [1.75, 3.0])


def test_masked_inputs_may_be_nan():
  x = _random()
  clean = advantages.gae(**x, lambda_=0.9)
  for name in ('rewards', 'discounts'):
    x[name] = np.where(x['mask'], x[name], np.nan)
  np.testing.assert_array_equal(advantages.gae(**x, lambda_=0.9).advantages, clean.advantages)


def test_wrong_shapes_are_named():
  x = _random()
  with pytest.raises(ValueError, match='discounts has shape'):
    advantages.gae(**{**x, 'discounts': x['discounts'][1:]}, lambda_=1.0)
