"""A SAC update: targets, the entropy's weight, statistics, and the parts that each loss trains."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.sac import agent as sac_agent
from seed_acme.agents.sac import batch as batch_lib
from seed_acme.agents.sac import learner as sac_learner
from seed_acme.inference import policy as policy_lib
from seed_acme.learning import learner as learner_lib

pytestmark = pytest.mark.usefixtures('op_by_op')


_NETWORK = config_lib.NetworkConfig(mlp_sizes=(6,), activation='tanh')


class _Run:
  """A learner, with access to the arrays of its checkpoints."""

  def __init__(self, spec, config, xla=False):
    tf.random.set_seed(7)
    agent = sac_agent.make_agent(spec, _NETWORK, config)

    def make_learning(network):
      self.learning = agent.make_learning(network)
      return self.learning

    self.learner = learner_lib.Learner(
      dataclasses.replace(agent, make_learning=make_learning),
      published=(),
      total_steps=1000,
      seed=1,
      xla=xla,
      devices=['cpu:0'],
    )

  def step(self, sample):
    return self.learner.step(sample, agent_steps=10)

  def values(self, part):
    """Returns arrays by name of a part: acting, learning/critics, learning/targets, ..."""
    return {
      name.removeprefix(f'{part}/'): array.copy()
      for name, array in self.learner.save().items()
      if name.startswith(f'{part}/')
    }

  def targets_and_sources(self):
    targets, critics = self.values('learning/targets'), self.values('learning/critics')
    return {name: (target, critics[name]) for name, target in targets.items()}


@pytest.fixture
def make_run(make_spec, make_config):
  """`make_run(action, xla, **fields)` -> `_Run`."""
  return lambda action='continuous', xla=False, **fields: _Run(
    make_spec(action), make_config(**fields), xla
  )


@pytest.fixture
def sample(make_sample, make_world):
  return make_sample(make_world())


@pytest.mark.slow
@pytest.mark.parametrize(
  'bootstrap, action',
  [('action_value', 'continuous'), ('action_value', 'discrete'), ('state_value', 'continuous')],
)
def test_only_what_bootstraps_has_a_target_which_starts_as_a_copy(make_run, bootstrap, action):
  run = make_run(action, bootstrap=bootstrap, num_critics=3)
  kinds = lambda part: {name.split('/')[1] for name in run.values(part)}
  actions = {'critic_0', 'critic_1', 'critic_2'}
  from_state = bootstrap == 'state_value'
  assert kinds('learning/targets') == ({'state_value'} if from_state else actions)
  has_state = from_state or action == 'discrete'
  assert kinds('learning/critics') == actions | ({'state_value'} if has_state else set())
  for name, (target, source) in run.targets_and_sources().items():
    np.testing.assert_array_equal(target, source, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize('bootstrap, share', [('action_value', 0.25), ('state_value', 1.0)])
def test_targets_go_a_share_of_the_way(make_run, sample, bootstrap, share):
  run = make_run(bootstrap=bootstrap, target_step=share)
  for _ in range(2):
    before = run.values('learning/targets')
    run.step(sample)
    for name, (target, source) in run.targets_and_sources().items():
      assert (before[name] != source).any()
      if share == 1.0:
        np.testing.assert_array_equal(target, source, err_msg=name)
      else:
        np.testing.assert_allclose(
          target - before[name], share * (source - before[name]), rtol=1e-3, atol=2e-7
        )


@pytest.mark.slow
def test_targets_are_renewed_after_every_target_period_th_update(make_run, sample):
  run = make_run(target_step=0.5, target_period=2)
  moved = []
  for _ in range(4):
    before = run.values('learning/targets')
    run.step(sample)
    moved.append(
      any((before[name] != target).any() for name, (target, _) in run.targets_and_sources().items())
    )
  assert moved == [False, True, False, True]


@pytest.mark.slow
@pytest.mark.parametrize('start, target, falls', [(1e-3, -50.0, True), (1.0, 50.0, False)])
def test_the_weight_falls_while_the_entropy_exceeds_its_target(
  make_run, sample, start, target, falls
):
  run = make_run(entropy_weight=start, target_entropy=target)
  weights = [run.step(sample).metrics['policy/entropy_weight'] for _ in range(3)]
  np.testing.assert_allclose(weights[0], start, rtol=1e-5)
  assert (np.diff(weights) < 0).all() if falls else (np.diff(weights) > 0).all()


@pytest.mark.slow
def test_a_target_of_0_is_held_as_any_other(make_run, sample):
  """The entropy is above 0 at first with one standard deviation, and below 0 with the other."""
  for std in (0.7, 0.02):
    run = make_run(initial_std=std, target_entropy=0.0)
    metrics = [run.step(sample).metrics for _ in range(3)]
    entropy = metrics[0]['policy/entropy']
    assert (entropy > 0) == (std == 0.7), entropy
    weights = [m['policy/entropy_weight'] for m in metrics]
    assert (np.diff(weights) < 0).all() if entropy > 0 else (np.diff(weights) > 0).all()


@pytest.mark.slow
def test_a_fixed_weight_has_no_objective_and_stays(make_run, sample):
  run = make_run(entropy_weight=0.25)
  assert set(run.learning.objectives) == {'policy', 'critics'}
  assert not run.values('learning/entropy_weight')
  assert {run.step(sample).metrics['policy/entropy_weight'] for _ in range(3)} == {0.25}
  learnt = make_run(target_entropy=-1.0)
  assert set(learnt.learning.objectives) == {'policy', 'critics', 'entropy_weight'}


@pytest.mark.slow
def test_the_speed_is_the_exponent(make_run, sample):
  """alpha = exp(k p), and Adam's first step of p is the learning rate."""
  optimizer = config_lib.OptimizerConfig(learning_rate=0.01, epsilon=1e-8, max_gradient_norm=0.0)
  for speed in (1.0, 5.0):
    run = make_run(target_entropy=50.0, entropy_speed=speed, entropy_optimizer=optimizer)
    first, second = (run.step(sample).metrics['policy/entropy_weight'] for _ in range(2))
    np.testing.assert_allclose(second / first, np.exp(speed * 0.01), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize('still', ['optimizer', 'critic_optimizer', 'entropy_optimizer'])
def test_each_optimizer_moves_its_own(make_run, sample, still):
  """For example, the policy's loss passes through critics but does not train them."""
  run = make_run(target_entropy=-1.0, **{still: config_lib.OptimizerConfig(learning_rate=0.0)})
  before = run.learner.save()
  run.step(sample)
  after = run.learner.save()
  moved = lambda prefix: {
    (before[name] != after[name]).any() for name in before if name.startswith(prefix)
  }
  expected = {
    'optimizer': 'acting/',
    'critic_optimizer': 'learning/critics/',
    'entropy_optimizer': 'learning/entropy_weight/',
  }
  for field, prefix in expected.items():
    assert moved(prefix) == {field != still}, field


def _normalizing(make_run, **fields):
  return make_run(normalize_observations=True, **fields)


def _statistics(run):
  return {name: x for name, x in run.values('acting').items() if 'statistics' in name}


@pytest.mark.slow
def test_statistics_are_of_the_rows_that_actions_were_taken_in(make_run, sample):
  run = _normalizing(make_run)
  run.step(sample)
  mask = sample.unroll.inputs.step_type[:-1] != types.LAST
  rows = sample.unroll.inputs.observation[:-1][mask].astype(np.float64)
  found = {name.split('/')[-1]: x for name, x in _statistics(run).items()}
  by_name = {key: next(x for name, x in found.items() if key in name) for key in ('mean', 'var')}
  np.testing.assert_allclose(by_name['mean'], rows.mean(axis=0), rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(by_name['var'], rows.var(axis=0), rtol=1e-5)


@pytest.mark.slow
def test_statistics_change_at_the_end_of_an_update_alone(make_run, sample):
  """Preparation and losses leave them unchanged; the first update sees raw observations."""
  run = _normalizing(make_run)
  before = _statistics(run)
  key = tf.constant([1, 2], tf.int32)
  prepared = run.learning.prepare(sample, key, True)
  run.learning.losses(prepared.batch, key, tf.constant(0.0))
  run.learning.after_update(tf.constant(1, tf.int64))
  for name, x in _statistics(run).items():
    np.testing.assert_array_equal(x, before[name])
  run.learning.finish(sample)
  assert all((x != before[name]).any() for name, x in _statistics(run).items())


@pytest.mark.slow
def test_the_first_losses_are_those_without_statistics(make_run, sample):
  first = _normalizing(make_run, observation_clip=100.0).step(sample).metrics
  plain = make_run().step(sample).metrics
  assert {name for name in first if name.startswith('loss/')} == {
    name for name in plain if name.startswith('loss/')
  }
  for name in ('loss/policy', 'loss/critics'):
    np.testing.assert_allclose(first[name], plain[name], rtol=1e-4)


def test_statistics_are_published_and_acted_with(make_spec, make_config):
  spec, config = make_spec(), make_config(normalize_observations=True)
  acting = sac_agent.make_agent(spec, _NETWORK, config).acting
  policy = policy_lib.Policy(spec, acting, policy_lib.PublishedVariables())
  variables = acting.make().variables
  names = [variables[i].name for i in policy.variables_read]
  assert sum('statistics' in name for name in names) >= 2
  assert not any('critic' in name or 'target' in name for name in names)


@pytest.mark.slow
def test_critics_see_normalised_observations(make_world, make_sample):
  """Shifted and scaled rows have the plain rows' losses once the statistics have seen them."""
  world = make_world(normalize_observations=True)
  sample = make_sample(world)
  losses = []
  for scale, shift in ((1.0, 0.0), (50.0, -300.0)):
    world = make_world(normalize_observations=True)
    observation = np.float32(scale) * sample.unroll.inputs.observation + np.float32(shift)
    changed = sample._replace(
      unroll=sample.unroll._replace(inputs=sample.unroll.inputs._replace(observation=observation))
    )
    sac_learner.finish(world.policy, changed, world.config)
    prepared = batch_lib.prepare(
      changed, tf.constant([1, 2], tf.int32), True, goal_outcome=None, config=world.config
    )
    losses.append(world.losses(prepared.batch).losses)
  for name, loss in losses[0].items():
    np.testing.assert_allclose(losses[1][name], loss, rtol=1e-3)


@pytest.mark.slow  # XLA takes seconds to compile
def test_a_compiled_update_is_the_same(make_run, make_world, make_sample):
  tf.config.run_functions_eagerly(False)
  fields = {'target_entropy': -1.0, 'transitions_per_unroll': 2, 'replay': 'prioritized'}
  sample = make_sample(make_world('nested'))
  plain, compiled = (make_run('nested', xla, **fields) for xla in (False, True))
  for _ in range(2):
    a, b = plain.step(sample), compiled.step(sample)
    for name, value in a.metrics.items():
      np.testing.assert_allclose(b.metrics[name], value, rtol=2e-3, atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_the_targets_are_of_the_weights_before_the_update(make_run, sample):
  """All losses use the same weights, so another step of the policy changes no critic."""
  fast = dataclasses.replace(config_lib.OptimizerConfig(), learning_rate=1.0)
  one, other = make_run(), make_run(optimizer=fast)
  for run in (one, other):
    run.step(sample)
  for name, x in one.values('learning/critics').items():
    np.testing.assert_array_equal(other.values('learning/critics')[name], x, err_msg=name)
  assert any((other.values('acting')[name] != x).any() for name, x in one.values('acting').items())


@pytest.mark.parametrize('action', ['continuous', 'discrete'])
@pytest.mark.parametrize(
  'before, after', [('state_value', 'action_value'), ('action_value', 'state_value')]
)
def test_targets_that_a_checkpoint_lacks_begin_as_copies(make_run, before, after, action):
  donor, run = make_run(action, bootstrap=before), make_run(action, bootstrap=after)
  arrays = {name: x + np.float32(0.25) for name, x in donor.learner.save().items()}
  run.learner.warm_start(arrays)
  for name, x in run.values('learning/critics').items():
    if f'learning/critics/{name}' in arrays:
      np.testing.assert_array_equal(x, arrays[f'learning/critics/{name}'], err_msg=name)
  for name, (target, source) in run.targets_and_sources().items():
    np.testing.assert_array_equal(target, source, err_msg=name)


def test_targets_that_a_checkpoint_has_stay_its_own(make_run):
  run = make_run()
  arrays = {name: x + ('targets' in name) for name, x in run.learner.save().items()}
  run.learner.warm_start(arrays)
  for name, (target, source) in run.targets_and_sources().items():
    np.testing.assert_array_equal(target, source + 1, err_msg=name)


def test_a_policy_with_statistics_does_not_go_on_without_them(make_run):
  saved = make_run(normalize_observations=True).learner.save()
  with pytest.raises(types.UserError, match='the checkpoint has acting/.*observations/statistics'):
    make_run().learner.warm_start(saved)
