"""Distributions for action specifications, and the contract that all of them keep."""

from typing import Any, NamedTuple

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.ops import action_distributions
from seed_acme.ops import deterministic_tanh
from seed_acme.ops import distributions
from seed_acme.ops import multi_categorical
from seed_acme.ops import normal
from seed_acme.ops import std_functions
from seed_acme.ops import structured
from seed_acme.ops import tanh_normal

_STD = std_functions.softplus(std_at_zero=0.5, min_std=1e-3)
_KINDS = ('tanh_normal', 'clipped_normal', 'deterministic_tanh')


class _Action(NamedTuple):
  move: Any
  tools: Any


def _box(*shape, dtype=np.float32):
  return specs.BoundedArray(shape, dtype, -1, 1)


_SPECS = {
  'discrete': specs.DiscreteArray(5),
  'discrete_int64': specs.DiscreteArray(3, np.int64),
  'scalar_integer': specs.BoundedArray((), np.int32, 0, 3),
  'multi_discrete': specs.BoundedArray((3,), np.int64, 0, [1, 4, 2]),
  'multi_binary': specs.BoundedArray((2, 3), np.int8, 0, 1),
  'vector': _box(3),
  'float64': _box(2, dtype=np.float64),
  'matrix': _box(2, 3),
  'scalar': _box(),
  'tuple': (_box(2), specs.BoundedArray((2,), np.int32, 0, [3, 1])),
  'nested': _Action(_box(2, 2), {'b': specs.DiscreteArray(4), 'a': _box()}),
}
_EVERY = pytest.mark.parametrize('spec, kind', [(spec, kind) for spec in _SPECS for kind in _KINDS])


def _make(spec, kind='tanh_normal'):
  return action_distributions.make(_SPECS[spec], continuous=kind, std=_STD)


def _params(distribution, *leading, seed=0):
  random = np.random.default_rng(seed)
  return random.normal(0, 2, (*leading, distribution.num_params)).astype(np.float32)


@pytest.mark.parametrize(
  'spec, num_params, num_uniforms',
  [
    ('discrete', 5, 1),
    ('discrete_int64', 3, 1),
    ('scalar_integer', 4, 1),
    ('multi_discrete', 2 + 5 + 3, 3),
    ('multi_binary', 12, 6),
    ('vector', 6, 3),
    ('float64', 4, 2),
    ('matrix', 12, 6),
    ('scalar', 2, 1),
    ('tuple', 4 + 6, 4),
    ('nested', 8 + 2 + 4, 6),
  ],
)
def test_sizes(spec, num_params, num_uniforms):
  distribution = _make(spec)
  assert (distribution.num_params, distribution.num_uniforms) == (num_params, num_uniforms)
  assert distribution.is_std.shape == (num_params,)


@pytest.mark.parametrize(
  'spec, expected',
  [
    ('discrete', distributions.Categorical),
    ('scalar_integer', distributions.Categorical),
    ('multi_discrete', multi_categorical.MultiCategorical),
    ('multi_binary', structured.Reshaped),
    ('matrix', structured.Reshaped),
    ('vector', tanh_normal.TanhNormal),
    ('tuple', structured.Joint),
  ],
)
def test_kinds(spec, expected):
  assert type(_make(spec)) is expected


def test_the_configuration_chooses_the_continuous_one():
  for kind, expected in zip(
    _KINDS, (tanh_normal.TanhNormal, normal.ClippedNormal, deterministic_tanh.DeterministicTanh)
  ):
    assert type(_make('vector', kind)) is expected


def test_the_std_function_and_the_arities_are_used():
  std = np.log1p(np.exp(1 + np.log(np.expm1(0.5 - 1e-3)))) + 1e-3
  params = np.float32([[0, 0, 0, 1, 1, 1]])
  expected = 3 * (np.log(std) + 0.5 * np.log(2 * np.pi * np.e))
  entropy = _make('vector', 'clipped_normal').entropy(params)
  np.testing.assert_allclose(entropy, [expected], rtol=1e-5)
  uniform_policy = _make('multi_discrete').entropy(np.zeros((1, 10)))
  np.testing.assert_allclose(uniform_policy, [np.log(2 * 5 * 3)], rtol=1e-5)


def test_is_std_marks_the_second_half_of_each_continuous_leaf():
  np.testing.assert_array_equal(
    np.flatnonzero(_make('nested').is_std), [4, 5, 6, 7, 9]
  )  # move; a; b has none
  assert not _make('nested', 'deterministic_tanh').is_std.any()


