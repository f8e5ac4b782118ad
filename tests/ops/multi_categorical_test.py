"""Several choices of different sizes, compared with each choice alone in numpy."""

import itertools

import numpy as np
import pytest
from scipy import stats
import tensorflow as tf

from seed_acme.ops import distributions
from seed_acme.ops import multi_categorical

_NVEC = (2, 5, 1, 3)
_MULTI = multi_categorical.MultiCategorical(_NVEC)


def _params(num_rows=6, seed=0):
  return np.random.default_rng(seed).normal(size=(num_rows, sum(_NVEC))).astype(np.float32)


def _probabilities(params):
  """Returns `[rows, n_i]` for each choice."""
  pieces = np.split(np.exp(params.astype(np.float64)), np.cumsum(_NVEC)[:-1], axis=-1)
  return [piece / piece.sum(-1, keepdims=True) for piece in pieces]


def test_log_prob_entropy_and_kl_are_sums_over_the_choices():
  params, other = _params(), _params(seed=1)
  p, q = _probabilities(params), _probabilities(other)
  actions = np.stack([np.arange(6) % n for n in _NVEC], axis=-1)
  log_probs = sum(np.log(p_i[np.arange(6), a_i]) for p_i, a_i in zip(p, actions.T))
  np.testing.assert_allclose(_MULTI.log_prob(params, actions), log_probs, rtol=1e-5)
  np.testing.assert_allclose(
    _MULTI.entropy(params), sum(stats.entropy(p_i, axis=-1) for p_i in p), rtol=1e-5
  )
  np.testing.assert_allclose(
    _MULTI.kl(params, other),
    sum(stats.entropy(p_i, q_i, axis=-1) for p_i, q_i in zip(p, q)),
    rtol=1e-5,
  )
  np.testing.assert_array_equal(
    _MULTI.mode(params), np.stack([p_i.argmax(-1) for p_i in p], axis=-1)
  )


def test_the_probabilities_of_all_actions_sum_to_1():
  actions = list(itertools.product(*map(range, _NVEC)))
  params = np.tile(_params(1), (len(actions), 1))
  assert np.exp(_MULTI.log_prob(params, actions)).sum() == pytest.approx(1, abs=1e-5)


def test_every_choice_is_sampled_with_its_own_uniform():
  params = _params()
  uniforms = np.random.default_rng(2).random((6, 4), np.float32)
  actions = _MULTI.sample(params, uniforms)
  assert actions.dtype == tf.int32
  pieces = np.split(params, np.cumsum(_NVEC)[:-1], axis=-1)
  for i, piece in enumerate(pieces):
    alone = distributions.Categorical(_NVEC[i]).sample(piece, uniforms[:, i : i + 1])
    np.testing.assert_array_equal(actions[:, i], alone)


def test_a_sample_comes_with_its_log_probability():
  params, uniforms = _params(), np.random.default_rng(2).random((6, 4), np.float32)
  actions, log_prob = _MULTI.sample_with_log_prob(params, uniforms)
  np.testing.assert_array_equal(actions, _MULTI.sample(params, uniforms))
  expected = sum(
    np.log(p[np.arange(6), a]) for p, a in zip(_probabilities(params), actions.numpy().T)
  )
  np.testing.assert_allclose(log_prob, expected, rtol=1e-5)
  assert not _MULTI.is_reparametrizable


def test_sampling_frequencies_over_a_grid_are_the_probabilities():
  grid = (np.arange(1000, dtype=np.float32) + 0.5) / 1000
  params = _params(1)
  actions = _MULTI.sample(np.tile(params, (1000, 1)), np.repeat(grid[:, None], 4, axis=1)).numpy()
  for i, p in enumerate(_probabilities(params)):
    frequencies = np.bincount(actions[:, i], minlength=_NVEC[i]) / 1000
    np.testing.assert_allclose(frequencies, p[0], atol=1.1e-3)


@pytest.mark.parametrize('uniform', [0.0, 1.0])
def test_no_alternative_that_does_not_exist_is_taken(uniform):
  params = np.full((1, sum(_NVEC)), -1e9, np.float32)
  actions = _MULTI.sample(params, np.full((1, 4), uniform, np.float32)).numpy()[0]
  np.testing.assert_array_equal(actions, (np.array(_NVEC) - 1) * int(uniform))


def test_gradients_are_finite_and_those_of_the_parts():
  params = tf.constant(_params(2))
  with tf.GradientTape(persistent=True) as tape:
    tape.watch(params)
    entropy, kl = _MULTI.entropy(params), _MULTI.kl(params, _params(2, seed=1))
    log_prob = _MULTI.log_prob(params, [[1, 4, 0, 2]] * 2)
  onehot = np.float32([0, 1] + [0, 0, 0, 0, 1] + [1] + [0, 0, 1])
  expected = onehot - np.concatenate(_probabilities(params.numpy()), axis=-1)
  np.testing.assert_allclose(tape.gradient(log_prob, params), expected, atol=1e-6)
  for number in (entropy, kl):
    assert np.isfinite(tape.gradient(number, params)).all()


def test_sizes_and_wrong_shapes():
  assert (_MULTI.num_params, _MULTI.num_uniforms) == (11, 4)
  np.testing.assert_array_equal(_MULTI.is_std, [False] * 11)
  with pytest.raises(ValueError, match='actions have shape'):
    _MULTI.log_prob(_params(), np.zeros((6, 3), int))
  with pytest.raises(ValueError, match='uniforms have shape'):
    _MULTI.sample(_params(), np.zeros((6, 3)))
  with pytest.raises(ValueError, match=r'params have shape .6, 10.'):
    _MULTI.entropy(_params()[:, 1:])
  with pytest.raises(ValueError, match='other_params have'):
    _MULTI.kl(_params(), _params(5))
  for nvec in ([], [2, 0]):
    with pytest.raises(ValueError, match='nvec'):
      multi_categorical.MultiCategorical(nvec)
