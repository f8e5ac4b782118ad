"""n-step returns against the sum, ends of episodes, and value rescaling."""

import numpy as np
import pytest

from seed_acme.ops import nstep

_EPSILON = 1e-3


def _random(num_steps=9, batch_size=4, seed=0):
  rng = np.random.default_rng(seed)
  shape = (num_steps, batch_size)
  return {
    'rewards': rng.normal(size=shape).astype(np.float32),
    'discounts': (0.9 * (rng.random(shape) > 0.2)).astype(np.float32),
    'mask': rng.random(shape) > 0.25,
  }


def _values(num_rows=10, batch_size=4, scale=1.0, seed=1):
  return (scale * np.random.default_rng(seed).normal(size=(num_rows, batch_size))).astype(
    np.float32
  )


def _return_of_one_row(values, rewards, discounts, mask, t, n):
  """Steps ahead from row t until n rewards, the end of the rows, or a LAST row."""
  total, weight = 0.0, 1.0
  for k in range(t, min(t + n, len(rewards))):
    if not mask[k]:
      return total + weight * values[k]
    total += weight * rewards[k]
    weight *= discounts[k]
  return total + weight * values[min(t + n, len(rewards))]


def _expected(values, x, n):
  num_steps, batch_size = x['rewards'].shape
  return np.array(
    [
      [
        _return_of_one_row(
          values[:, b].astype(np.float64),
          x['rewards'][:, b],
          x['discounts'][:, b],
          x['mask'][:, b],
          t,
          n,
        )
        for b in range(batch_size)
      ]
      for t in range(num_steps)
    ]
  )


def _h(x, epsilon):
  return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + epsilon * x


def _h_inverse(x, epsilon):
  root = np.sqrt(1 + 4 * epsilon * (np.abs(x) + 1 + epsilon))
  return np.sign(x) * (((root - 1) / (2 * epsilon)) ** 2 - 1)


@pytest.mark.parametrize('n', [1, 3, 5, 50])
def test_returns_equal_a_walk_forward(n):
  x, values = _random(seed=n), _values()
  np.testing.assert_allclose(
    nstep.nstep_returns(values, **x, n=n), _expected(values, x, n), rtol=1e-5, atol=1e-5
  )


@pytest.mark.parametrize('n', [1, 5])
def test_q_targets_equal_a_walk_forward_on_the_unscaled_side(n):
  x, q_values = _random(seed=n), _values(scale=5.0)
  unscaled = _h_inverse(q_values.astype(np.float64), _EPSILON)
  expected = _h(_expected(unscaled, x, n), _EPSILON)
  targets = nstep.nstep_q_targets(q_values, **x, n=n, epsilon=_EPSILON)
  np.testing.assert_allclose(targets, expected, rtol=1e-5, atol=1e-5)


def test_truncation_bootstraps_from_its_own_row_not_from_the_next_episode():
  targets = nstep.nstep_returns(
    values=[[0.0], [0.0], [7.0], [1000.0]],
    rewards=[[1.0], [2.0], [500.0]],
    discounts=[[0.5], [0.5], [1.0]],
    mask=[[True], [True], [False]],
    n=3,
  )
  # 1 + 0.5 * 2 + 0.25 * 7; 2 + 0.5 * 7; the LAST row itself.
  np.testing.assert_allclose(targets[:, 0], [3.75, 5.5, 7.0])


def test_masked_inputs_may_be_nan():
  x, values = _random(), _values()
  clean = nstep.nstep_q_targets(values, **x, n=3, epsilon=_EPSILON)
  for name in ('rewards', 'discounts'):
    x[name] = np.where(x['mask'], x[name], np.nan)
  poisoned = nstep.nstep_q_targets(values, **x, n=3, epsilon=_EPSILON)
  np.testing.assert_array_equal(poisoned, clean)


def test_rescaling_equals_the_formulas_of_the_paper():
  x = np.concatenate([np.linspace(-300, 300, 601), [1e-6, -1e-6, 0.0]])
  np.testing.assert_allclose(
    nstep.rescale(x, epsilon=_EPSILON), _h(x, _EPSILON), rtol=1e-6, atol=1e-12
  )
  # The paper's inverse cancels near 0 even in float64, so there is a small absolute tolerance.
  np.testing.assert_allclose(
    nstep.unrescale(x, epsilon=_EPSILON), _h_inverse(x, _EPSILON), rtol=2e-6, atol=1e-11
  )


@pytest.mark.parametrize('epsilon', [0.0, 1e-3, 1e-2])
def test_rescaling_and_back_is_the_identity_in_float32(epsilon):
  x = np.float32([-1e4, -30.0, -3.0, -1e-4, 0.0, 1e-6, 0.5, 3.0, 1e3, 1e6])
  there_and_back = nstep.unrescale(nstep.rescale(x, epsilon=epsilon), epsilon=epsilon)
  np.testing.assert_allclose(there_and_back, x, rtol=1e-6)


def test_n_of_0_is_refused():
  with pytest.raises(ValueError, match=r'n \(0\) must be >= 1'):
    nstep.nstep_returns(_values(), **_random(), n=0)
