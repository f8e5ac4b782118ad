"""Joint and reshaped distributions compared with their separate parts."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme.ops import distributions
from seed_acme.ops import multi_categorical
from seed_acme.ops import structured
from seed_acme.ops import tanh_normal

_CHOICE = distributions.Categorical(3)
_KEYS = multi_categorical.MultiCategorical([2, 4])
_ARM = tanh_normal.TanhNormal(2, tf.exp)


class _Action(NamedTuple):
  keys: Any
  rest: Any


# dm-tree's order: `keys`, then the dict by sorted key, `arm` before `choice`.
_JOINT = structured.Joint(_Action(_KEYS, {'choice': _CHOICE, 'arm': _ARM}))


def _random(*shape, seed=0):
  return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _split(params):
  return params[..., :6], params[..., 6:10], params[..., 10:]


def _uniforms(num_rows):
  return np.random.default_rng(3).random((num_rows, 5), np.float32)


def test_samples_and_modes_are_those_of_the_parts():
  params, uniforms = _random(8, 13), _uniforms(8)
  keys, arm, choice = _split(params)
  actions, modes = _JOINT.sample(params, uniforms), _JOINT.mode(params)
  expected = _Action(
    _KEYS.sample(keys, uniforms[:, :2]),
    {'arm': _ARM.sample(arm, uniforms[:, 2:4]), 'choice': _CHOICE.sample(choice, uniforms[:, 4:])},
  )
  tree.assert_same_structure(actions, expected)
  tree.map_structure(np.testing.assert_array_equal, actions, expected)
  expected = _Action(_KEYS.mode(keys), {'arm': _ARM.mode(arm), 'choice': _CHOICE.mode(choice)})
  tree.map_structure(np.testing.assert_array_equal, modes, expected)
  assert [x.dtype for x in tree.flatten(actions)] == [tf.int32, tf.float32, tf.int32]


def test_log_prob_entropy_and_kl_are_sums():
  params, other = _random(8, 13), _random(8, 13, seed=1)
  actions = _JOINT.sample(params, _uniforms(8))
  (keys, arm, choice), others = _split(params), _split(other)
  np.testing.assert_allclose(
    _JOINT.log_prob(params, actions),
    _KEYS.log_prob(keys, actions.keys)
    + _ARM.log_prob(arm, actions.rest['arm'])
    + _CHOICE.log_prob(choice, actions.rest['choice']),
    rtol=1e-5,
  )
  np.testing.assert_allclose(
    _JOINT.entropy(params),
    _KEYS.entropy(keys) + _ARM.entropy(arm) + _CHOICE.entropy(choice),
    rtol=1e-5,
  )
  np.testing.assert_allclose(
    _JOINT.kl(params, other),
    sum(part.kl(p, q) for part, p, q in zip((_KEYS, _ARM, _CHOICE), (keys, arm, choice), others)),
    rtol=1e-5,
  )


def test_a_sample_comes_with_the_sum_of_the_log_probabilities():
  params, uniforms = _random(8, 13), _uniforms(8)
  actions, log_prob = _JOINT.sample_with_log_prob(params, uniforms)
  tree.map_structure(np.testing.assert_array_equal, actions, _JOINT.sample(params, uniforms))
  keys, arm, choice = _split(params)
  expected = (
    _KEYS.log_prob(keys, actions.keys)
    + _CHOICE.log_prob(choice, actions.rest['choice'])
    + _ARM.sample_with_log_prob(arm, uniforms[:, 2:4])[1]
  )
  np.testing.assert_allclose(log_prob, expected, rtol=1e-5)


def test_standard_deviations_are_those_of_the_parts_that_have_any():
  params = _random(8, 13)
  _, arm, _ = _split(params)
  np.testing.assert_allclose(_JOINT.std(params), np.exp(arm[:, 2:]), rtol=1e-6)
  both = structured.Joint((_ARM, _ARM)).std(np.concatenate([arm, arm + 1], axis=-1))
  np.testing.assert_allclose(
    both, np.exp(np.concatenate([arm[:, 2:], arm[:, 2:] + 1], axis=-1)), rtol=1e-6
  )
  np.testing.assert_array_equal(structured.Reshaped(_ARM, (2, 1)).std(arm), _ARM.std(arm))
  assert structured.Joint((_KEYS, _CHOICE)).std(params[:, :9]) is None


def test_a_sample_has_a_gradient_where_that_of_every_part_has():
  assert not _JOINT.is_reparametrizable
  assert structured.Joint((_ARM, _ARM)).is_reparametrizable
  assert structured.Reshaped(_ARM, (2, 1)).is_reparametrizable
  assert not structured.Reshaped(_KEYS, (2, 1)).is_reparametrizable


def test_sizes_are_sums():
  assert (_JOINT.num_params, _JOINT.num_uniforms) == (13, 5)
  np.testing.assert_array_equal(np.flatnonzero(_JOINT.is_std), [8, 9])
  assert _JOINT.is_std.shape == (13,)


def test_wrong_actions_and_shapes_are_named():
  params = _random(2, 13)
  actions = _JOINT.mode(params)
  with pytest.raises(ValueError, match='params have shape'):
    _JOINT.log_prob(params[:, :12], actions)
  with pytest.raises(ValueError, match='uniforms have shape'):
    _JOINT.sample(params, np.zeros((2, 4)))
  with pytest.raises(ValueError, match='structure'):
    _JOINT.log_prob(params, actions._replace(rest={'choice': actions.rest['choice']}))
  with pytest.raises(ValueError, match='at least one'):
    structured.Joint(())


def test_reshaped_actions_are_the_vector_row_by_row():
  vectors = tanh_normal.TanhNormal(6, tf.exp)
  arrays = structured.Reshaped(vectors, (2, 3))
  params, uniforms = _random(4, 5, 12), np.random.default_rng(1).random((4, 5, 6), np.float32)
  actions = arrays.sample(params, uniforms)
  assert actions.shape == (4, 5, 2, 3)
  np.testing.assert_array_equal(actions[..., 1, 0], vectors.sample(params, uniforms)[..., 3])
  np.testing.assert_array_equal(arrays.mode(params)[..., 0, 2], vectors.mode(params)[..., 2])
  flat = actions.numpy().reshape(4, 5, 6)
  np.testing.assert_array_equal(arrays.log_prob(params, actions), vectors.log_prob(params, flat))
  np.testing.assert_array_equal(arrays.entropy(params), vectors.entropy(params))
  other = _random(4, 5, 12, seed=1)
  np.testing.assert_array_equal(arrays.kl(params, other), vectors.kl(params, other))
  drawn, log_prob = arrays.sample_with_log_prob(params, uniforms)
  np.testing.assert_array_equal(drawn, actions)
  np.testing.assert_array_equal(log_prob, vectors.sample_with_log_prob(params, uniforms)[1])
  assert (arrays.num_params, arrays.num_uniforms) == (12, 6)
  np.testing.assert_array_equal(arrays.is_std, vectors.is_std)


def test_a_scalar_action_has_no_axis_of_its_own():
  scalar = structured.Reshaped(tanh_normal.TanhNormal(1, tf.exp), ())
  params = _random(4, 2)
  assert scalar.sample(params, np.full((4, 1), 0.3)).shape == (4,)
  actions = scalar.mode(params)
  np.testing.assert_allclose(actions, np.tanh(params[:, 0]), rtol=1e-6)
  assert scalar.log_prob(params, actions).shape == (4,)


def test_an_array_of_the_right_size_and_the_wrong_shape_is_refused():
  arrays = structured.Reshaped(tanh_normal.TanhNormal(6, tf.exp), (2, 3))
  for shape in ((4, 3, 2), (4, 6), (8, 3)):
    with pytest.raises(ValueError, match=r'actions have shape .*need .4, 2, 3.'):
      arrays.log_prob(_random(4, 12), np.zeros(shape))
