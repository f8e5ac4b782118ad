"""The contract of every agent with the runtime: published, saved and trained variables."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents import registry
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.configs import registry as configs
from seed_acme.inference import policy as policy_lib
from seed_acme.learning import saved_variables
from tests import built

_AVERAGE = on_policy_config.NormalizationConfig('average')


def _changed(name, **changes):
  config = configs.load(name)
  return dataclasses.replace(config, agent=dataclasses.replace(config.agent, **changes))


_CASES = {
  'vtrace': lambda: configs.load('catch_vtrace'),
  'vmpo': lambda: _changed(
    'cartpole_vmpo',
    num_epochs=2,
    minibatch_size=2,
    values=_AVERAGE,
    observations=_AVERAGE,
    value_compensation=False,
    value_clip=0.2,
  ),
  'r2d2': lambda: configs.load('catch_r2d2'),
  'sac': lambda: _changed(
    'pendulum_sac', normalize_observations=True, replay='prioritized', random_steps=0
  ),
  'sac_discrete': lambda: _changed('bitflip_sac_her', target_entropy=0.3, random_steps=0),
  'sac_images': lambda: _images(
    _changed('pendulum_sac', bootstrap='state_value', target_entropy=None, random_steps=0)
  ),
}


def _images(config):
  """Changes a configuration to an environment of images, with stacks of three."""
  return dataclasses.replace(
    config,
    environment=config_lib.EnvironmentConfig('tests.scripted_environments:ImageEnvironment'),
    network=config_lib.NetworkConfig(mlp_sizes=(16,), head_sizes=(8,), frame_stack=3),
  )


class _Case:
  def __init__(self, config):
    self.config = dataclasses.replace(
      config,
      agent=dataclasses.replace(config.agent, unroll_length=6, batch_size=4),
      # The agents' own tests check that compiled updates are the same.
      learner=dataclasses.replace(config.learner, xla=False),
    )
    self.acting = built.make_acting(self.config)

    def make_learning(network):
      self.learning = self.acting.agent.make_learning(network)
      return self.learning

    agent = dataclasses.replace(self.acting.agent, make_learning=make_learning)
    self.learner = built.make_learner(self.config, dataclasses.replace(self.acting, agent=agent))

  def sample(self, seed=0):
    """Returns random data in the form that acting stores, with an episode end inside."""
    random = np.random.default_rng(seed)
    unroll = self.acting.example_unroll()
    step_type = np.full(unroll.inputs.step_type.shape, types.MID, np.uint8)
    step_type[-4:-2] = types.LAST, types.FIRST
    observation = tree.map_structure(
      lambda x: random.normal(size=x.shape).astype(x.dtype), unroll.inputs.observation
    )
    inputs = unroll.inputs._replace(
      step_type=step_type,
      observation=observation,
      reward=random.normal(size=step_type.shape).astype(np.float32),
    )
    columns = lambda x: np.repeat(x[:, None], 4, axis=1)
    state, rows = unroll.initial_state, unroll._replace(initial_state=(), inputs=inputs)
    rows = tree.map_structure(columns, rows)
    state = tree.map_structure(lambda x: np.repeat(x[None], 4, axis=0), state)
    return types.Sample(
      rows._replace(initial_state=state), np.arange(4, dtype=np.uint64), np.full(4, 0.25)
    )


def _params():
  """Returns the cases; one or two of each agent are quick, the others are marked slow."""
  quick = ('vtrace', 'vmpo', 'r2d2', 'sac')
  slow = {name: () if name in quick else pytest.mark.slow for name in _CASES}
  return [pytest.param(name, marks=slow[name]) for name in sorted(_CASES)]


@pytest.fixture(scope='module', params=_params())
def case(request):
  return _Case(_CASES[request.param]())


def test_every_agent_is_here():
  assert {_CASES[name]().agent.agent for name in _CASES} == set(registry.AGENTS)


def test_what_is_published_is_what_acting_reads_and_nothing_else(case):
  """Changes each variable in turn: a published one changes the outputs, or is named here as an
  exception; any other changes nothing."""
  acting, published, made = case.acting.agent.acting, policy_lib.PublishedVariables(), []

  def make():
    made.append(acting.make())
    return made[-1]

  policy = policy_lib.Policy(case.acting.spec, dataclasses.replace(acting, make=make), published)
  (network,) = made
  published.publish(case.learner.variables())
  policy.refresh()
  inputs = tree.map_structure(lambda x: x[None], policy.example_row()[0])
  state = policy.initial_state()
  inputs = inputs._replace(observation=tree.map_structure(np.ones_like, inputs.observation))
  do = lambda: tree.flatten(policy(inputs, state, policy.example_exploration()))
  # If only a choice is stored, a change may be too small to affect it.
  say = lambda: tree.flatten(network(inputs, state))
  same_as = lambda arrays, others: all(np.array_equal(a, b) for a, b in zip(arrays, others))
  done, said = do(), say()
  for i, variable in enumerate(network.variables):
    kept = variable.numpy()
    variable.assign(np.asarray(kept * 0.7 + 0.11, kept.dtype))
    same_deed, same = same_as(done, do()), same_as(said, say())
    variable.assign(kept)
    if i not in policy.variables_read:
      assert same_deed, variable.name
    elif same and same_deed:
      # A closed gate, or a state that is still zero, hides a change.
      assert any(word in variable.name for word in ('lstm', 'statistics')), variable.name
  assert len(set(policy.variables_read)) == len(policy.variables_read) > 3


@pytest.mark.slow
def test_published_copies_are_in_the_order_of_acting(case):
  case.learner.step(case.sample(), agent_steps=10)
  published = case.learner.variables()
  arrays = case.learner.save()
  network = case.acting.agent.acting.make()
  names = [network.variables[i].name for i in case.acting.policy.variables_read]
  assert len(published.values) == len(names)
  for name, value in zip(names, published.values):
    np.testing.assert_array_equal(value, arrays[f'acting/{name}'], err_msg=name)


def test_what_only_learning_needs_is_saved_and_never_published(case):
  arrays = case.learner.save()
  parts = {name.partition('/')[0] for name in arrays}
  assert parts <= {'acting', 'learning', 'optimizer'}
  objectives = {name.split('/')[1] for name in arrays if name.startswith('optimizer/')}
  assert objectives == set(case.learning.objectives)
  kind = case.config.agent
  expected = {'r2d2': {'target'}, 'vmpo': {'weights'}, 'sac': {'critics', 'targets'}}
  wanted = set(expected.get(kind.agent) or expected.get(getattr(kind, 'policy_loss', ''), ()))
  if getattr(kind, 'target_entropy', None) is not None:
    wanted.add('entropy_weight')
  assert {name.split('/')[1] for name in arrays if name.startswith('learning/')} == wanted


def test_an_evaluator_needs_the_acting_part_alone(case):
  acting = {name: x for name, x in case.learner.save().items() if name.startswith('acting/')}
  network = case.acting.agent.acting.make()
  saved_variables.assign(saved_variables.acting(network), acting)
  for variable in network.variables:
    np.testing.assert_array_equal(variable, acting[f'acting/{variable.name}'])


def test_every_set_of_acting_variables_is_its_own(case):
  one, two = (case.acting.agent.acting.make() for _ in range(2))
  assert [v.name for v in one.variables] == [v.name for v in two.variables]
  assert not {id(v) for v in one.variables} & {id(v) for v in two.variables}


def test_every_trained_variable_is_in_one_objective_and_changes(case):
  trained = [v for objective in case.learning.objectives.values() for v in objective.variables]
  assert len({id(v) for v in trained}) == len(trained)
  before = [v.numpy() for v in trained]
  case.learner.step(case.sample(1), agent_steps=10)
  for variable, old in zip(trained, before):
    assert (variable.numpy() != old).any(), variable.name


@pytest.mark.slow
def test_updates_run_op_by_op_for_whoever_debugs_them(case):
  samples = [case.sample(seed) for seed in range(2)]
  case.learner.step(samples[0], agent_steps=10)
  arrays = {name: np.array(x) for name, x in case.learner.save().items()}
  other = built.make_learner(case.config, case.acting)
  other.restore(arrays, case.learner.num_updates)
  expected = case.learner.step(samples[1], 20)
  tf.config.run_functions_eagerly(True)
  try:
    actual = other.step(samples[1], 20)
  finally:
    tf.config.run_functions_eagerly(False)
  assert actual.metrics == pytest.approx(expected.metrics, rel=1e-4, abs=1e-6)
  for name, value in case.learner.save().items():
    np.testing.assert_allclose(other.save()[name], value, rtol=1e-3, atol=1e-5, err_msg=name)


def test_the_step_that_loses_a_life_is_learnt_and_the_value_is_cut_there(case):
  """The step has a MID row with discount 0."""
  key, progress = tf.constant([1, 2]), tf.constant(0.5)
  losses = []
  for discount in (1.0, 0.0):
    sample = case.sample()
    discounts = np.ones(sample.unroll.inputs.step_type.shape, np.float32)
    discounts[-2] = discount
    assert (sample.unroll.inputs.step_type[-2] == types.MID).all()
    inputs = sample.unroll.inputs._replace(discount=discounts)
    prepared = case.learning.prepare(
      sample._replace(unroll=sample.unroll._replace(inputs=inputs)), key, False
    )
    mask = np.asarray(prepared.mask)
    assert np.count_nonzero(~mask) == 4, 'more is masked than the row after the end'
    losses.append(case.learning.losses(prepared.batch, key, progress).losses)
  assert all(np.isfinite(loss) for loss in tree.flatten(losses))
  assert tree.flatten(losses[0]) != tree.flatten(losses[1])


def test_a_restored_learner_goes_on_to_the_bit(case):
  """The same learner is taken back by two updates. That another one can take over is tested
  above, within the tolerance of eager execution."""
  samples = [case.sample(seed) for seed in range(3)]
  saved = lambda: {name: np.array(x) for name, x in case.learner.save().items()}
  case.learner.step(samples[0], agent_steps=10)
  arrays, num_updates = saved(), case.learner.num_updates
  expected = [case.learner.step(sample, 20) for sample in samples[1:]]
  after = saved()
  assert any((after[name] != x).any() for name, x in arrays.items())
  case.learner.restore(arrays, num_updates)
  for sample, first in zip(samples[1:], expected):
    again = case.learner.step(sample, 20)
    assert again.metrics == first.metrics
    np.testing.assert_array_equal(again.priorities, first.priorities)
  for name, value in saved().items():
    np.testing.assert_array_equal(after[name], value, err_msg=name)
