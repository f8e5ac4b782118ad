"""How SAC acts: a sample, the mode in evaluation, uniform actions at the beginning of a run."""

import numpy as np
import pytest
from scipy import stats
import sonnet as snt
import tensorflow as tf
import tree

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.sac import agent as sac_agent
from seed_acme.agents.sac import network as network_lib
from seed_acme.agents.sac import policy
from seed_acme.networks import build

_KINDS = ['continuous', 'discrete', 'multi_discrete', 'nested']


@pytest.fixture
def act(make_spec, make_config):
  """`act(kind, steps, is_evaluation, number, **fields)` -> (actions, params, uniforms)."""

  def act(kind, steps, is_evaluation, number=6, rows=None, **fields):
    spec, config = make_spec(kind), make_config(**fields)
    distribution = network_lib.make_distribution(spec, config)
    rng = np.random.default_rng(1)
    params = rng.normal(size=(number, distribution.num_params)).astype(np.float32)
    uniforms = rng.random((number, distribution.num_uniforms)).astype(np.float32)
    chosen = np.arange(number) if rows is None else rows
    exploration = types.Exploration(
      tf.constant(uniforms[chosen]),
      tf.zeros([len(chosen)]),
      tf.constant(np.broadcast_to(is_evaluation, [number])[chosen]),
      tf.fill([len(chosen)], tf.cast(steps, tf.int64)),
    )
    output = policy.select_actions(
      network_lib.PolicyOutput(tf.constant(params[chosen])),
      exploration,
      distribution=distribution,
      action_spec=spec.action,
      config=config,
    )
    assert output.prediction == ()
    return (tree.map_structure(lambda x: x.numpy(), output.action), distribution, params, uniforms)

  return act


def _assert_equal(actions, expected, rows=slice(None)):
  tree.assert_same_structure(actions, expected)
  for a, b in zip(tree.flatten(actions), tree.flatten(expected)):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a[rows], b[rows])


@pytest.mark.parametrize('random_steps', [0, 100])
@pytest.mark.parametrize('kind', _KINDS)
def test_evaluation_rows_play_the_mode_and_the_others_a_sample(act, kind, random_steps):
  evaluated = np.array([True, False, True, False, False, True])
  actions, distribution, params, uniforms = act(kind, 100, evaluated, random_steps=random_steps)
  mode, sample = distribution.mode(params), distribution.sample(params, uniforms)
  _assert_equal(actions, mode, evaluated)
  _assert_equal(actions, sample, ~evaluated)
  assert all((m != s).numpy().any() for m, s in zip(tree.flatten(mode), tree.flatten(sample)))


@pytest.mark.parametrize('kind', _KINDS)
def test_the_first_steps_are_random_but_for_evaluation(act, kind):
  evaluated = np.array([True, False, True, False, False, True])
  actions, distribution, params, uniforms = act(kind, 99, evaluated, random_steps=100)
  _assert_equal(actions, distribution.mode(params), evaluated)
  sample = distribution.sample(params, uniforms)
  assert any(
    (a[~evaluated] != s.numpy()[~evaluated]).any()
    for a, s in zip(tree.flatten(actions), tree.flatten(sample))
  )


def test_random_steps_are_over_once_as_many_are_taken(act):
  acted = {
    steps: act('continuous', steps, False, random_steps=100)[0] for steps in (0, 99, 100, 10**12)
  }
  np.testing.assert_array_equal(acted[0], acted[99])
  np.testing.assert_array_equal(acted[100], acted[10**12])
  assert (acted[99] != acted[100]).all()
  np.testing.assert_array_equal(act('continuous', 0, False)[0], acted[100])


def _assert_uniform(x, num_values=None):
  if num_values is None:
    assert np.abs(x).max() <= 1 and x.dtype == np.float32
    assert stats.kstest(x, stats.uniform(-1, 2).cdf).pvalue > 1e-4
  else:
    assert x.dtype == np.int32
    assert stats.chisquare(np.bincount(x, minlength=num_values)).pvalue > 1e-4
    assert set(x) == set(range(num_values))


def test_random_numbers_are_uniform_over_their_bounds(act):
  actions = act('continuous', 0, False, 2000, random_steps=1)[0]
  for column in actions.T:
    _assert_uniform(column)
  assert abs(stats.pearsonr(*actions.T)[0]) < 0.1


def test_random_choices_are_uniform_over_all_alternatives(act):
  _assert_uniform(act('discrete', 0, False, 2000, random_steps=1)[0], 3)
  for column, num_values in zip(act('multi_discrete', 0, False, 2000, random_steps=1)[0].T, (2, 3)):
    _assert_uniform(column, num_values)


def test_random_nested_actions_are_uniform_in_all_parts(act):
  actions = act('nested', 0, False, 2000, random_steps=1)[0]
  for column in actions['arm'].T:
    _assert_uniform(column)
  _assert_uniform(actions['grip'], 3)


@pytest.mark.parametrize('steps', [0, 100])
@pytest.mark.parametrize('kind', _KINDS)
def test_what_a_row_does_depends_on_no_other(act, kind, steps):
  evaluated = np.array([True, False, True, False, False, True])
  whole = act(kind, steps, evaluated, random_steps=100)[0]
  for rows in ([3], [5, 0], [4, 2, 1]):
    part = act(kind, steps, evaluated, rows=np.array(rows), random_steps=100)[0]
    for a, b in zip(tree.flatten(part), tree.flatten(whole)):
      np.testing.assert_allclose(a, b[rows], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize('core', ['none', 'lstm'])
@pytest.mark.parametrize('kind', _KINDS)
def test_the_agent_acts_by_its_network_and_stores_nothing_of_it(make_world, kind, core):
  """Acts through the record that the runtime uses, with the number of uniforms that it asks for."""
  world = make_world(kind, network={'core': core}, overlap=0 if core == 'none' else 2)
  network = config_lib.NetworkConfig(mlp_sizes=(6,), core=core, core_size=5, head_sizes=(5,))
  acting = sac_agent.make_agent(world.spec, network, world.config).acting
  made = acting.make()
  inputs = build.zero_inputs(world.spec, 3)
  prediction, _ = made(inputs, made.initial_state(3))
  exploration = types.Exploration(
    tf.fill([3, acting.num_uniforms], 0.3),
    tf.zeros([3]),
    tf.constant([False] * 3),
    tf.zeros([3], tf.int64),
  )
  output = acting.select_actions(prediction, exploration)
  tree.assert_same_structure(output.action, world.spec.action)
  assert output.prediction == ()
  expected = world.distribution.sample(prediction.policy_params, exploration.uniforms)
  for a, b in zip(tree.flatten(output.action), tree.flatten(expected)):
    np.testing.assert_array_equal(a, b)


class TwoOfAName(snt.Module):
  """A user's torso with two layers that get the same name."""

  def __init__(self):
    super().__init__(name='t')
    self._layers = [snt.Linear(4), snt.Linear(4)]

  def __call__(self, observation):
    return self._layers[1](self._layers[0](observation))


@pytest.mark.parametrize('makes_critics', [False, True])
def test_layers_of_one_name_are_told_apart_by_nobody(makes_critics, make_spec, make_config):
  spec, config = make_spec('continuous'), make_config()
  settings = config_lib.NetworkConfig(torso=f'{__name__}:TwoOfAName', head_sizes=(4,))
  with pytest.raises(types.UserError, match='share a name'):
    if makes_critics:
      network_lib.make_critics(spec, settings, 2, False)
    else:
      network_lib.make_policy(spec, settings, network_lib.make_distribution(spec, config), config)
