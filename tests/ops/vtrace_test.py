"""V-trace against the paper's sum, on-policy identities, masks and NaN."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme.ops import advantages as advantages_lib
from seed_acme.ops import nstep
from seed_acme.ops import vtrace

_CLIPS = {
  'lambda_': 0.9,
  'rho_clip': 1.1,
  'c_clip': 0.8,
  'policy_rho_clip': 1.3,
  'advantage_lambda': 0.7,
}
_ON_POLICY = {
  'lambda_': 1.0,
  'rho_clip': 1.0,
  'c_clip': 1.0,
  'policy_rho_clip': 1.0,
  'advantage_lambda': 1.0,
}


def _random(num_steps=7, batch_size=4, seed=0, masked=True):
  rng = np.random.default_rng(seed)
  shape = (num_steps, batch_size)
  mask = rng.random(shape) > 0.25 if masked else np.ones(shape, bool)
  return {
    'values': rng.normal(size=(num_steps + 1, batch_size)).astype(np.float32),
    'rewards': rng.normal(size=shape).astype(np.float32),
    'discounts': (0.95 * (rng.random(shape) > 0.2)).astype(np.float32),
    'log_rhos': rng.normal(size=shape).astype(np.float32),
    'mask': mask,
  }


def _paper_targets(values, rewards, discounts, log_rhos, lambda_, rho_clip, c_clip):
  """Computes equation 1 of the paper as a sum, for one sequence without masked rows."""
  ratios = np.exp(log_rhos.astype(np.float64))
  rhos, cs = np.minimum(rho_clip, ratios), lambda_ * np.minimum(c_clip, ratios)
  num_steps = len(rewards)
  targets = np.zeros(num_steps)
  for s in range(num_steps):
    targets[s] = values[s]
    for t in range(s, num_steps):
      weight = 1.0
      for i in range(s, t):
        weight *= discounts[i] * cs[i]
      targets[s] += weight * rhos[t] * (rewards[t] + discounts[t] * values[t + 1] - values[t])
  return targets


def _paper(x, lambda_, rho_clip, c_clip, policy_rho_clip, advantage_lambda):
  """Treats stretches between masked rows separately; a masked row keeps V, without advantage."""
  num_steps, batch_size = x['rewards'].shape
  targets = x['values'][:-1].astype(np.float64)
  for b in range(batch_size):
    start = 0
    for end in [*np.flatnonzero(~x['mask'][:, b]), num_steps]:
      rows = slice(start, end)
      targets[rows, b] = _paper_targets(
        x['values'][start : end + 1, b],
        x['rewards'][rows, b],
        x['discounts'][rows, b],
        x['log_rhos'][rows, b],
        lambda_,
        rho_clip,
        c_clip,
      )
      start = end + 1
  bootstraps = x['values'][1:]
  following = np.concatenate([targets[1:], x['values'][-1:]])
  following = bootstraps + advantage_lambda * (following - bootstraps)
  weights = 1.0
  if policy_rho_clip is not None:
    weights = np.minimum(policy_rho_clip, np.exp(x['log_rhos']))
  advantages = weights * (x['rewards'] + x['discounts'] * following - x['values'][:-1])
  return targets, np.where(x['mask'], advantages, 0.0)


@pytest.mark.parametrize('masked', [False, True])
@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('policy_rho_clip', [1.3, None])
def test_equals_the_sum_of_the_paper(masked, seed, policy_rho_clip):
  x = _random(seed=seed, masked=masked)
  settings = {**_CLIPS, 'policy_rho_clip': policy_rho_clip}
  result = vtrace.vtrace(**x, **settings)
  targets, advantages = _paper(x, **settings)
  np.testing.assert_allclose(result.targets, targets, rtol=1e-5, atol=1e-5)
  np.testing.assert_allclose(result.advantages, advantages, rtol=1e-5, atol=1e-5)


def test_on_policy_advantages_of_lambda_are_those_of_gae():
  x = _random(seed=5, masked=True)
  x['log_rhos'] = np.zeros_like(x['log_rhos'])
  settings = {**_ON_POLICY, 'lambda_': 0.8, 'advantage_lambda': 0.8, 'policy_rho_clip': None}
  result = vtrace.vtrace(**x, **settings)
  expected = advantages_lib.gae(x['values'], x['rewards'], x['discounts'], x['mask'], lambda_=0.8)
  np.testing.assert_allclose(result.targets, expected.targets, rtol=1e-5, atol=1e-5)
  np.testing.assert_allclose(result.advantages, expected.advantages, rtol=1e-5, atol=1e-5)


def test_two_steps_by_hand():
  result = vtrace.vtrace(
    values=[[1.0], [2.0], [4.0]],
    rewards=[[1.0], [3.0]],
    discounts=[[0.5], [0.5]],
    log_rhos=np.log([[2.0], [0.5]]),
    mask=[[True], [True]],
    lambda_=1.0,
    rho_clip=1.0,
    c_clip=1.0,
    policy_rho_clip=1.0,
    advantage_lambda=1.0,
  )
  # e_1 = 0.5 (3 + 2 - 2) = 1.5; e_0 = 1 (1 + 1 - 1) + 0.5 * 1 * 1.5 = 1.75.
  np.testing.assert_allclose(result.targets[:, 0], [2.75, 3.5], rtol=1e-6)
  # A_0 = 1 + 0.5 * 3.5 - 1; A_1 = 0.5 (3 + 0.5 * 4 - 2).
  np.testing.assert_allclose(result.advantages[:, 0], [1.75, 1.5], rtol=1e-6)


def test_on_policy_with_lambda_1_is_the_n_step_return():
  x = _random(num_steps=9)
  x['log_rhos'] = np.zeros_like(x['log_rhos'])
  targets = vtrace.vtrace(**x, **_ON_POLICY).targets
  del x['log_rhos']
  np.testing.assert_allclose(targets, nstep.nstep_returns(**x, n=9), rtol=1e-5, atol=1e-5)


def test_two_episodes_in_one_trace_equal_the_two_apart():
  x = _random(num_steps=9, masked=False)
  x['mask'][4] = False  # row 4 is LAST with discount > 0: truncated
  x['discounts'][3] = 0.95
  whole = vtrace.vtrace(**x, **_CLIPS)
  first = {k: v[: 5 if k == 'values' else 4] for k, v in x.items()}
  second = {k: v[5:] for k, v in x.items()}
  for rows, part in ((slice(0, 4), first), (slice(5, 9), second)):
    apart = vtrace.vtrace(**part, **_CLIPS)
    np.testing.assert_array_equal(whole.targets[rows], apart.targets)
    np.testing.assert_array_equal(whole.advantages[rows], apart.advantages)


def test_truncation_bootstraps_from_its_own_value_and_termination_does_not():
  x = {
    'values': np.float32([[1.0], [5.0], [100.0]]),
    'rewards': np.float32([[2.0], [50.0]]),
    'log_rhos': np.zeros((2, 1), np.float32),
    'mask': np.array([[True], [False]]),
  }
  truncated = vtrace.vtrace(**x, discounts=np.float32([[0.9], [0.9]]), **_ON_POLICY)
  np.testing.assert_allclose(truncated.targets[:, 0], [2.0 + 0.9 * 5.0, 5.0])
  terminated = vtrace.vtrace(**x, discounts=np.float32([[0.0], [0.9]]), **_ON_POLICY)
  np.testing.assert_allclose(terminated.targets[:, 0], [2.0, 5.0])


def test_masked_inputs_may_be_nan():
  x = _random()
  clean = vtrace.vtrace(**x, **_CLIPS)
  for name in ('rewards', 'discounts', 'log_rhos'):
    x[name] = np.where(x['mask'], x[name], np.nan)
  poisoned = vtrace.vtrace(**x, **_CLIPS)
  np.testing.assert_array_equal(poisoned.targets, clean.targets)
  np.testing.assert_array_equal(poisoned.advantages, clean.advantages)


def test_no_gradient_passes():
  x = {k: tf.constant(v) for k, v in _random().items()}
  with tf.GradientTape() as tape:
    tape.watch([x['values'], x['log_rhos']])
    result = vtrace.vtrace(**x, **_CLIPS)
    total = tf.reduce_sum(result.targets) + tf.reduce_sum(result.advantages)
  assert tape.gradient(total, [x['values'], x['log_rhos']]) == [None, None]


def test_wrong_shapes_are_named():
  x = _random()
  with pytest.raises(ValueError, match='rewards has shape .*one row less than values'):
    vtrace.vtrace(**{**x, 'rewards': x['rewards'][:, :1]}, **_CLIPS)
  with pytest.raises(ValueError, match='values has shape'):
    vtrace.vtrace(**{**x, 'values': x['values'][:, 0]}, **_CLIPS)
