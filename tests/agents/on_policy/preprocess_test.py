"""The preprocessing of advantages before the policy loss: normalisation, offset, choice."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme.agents.on_policy import advantages as advantages_lib
from seed_acme.agents.on_policy import algorithm as algorithm_lib
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import resolve

_ADVANTAGES = np.float32([4.0, -1.0, 2.0, -3.0, 0.5, 7.0])
_MASK = np.array([True, True, False, True, True, False])


def _run(config, advantages=_ADVANTAGES, mask=_MASK):
  """Advantages and mask as the policy loss gets them."""
  played = algorithm_lib.Played(None, None, tf.constant(advantages), tf.constant(mask), None)
  seen = []

  def policy_loss(played):
    seen.append(played)
    return algorithm_lib.PolicyLoss(tf.zeros([]))

  advantages_lib.with_preprocessed(
    policy_loss,
    played,
    normalize_advantages=config.normalize_advantages,
    advantage_offset=config.advantage_offset,
    keep_advantages=config.keep_advantages,
    keep_form=config.keep_form,
  )
  [played] = seen
  return played.advantages.numpy(), played.mask.numpy()


@pytest.mark.parametrize('value, number', [(0.1, 60), (7.7, 7)])
def test_equal_advantages_become_0(make_config, value, number):
  """The rounding of their mean is divided by next to nothing."""
  equal = np.full(number, value, np.float32)
  advantages, _ = _run(make_config(normalize_advantages=True), equal, np.ones(number, bool))
  np.testing.assert_allclose(advantages, 0, atol=1e-3)


def test_off_by_default(make_config):
  advantages, mask = _run(make_config())
  np.testing.assert_array_equal(advantages, _ADVANTAGES)
  np.testing.assert_array_equal(mask, _MASK)


def test_normalisation_is_over_the_unmasked_ones(make_config):
  advantages, mask = _run(make_config(normalize_advantages=True))
  kept = _ADVANTAGES[_MASK].astype(np.float64)
  np.testing.assert_allclose(advantages[_MASK], (kept - kept.mean()) / kept.std(), rtol=1e-5)
  assert not advantages[~_MASK].any()
  np.testing.assert_array_equal(mask, _MASK)


def test_normalisation_of_equal_advantages_is_0_and_not_infinite(make_config):
  advantages, _ = _run(make_config(normalize_advantages=True), np.full(6, 3.25, np.float32))
  np.testing.assert_array_equal(advantages, np.zeros(6))


def test_the_offset_comes_after_the_normalisation(make_config):
  plain, _ = _run(make_config(normalize_advantages=True))
  shifted, _ = _run(make_config(normalize_advantages=True, advantage_offset=0.75))
  np.testing.assert_allclose(shifted[_MASK], plain[_MASK] + 0.75, rtol=1e-6)


@pytest.mark.parametrize('offset, expected', [(0.0, [0, 4]), (1.5, [0, 1, 4]), (-0.5, [0])])
def test_positive_ones_are_those_above_0_with_the_offset(offset, expected, make_config):
  """0.5 - 0.5 is not positive."""
  _, mask = _run(make_config(keep_advantages='positive', advantage_offset=offset))
  np.testing.assert_array_equal(np.flatnonzero(mask), expected)


def test_the_top_half_is_of_the_unmasked_ones(make_config):
  _, mask = _run(make_config(keep_advantages='top_half', normalize_advantages=True))
  np.testing.assert_array_equal(np.flatnonzero(mask), [0, 4])


def _policy_loss(config, log_prob, advantages):
  log_prob, advantages, mask = map(tf.constant, (log_prob, advantages, _MASK))
  played = algorithm_lib.Played(log_prob, log_prob, advantages, mask, None)
  return loss_lib.policy_loss(resolve.algorithm(config), played).loss


@pytest.mark.parametrize('keep, kept', [('all', [0, 1, 3, 4]), ('positive', [0, 4])])
def test_the_loss_is_the_mean_over_those_that_are_kept(keep, kept, make_config):
  """The mean follows VPG's definition and is over those alone; the others do not count as 0."""
  config = make_config(policy_loss='vpg', keep_advantages=keep)
  log_prob = np.float32([-1.0, -2.0, -3.0, -0.5, -0.25, -9.0])
  loss = _policy_loss(config, log_prob, _ADVANTAGES)
  np.testing.assert_allclose(loss, -np.mean((_ADVANTAGES * log_prob)[kept]), rtol=1e-6)


def test_nothing_positive_is_0(make_config):
  config = make_config(policy_loss='vpg', keep_advantages='positive')
  assert _policy_loss(config, _ADVANTAGES, -np.abs(_ADVANTAGES)) == 0.0


@pytest.mark.parametrize(
  'form, kept, divisor', [('shifted', [0, 1, 4], 3), ('original', [0, 4], 4)]
)
def test_the_original_chooses_before_the_offset_and_takes_the_mean_over_all(
  form, kept, divisor, make_config
):
  """SEED RL's `AdvantagePreprocessor` multiplies by a mask before averaging."""
  config = make_config(
    policy_loss='vpg', keep_advantages='positive', advantage_offset=1.5, keep_form=form
  )
  log_prob = np.float32([-1.0, -2.0, -3.0, -0.5, -0.25, -9.0])
  loss = _policy_loss(config, log_prob, _ADVANTAGES)
  expected = -np.sum(((_ADVANTAGES + 1.5) * log_prob)[kept]) / divisor
  np.testing.assert_allclose(loss, expected, rtol=1e-6)


@pytest.mark.parametrize('name', ['vpg', 'ppo', 'vtrace', 'awr', 'behaviour_cloning'])
def test_the_forms_differ_by_the_share_that_is_kept(name, make_config):
  log_prob, log_ratio = (tf.random.stateless_normal([6], (seed, 0)) for seed in (1, 2))
  losses = [
    loss_lib.policy_loss(
      resolve.algorithm(make_config(policy_loss=name, keep_advantages='top_half', keep_form=form)),
      algorithm_lib.Played(log_prob, log_ratio, tf.constant(_ADVANTAGES), tf.constant(_MASK), None),
    ).loss
    for form in ('shifted', 'original')
  ]
  np.testing.assert_allclose(losses[1], losses[0] * 2 / 4, rtol=1e-6)