@_EVERY
def test_there_are_as_many_deviations_as_params_of_them(spec, kind):
  distribution = _make(spec, kind)
  std = distribution.std(np.zeros((2, distribution.num_params), np.float32))
  number = np.count_nonzero(distribution.is_std)
  assert (std is None) if number == 0 else std.shape == (2, number)


@_EVERY
def test_uniforms_are_counted_without_a_configuration(spec, kind):
  assert action_distributions.num_uniforms(_SPECS[spec]) == _make(spec, kind).num_uniforms


@_EVERY
@pytest.mark.parametrize('uniform', [None, 0.0, 1.0])
def test_actions_fit_the_specification_after_a_cast(spec, kind, uniform):
  distribution = _make(spec, kind)
  params = _params(distribution, 50)
  uniforms = np.full((50, distribution.num_uniforms), uniform, np.float32)
  if uniform is None:
    uniforms = np.random.default_rng(1).random(uniforms.shape, np.float32)
  tree.assert_same_structure(distribution.mode(params), _SPECS[spec])
  for actions in (distribution.sample(params, uniforms), distribution.mode(params)):
    for leaf_spec, leaf in zip(tree.flatten(_SPECS[spec]), tree.flatten(actions)):
      for row in tf.cast(leaf, leaf_spec.dtype).numpy():
        leaf_spec.validate(row)


@pytest.mark.slow
@_EVERY
def test_unknown_leading_axes_change_nothing(spec, kind):
  distribution = _make(spec, kind)
  params = _params(distribution, 3, 2)
  uniforms = np.random.default_rng(1).random((3, 2, distribution.num_uniforms), np.float32)
  signature = [
    tf.TensorSpec([None, None, n], tf.float32)
    for n in (distribution.num_params, distribution.num_uniforms)
  ]

  def numbers(params, uniforms):
    actions = distribution.sample(params, uniforms)
    results = [distribution.entropy(params), *tree.flatten(actions)]
    if kind != 'deterministic_tanh' or spec.split('_')[0] in ('discrete', 'scalar_integer'):
      results.append(distribution.log_prob(params, actions))
    return results

  traced = tf.function(numbers, input_signature=signature, autograph=False)(params, uniforms)
  for result, expected in zip(traced, numbers(params, uniforms)):
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
  shapes = [x.shape for x in traced]
  assert shapes[0] == (3, 2) and shapes[-1][:2] == (3, 2)


@pytest.mark.parametrize('kind', _KINDS[:2])
@pytest.mark.parametrize('spec', _SPECS)
def test_a_sample_comes_with_its_log_probability(spec, kind):
  distribution = _make(spec, kind)
  params = _params(distribution, 20) / 4
  uniforms = np.random.default_rng(1).random((20, distribution.num_uniforms), np.float32)
  actions, log_prob = distribution.sample_with_log_prob(params, uniforms)
  tree.map_structure(np.testing.assert_array_equal, actions, distribution.sample(params, uniforms))
  np.testing.assert_allclose(log_prob, distribution.log_prob(params, actions), rtol=1e-3, atol=1e-3)


@_EVERY
def test_a_sample_has_a_gradient_where_this_is_said(spec, kind):
  distribution = _make(spec, kind)
  params = tf.constant(_params(distribution, 20))
  uniforms = np.random.default_rng(1).random((20, distribution.num_uniforms), np.float32)
  with tf.GradientTape(persistent=True) as tape:
    tape.watch(params)
    actions = tree.flatten(distribution.sample(params, uniforms))
    leaves = [tf.cast(leaf, tf.float32) for leaf in actions]
  gradients = [tape.gradient(leaf, params) for leaf in leaves]
  assert distribution.is_reparametrizable == all(x is not None for x in gradients)


@pytest.mark.parametrize('spec', _SPECS)
@pytest.mark.parametrize('uniform', [None, 0.0, 1.0])
def test_uniform_actions_are_of_the_kind_of_samples(spec, uniform):
  distribution = _make(spec)
  uniforms = np.full((50, distribution.num_uniforms), uniform, np.float32)
  if uniform is None:
    uniforms = np.random.default_rng(1).random(uniforms.shape, np.float32)
  actions = action_distributions.uniform_actions(_SPECS[spec], uniforms)
  samples = distribution.sample(_params(distribution, 50), uniforms)
  tree.assert_same_structure(actions, samples)
  for leaf_spec, leaf, sample in zip(*map(tree.flatten, (_SPECS[spec], actions, samples))):
    assert (leaf.shape, leaf.dtype) == (sample.shape, sample.dtype)
    for row in tf.cast(leaf, leaf_spec.dtype).numpy():
      leaf_spec.validate(row)


