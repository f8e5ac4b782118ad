"""Our distributions compared with TensorFlow Probability's, and the reasons not to use those.

Each reason that a docstring in `ops` gives is tested here: if a test of `reasons` fails, TFP has
changed, and its distribution may be usable now.
"""

import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme.ops import distributions
from seed_acme.ops import multi_categorical
from seed_acme.ops import normal
from seed_acme.ops import straight_through
from seed_acme.ops import structured
from seed_acme.ops import tanh_normal
from seed_acme.ops import uniforms

_ROWS = 5


@pytest.fixture(scope='module', autouse=True)
def _tfp():
  """Loads the library here, because it takes long and every process of a test run collects this
  file."""
  global tfp, tfb, tfd
  tfp = pytest.importorskip('tensorflow_probability')
  tfb, tfd = tfp.bijectors, tfp.distributions


def _choices(params):
  return tfd.Blockwise([tfd.Categorical(logits=x) for x in tf.split(params, [2, 3], axis=-1)])


def _normals(params):
  mean, log_std = tf.split(params, 2, axis=-1)
  return tfd.Normal(mean, tf.exp(log_std))


def _tanh_normals(params):
  return tfd.Independent(tfd.TransformedDistribution(_normals(params), tfb.Tanh()), 1)


def _joint(params):
  return tfd.JointDistributionSequential(
    [tfd.Categorical(logits=params[..., :3]), _tanh_normals(params[..., 3:])]
  )


_CASES = {
  'categorical': (distributions.Categorical(4), lambda x: tfd.Categorical(logits=x)),
  'multi_categorical': (multi_categorical.MultiCategorical([2, 3]), _choices),
  'normal': (normal.DiagonalNormal(2, tf.exp), lambda x: tfd.Independent(_normals(x), 1)),
  'clipped_normal': (normal.ClippedNormal(2, tf.exp), lambda x: tfd.Independent(_normals(x), 1)),
  'tanh_normal': (tanh_normal.TanhNormal(2, tf.exp), _tanh_normals),
  'joint': (
    structured.Joint([distributions.Categorical(3), tanh_normal.TanhNormal(2, tf.exp)]),
    _joint,
  ),
  'reshaped': (
    structured.Reshaped(normal.DiagonalNormal(4, tf.exp), (2, 2)),
    lambda x: tfd.TransformedDistribution(
      tfd.Independent(_normals(x), 1), tfb.Reshape([2, 2], event_shape_in=[4])
    ),
  ),
}


_OF_TANH = ('tanh_normal', 'joint')


def _within_bounds(actions):
  return tf.clip_by_value(actions, -0.9, 0.9) if actions.dtype.is_floating else actions


def _params(distribution, seed):
  shape = (_ROWS, distribution.num_params)
  return tf.constant(np.random.default_rng(seed).normal(size=shape), tf.float32)


@pytest.mark.slow
@pytest.mark.parametrize('name', _CASES)
def test_densities_and_divergences_are_theirs(name):
  ours, make = _CASES[name]
  params, others = _params(ours, 0), _params(ours, 1)
  drawn = uniforms.draw([1, 2], [_ROWS, ours.num_uniforms])
  actions = ours.sample(params, drawn)
  if name in _OF_TANH:  # TFP inverts the tanh, which loses digits near the bounds
    actions = tree.map_structure(_within_bounds, actions)
  theirs = make(params)
  np.testing.assert_allclose(
    ours.log_prob(params, actions), theirs.log_prob(actions), rtol=1e-4, atol=1e-5
  )
  np.testing.assert_allclose(
    ours.kl(params, others), theirs.kl_divergence(make(others)), rtol=1e-4, atol=1e-5
  )
  if name not in _OF_TANH:
    np.testing.assert_allclose(ours.entropy(params), theirs.entropy(), rtol=1e-4)


@pytest.mark.parametrize('name', ['normal', 'tanh_normal'])
def test_quantiles_are_theirs_between_their_ends(name):
  ours, make = _CASES[name]
  params, drawn = _params(ours, 0), uniforms.draw([1, 2], [_ROWS, 2])
  np.testing.assert_allclose(
    ours.sample(params, drawn), make(params).distribution.quantile(drawn), rtol=1e-4, atol=1e-5
  )


# Methods that TFP lacks, by distribution: each is needed to act or to learn.
_ABSENT = {
  'categorical': ['quantile'],
  'multi_categorical': ['quantile', 'mode'],
  'normal': ['quantile'],  # for the vector; `Normal`, below, has one for each number
  'tanh_normal': ['entropy', 'mode'],
  'joint': ['quantile'],
  'reshaped': ['quantile'],
}


@pytest.mark.parametrize('name', _ABSENT)
def test_reasons_what_they_do_not_have(name):
  ours, make = _CASES[name]
  theirs = make(_params(ours, 0))
  for method in _ABSENT[name]:
    with pytest.raises((NotImplementedError, AttributeError)):
      getattr(theirs, method)(*[0.5] * (method == 'quantile'))


def test_reasons_a_row_draws_by_its_place_in_the_batch():
  """TFP's samples depend on the seed and the row's place; ours take random numbers per row."""
  ours, make = _CASES['normal']
  params, seed = tf.tile(_params(ours, 0)[:1], [2, 1]), tf.constant([1, 2])
  first, second = make(params).sample(seed=seed).numpy()
  assert (first != second).any()
  drawn = tf.fill([2, 2], 0.3)
  first, second = ours.sample(params, drawn).numpy()
  np.testing.assert_array_equal(first, second)


def test_reasons_nothing_is_finite_at_the_bounds():
  ours, make = _CASES['tanh_normal']
  params, actions = tf.zeros([1, 4]), tf.constant([[1.0, 0.0]])
  assert np.isfinite(ours.log_prob(params, actions)).all()
  assert not np.isfinite(make(params).log_prob(actions)).any()
  ours, make = _CASES['normal']
  assert np.isfinite(ours.sample(params, [[0.0, 1.0]])).all()
  assert np.isinf(make(params).distribution.quantile([[0.0, 1.0]])).all()


def test_reasons_a_point_mass_has_a_log_probability():
  """A policy gradient would run on zeros, whereas ours refuses."""
  point = tfd.VectorDeterministic(tf.zeros([1, 2]))
  assert point.log_prob(tf.zeros([1, 2])).numpy() == 0


def test_reasons_their_clip_rounds_the_bound_away():
  x = tf.constant(3e38)
  assert straight_through.clip(x, -15.0, 15.0).numpy() == 15
  assert tfp.math.clip_by_value_preserve_gradient(x, -15.0, 15.0).numpy() == 0


@pytest.mark.slow
def test_reasons_their_uniforms_are_others_under_xla():
  def both(draw):
    return [
      tf.function(draw, jit_compile=xla)(tf.constant([-3, 5])).numpy() for xla in (None, True)
    ]

  plain, compiled = both(lambda key: tfp.distributions.Uniform().sample(100, seed=key))
  assert (plain != compiled).any()
  np.testing.assert_array_equal(*both(lambda key: uniforms.draw(key, [100])))