def test_uniform_actions_are_even_and_each_of_its_own_uniform():
  grid = ((np.arange(1200) + 0.5) / 1200).astype(np.float32)
  uniforms = np.zeros((6, 1200, 6), np.float32)
  uniforms[np.arange(6), :, np.arange(6)] = grid
  actions = action_distributions.uniform_actions(_SPECS['nested'], uniforms)
  moves = actions.move.numpy()[np.arange(4), :, [0, 0, 1, 1], [0, 1, 0, 1]]
  np.testing.assert_allclose(moves, np.tile(2 * grid - 1, (4, 1)), atol=1e-6)
  np.testing.assert_allclose(actions.tools['a'][4], 2 * grid - 1, atol=1e-6)
  np.testing.assert_array_equal(np.bincount(actions.tools['b'][5]), [300] * 4)
  arities = action_distributions.uniform_actions(
    _SPECS['multi_discrete'], np.repeat(grid[:, None], 3, axis=1)
  ).numpy()
  for choice, n in zip(arities.T, (2, 5, 3)):
    np.testing.assert_array_equal(np.bincount(choice), [1200 // n] * n)


def test_uniform_actions_of_another_shape_are_refused():
  with pytest.raises(ValueError, match=r'uniforms have shape .5, 2.*\[..., 3\]'):
    action_distributions.uniform_actions(_SPECS['vector'], np.zeros((5, 2)))


@pytest.mark.parametrize('kind', _KINDS[:2])
@pytest.mark.parametrize('spec', _SPECS)
def test_kl_is_0_to_itself_and_positive_to_another(spec, kind):
  distribution = _make(spec, kind)
  params, other = _params(distribution, 20), _params(distribution, 20, seed=1)
  np.testing.assert_allclose(distribution.kl(params, params), np.zeros(20), atol=1e-6)
  assert (distribution.kl(params, other).numpy() > 0.01).all()


@pytest.mark.parametrize('kind', _KINDS[:2])
@pytest.mark.parametrize('spec', _SPECS)
def test_every_param_gets_a_finite_gradient(spec, kind):
  distribution = _make(spec, kind)
  params = tf.constant(_params(distribution, 20))
  actions = distribution.sample(
    params, np.random.default_rng(1).random((20, distribution.num_uniforms), np.float32)
  )
  with tf.GradientTape() as tape:
    tape.watch(params)
    log_probs = distribution.log_prob(params, actions)
  gradient = tape.gradient(log_probs, params).numpy()
  assert np.isfinite(gradient).all()
  assert (np.abs(gradient).sum(0) > 0).all()


@pytest.mark.parametrize(
  'spec, words',
  [
    (
      specs.BoundedArray((2,), np.float32, -2, 2),
      r'minimum \[-2.0\] and maximum \[2.0\].*rescale the actions to \[-1, 1\]',
    ),
    (specs.BoundedArray((2,), np.float32, [-1, -0.5], 1), r'minimum \[-1.0, -0.5\]'),
    (specs.BoundedArray((2,), np.float32, -1, [1, 0.5]), r'maximum \[0.5, 1.0\]'),
    (specs.BoundedArray((2,), np.float32, -np.inf, np.inf), 'give it bounds'),
    (specs.Array((2,), np.float32), 'give it bounds'),
    (specs.Array((), np.int32), 'give it bounds'),
    (specs.StringArray(()), 'must be an integer or float array'),
    (specs.BoundedArray((2,), bool, False, True), 'must be an integer or float array'),
    (specs.BoundedArray((2,), np.int32, 1, 3), r'minimum \[1\].*start at 0'),
    (specs.BoundedArray((2,), np.int32, [0, -1], 3), r'minimum \[-1, 0\].*start at 0'),
    (specs.BoundedArray((0,), np.float32, -1, 1), 'no number in it'),
    (None, 'must be an integer or float array'),
    ((), 'no action'),
    ({'arm': {'left': specs.BoundedArray((2,), np.float32, 0, 1)}}, 'the action arm/left has'),
  ],
)
def test_what_does_not_fit_is_refused_with_the_fix(spec, words):
  calls = (
    lambda: action_distributions.make(spec, continuous='tanh_normal', std=_STD),
    lambda: action_distributions.num_uniforms(spec),
  )
  for call in calls:
    with pytest.raises(types.UserError, match=words) as error:
      call()
    assert len(str(error.value).splitlines()) <= 4


def test_an_unknown_kind_is_answered_with_the_known_ones():
  with pytest.raises(types.UserError, match="'beta'.*'tanh_normal', 'clipped_normal'"):
    action_distributions.make(_SPECS['discrete'], continuous='beta', std=_STD)
