"""Values of SAC that cannot work are refused before anything starts, each by name."""

import dataclasses

from dm_env import specs
import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import types
from seed_acme.agents.sac import config as sac_config
from seed_acme.configs import registry
from seed_acme.envs import choices

_NAN, _INF = float('nan'), float('inf')
_RECURRENT = {'core': 'lstm', 'head_sizes': (32,)}
_PLAIN = {'learner': config_lib.LearnerConfig()}  # an LSTM cannot be compiled


def _with(name='pendulum_sac', network=None, experiment=None, **changes):
  config = registry.load(name)
  return dataclasses.replace(
    config,
    agent=dataclasses.replace(config.agent, **changes),
    network=dataclasses.replace(config.network, **(network or {})),
    **(experiment or {}),
  )


def _refused(said, **arguments):
  with pytest.raises(types.UserError, match=said):
    config_validation.validate(_with(**arguments))


@pytest.mark.parametrize(
  'name, values',
  [
    ('updates_per_step', (0.0, -1.0, _NAN, _INF)),
    ('num_critics', (0, -1)),
    ('target_period', (0, -1)),
    ('target_step', (0.0, -0.1, 1.1, _NAN)),
    ('reward_scale', (0.0, -1.0, _INF)),
    ('entropy_speed', (0.0, _NAN)),
    ('observation_clip', (0.0, -1.0, _NAN)),
    ('initial_std', (0.0, -1.0, _INF)),
    ('random_steps', (-1,)),
    ('max_abs_reward', (-1.0, _NAN, _INF)),
    ('transitions_per_unroll', (-1,)),
    ('entropy_weight', (-0.1, _NAN, _INF)),
    ('min_std', (-1e-3, _NAN)),
    ('discount', (-0.1, 1.1, _NAN)),
    ('max_priority_share', (-0.1, 1.1)),
    ('target_entropy', (_NAN, _INF, -_INF)),
    ('replay_min_size', (0, -1)),
    ('replay_capacity', (0,)),
    ('priority_exponent', (-1.0, _NAN)),
    ('importance_exponent', (-1.0, _INF)),
  ],
)
def test_values_that_cannot_work_are_named(name, values):
  for value in values:
    with pytest.raises(types.UserError, match=f'agent.{name}') as error:
      config_validation.validate(_with(**{name: value}))
    assert str(value) in str(error.value)


def test_values_at_the_ends_are_allowed():
  config_validation.validate(
    _with(
      num_critics=1,
      target_step=1.0,
      target_period=1,
      random_steps=0,
      max_abs_reward=0.0,
      entropy_weight=0.0,
      target_entropy=None,
      min_std=0.0,
      discount=1.0,
      max_priority_share=1.0,
      priority_exponent=0.0,
      importance_exponent=0.0,
      updates_per_step=0.01,
    )
  )
  config_validation.validate(
    _with(discount=0.0, max_priority_share=0.0, target_entropy=0.0, transitions_per_unroll=4)
  )


@pytest.mark.parametrize('name', ['optimizer', 'critic_optimizer', 'entropy_optimizer'])
def test_every_optimizer_is_looked_at(name):
  optimizer = config_lib.OptimizerConfig(epsilon=0.0)
  _refused(rf'agent.{name}.epsilon \(0.0\)', **{name: optimizer})


def test_a_memory_smaller_than_its_minimum_is_refused():
  _refused(r'replay_min_size \(50\) exceeds agent.replay_capacity \(49\)', replay_capacity=49)


def test_a_weight_that_is_learnt_from_0_is_refused():
  _refused(r'entropy_weight \(0.0\) must be > 0 where agent.target_entropy', entropy_weight=0.0)
  _refused(r'entropy_weight \(0.0\)', entropy_weight=0.0, target_entropy=0.0)


@pytest.mark.parametrize('function', ['softplus', 'safe_exp'])
def test_standard_deviations_that_cannot_be_are_refused(function):
  said = r'initial_std \({}\) must be above agent.min_std \({}\)'
  for initial, least in ((0.5, 0.5), (0.5, 1.0), (1e7, 0.0)):
    _refused(said.format(initial, least), initial_std=initial, min_std=least, std_function=function)


def test_more_transitions_than_an_unroll_has_are_refused():
  _refused(
    r'transitions_per_unroll \(5\) exceeds agent.unroll_length \(4\)', transitions_per_unroll=5
  )


def test_a_value_network_of_its_own_is_refused():
  _refused(
    r'separate_value_network \(True\) has no effect', network={'separate_value_network': True}
  )


def test_one_whole_network_is_refused():
  _refused(r'network.module \(a.b:c\) is one whole network', network={'module': 'a.b:c'})


@pytest.mark.parametrize(
  'network, said',
  [
    ({'torso': 'impala_shallow'}, "network.torso 'impala_shallow'"),
    ({'torso': 'nature_cnn'}, "network.torso 'nature_cnn'"),
    ({'torso': 'my.module:Torso'}, "network.torso 'my.module:Torso'"),
    ({'frame_stack': 4}, 'network.frame_stack 4'),
    ({'core': 'gru'}, "network.core 'gru'"),
    ({'mlp_sizes': ()}, r'network.mlp_sizes \(\)'),
  ],
)
def test_an_action_that_joins_late_needs_a_hidden_layer(network, said):
  overlap = 2 if 'core' in network else 0
  _refused(
    rf'head_sizes \(\) must name a hidden layer with {said}', network=network, overlap=overlap
  )
  config_validation.validate(_with(network={**network, 'head_sizes': (32,)}, overlap=overlap))


def test_normalised_observations_do_not_go_with_stacked_images():
  network = {'frame_stack': 4, 'head_sizes': (32,)}
  _refused(
    r'frame_stack \(4\) stacks images.*normalize_observations \(True\)',
    network=network,
    normalize_observations=True,
  )


@pytest.mark.parametrize('field', ['previous_action_input', 'previous_reward_input'])
def test_what_was_before_needs_a_core(field):
  _refused(
    'previous_action_input and network.previous_reward_input are for a recurrent core',
    network={field: True},
  )
  config_validation.validate(
    _with(network={**_RECURRENT, field: True}, overlap=2, experiment=_PLAIN)
  )


@pytest.mark.parametrize('core', ['lstm', 'gru'])
def test_a_core_needs_rows_that_warm_it_up(core):
  network = {**_RECURRENT, 'core': core}
  _refused(
    rf"network.core \('{core}'\) needs agent.overlap > 0", network=network, experiment=_PLAIN
  )
  config_validation.validate(_with(network=network, overlap=1, experiment=_PLAIN))


def test_a_core_needs_rows_in_their_order():
  _refused(
    r'transitions_per_unroll \(2\) takes transitions out of their order',
    network=_RECURRENT,
    overlap=2,
    transitions_per_unroll=2,
    experiment=_PLAIN,
  )


def _hindsight(**changes):
  return dataclasses.replace(registry.load('bitflip_sac_her').agent.hindsight, **changes)


def test_hindsight_with_a_core_is_refused():
  _refused(
    r"hindsight.probability \(0.8\) learns from pairs.*network.core \('lstm'\)",
    name='bitflip_sac_her',
    network=_RECURRENT,
    overlap=2,
    transitions_per_unroll=0,
    experiment=_PLAIN,
  )


@pytest.mark.parametrize(
  'hindsight, said',
  [
    ({'probability': 1.5}, r'agent.hindsight.probability \(1.5\)'),
    ({'probability': -0.1}, r'agent.hindsight.probability \(-0.1\)'),
    ({'probability': _NAN}, r'agent.hindsight.probability \(nan\)'),
    ({'goal_outcome': ''}, 'goal_outcome is empty: name the function'),
    ({'goal_outcome': 'no_such_module:f'}, r"goal_outcome \('no_such_module:f'\) cannot be impor"),
    ({'goal_outcome': 'no.such.module:f'}, r"goal_outcome \('no.such.module:f'\) cannot be impor"),
    ({'goal_outcome': 'seed_acme.envs.goals'}, r"goal_outcome \('seed_acme.envs.goals'\) cannot"),
  ],
)
def test_hindsight_without_what_it_needs_is_refused(hindsight, said):
  _refused(said, name='bitflip_sac_her', hindsight=_hindsight(**hindsight))


def test_a_goal_outcome_is_not_looked_for_where_no_goals_are_replaced():
  config_validation.validate(
    _with('bitflip_sac_her', hindsight=_hindsight(probability=0.0, goal_outcome='no_such_module:f'))
  )


_GOAL = specs.Array((3,), np.float32)
_GOALS = {'observation': _GOAL, 'achieved_goal': _GOAL, 'desired_goal': _GOAL}


def _spec(observation, action=None):
  action = specs.DiscreteArray(3) if action is None else action
  return types.EnvironmentSpec(observation=observation, action=action)


@pytest.mark.parametrize(
  'observation', [_GOAL, {'observation': _GOAL}, {'observation': _GOAL, 'achieved_goal': _GOAL}]
)
def test_hindsight_needs_a_goal_environment(observation):
  agent = registry.load('bitflip_sac_her').agent
  agent.check_environment(_spec(_GOALS))
  with pytest.raises(types.UserError, match=r'probability \(0.8\) needs a goal environment'):
    agent.check_environment(_spec(observation))
  without = dataclasses.replace(agent, hindsight=_hindsight(probability=0.0))
  without.check_environment(_spec(observation))


@pytest.mark.parametrize(
  'achieved, said',
  [
    (specs.Array((2,), np.float32), r'float32 \[2\]'),
    (specs.Array((3,), np.int64), r'int64 \[3\]'),
  ],
)
def test_hindsight_needs_goals_of_one_form(achieved, said):
  agent = registry.load('bitflip_sac_her').agent
  spec = _spec({**_GOALS, 'achieved_goal': achieved})
  said = rf'\(0.8\) .*achieved_goal is {said} and desired_goal float32 \[3\]: make'
  with pytest.raises(types.UserError, match=said):
    agent.check_environment(spec)
  dataclasses.replace(agent, hindsight=_hindsight(probability=0.0)).check_environment(spec)


def test_hindsight_needs_more_than_one_step_to_look_for_goals_in():
  with pytest.raises(types.UserError, match=r'agent.unroll_length \(1\) that is only the one'):
    config_validation.validate(_with('bitflip_sac_her', unroll_length=1, hindsight=_hindsight()))
  config_validation.validate(_with('bitflip_sac_her', unroll_length=2, hindsight=_hindsight()))


@pytest.mark.parametrize(
  'action, target, said',
  [
    (specs.DiscreteArray(3), 1.1, r'uniform policy over these actions is 1.099'),
    (specs.DiscreteArray(3), -1.0, r'discrete actions is never below 0: .*0 and 1.099'),
    (specs.DiscreteArray(3), 1.0, ''),
    (specs.DiscreteArray(1), 0.0, 'no choice: set it to None'),
    (specs.BoundedArray((2,), np.float32, -1, 1), 1.4, r'these actions is 1.386'),
    (specs.BoundedArray((2,), np.float32, -1, 1), -20.0, ''),
    (choices.ChoicesArray([2, 5]), 2.31, r'these actions is 2.303'),
    ({'a': specs.DiscreteArray(3), 'b': specs.BoundedArray((), np.float32, -1, 1)}, -1.0, ''),
    ({'a': specs.DiscreteArray(3), 'b': specs.BoundedArray((), np.float32, -1, 1)}, 1.8, '1.792'),
  ],
)
def test_an_entropy_that_no_policy_can_have_is_refused(action, target, said):
  agent = dataclasses.replace(registry.load('pendulum_sac').agent, target_entropy=target)
  if not said:
    agent.check_environment(_spec(_GOAL, action))
    return
  with pytest.raises(types.UserError, match=rf'target_entropy \({target}\).*{said}'):
    agent.check_environment(_spec(_GOAL, action))


def test_the_bounds_of_booleans_are_not_blamed():
  agent = registry.load('pendulum_sac').agent
  with pytest.raises(types.UserError, match='give it a dtype such as int32'):
    agent.check_environment(_spec(_GOAL, specs.BoundedArray((2,), bool, False, True)))


def test_actions_without_bounds_are_refused():
  agent = registry.load('pendulum_sac').agent
  with pytest.raises(types.UserError, match='must be an integer or float array with bounds'):
    agent.check_environment(_spec(_GOAL, specs.Array((2,), np.float32)))


@pytest.mark.parametrize(
  'updates, length, batch_size, ratio',
  [(1.0, 1, 256, 256.0), (1.0, 4, 64, 256.0), (0.5, 8, 32, 128.0), (0.1, 10, 26, 26.0)],
)
def test_samples_per_insert(updates, length, batch_size, ratio):
  """An unroll of `length` steps allows `length` times the updates, of `batch_size` unrolls."""
  config = sac_config.SACConfig(
    updates_per_step=updates, unroll_length=length, batch_size=batch_size
  )
  assert config.samples_per_insert() == pytest.approx(ratio)
  replay = config.replay_spec()
  assert replay.is_memory and replay.ratio == config.samples_per_insert()
  assert (replay.capacity, replay.min_size) == (config.replay_capacity, config.replay_min_size)


def test_defaults_are_those_of_the_paper():
  """The values are from Haarnoja et al. 2018b, table 1."""
  config = sac_config.SACConfig()
  assert (config.discount, config.target_step, config.target_period) == (0.99, 0.005, 1)
  assert (config.num_critics, config.bootstrap) == (2, 'action_value')
  assert config.batch_size * config.unroll_length == 256
  assert config.replay_capacity * config.unroll_length == 1_000_000
  assert (config.replay, config.updates_per_step) == ('uniform', 1.0)
  for name in ('optimizer', 'critic_optimizer', 'entropy_optimizer'):
    optimizer = getattr(config, name)
    assert (optimizer.name, optimizer.learning_rate) == ('adam', 3e-4)
    assert (optimizer.epsilon, optimizer.max_gradient_norm) == (1e-8, 0.0)
  assert config.target_entropy is None and config.hindsight.probability == 0
  config_validation.validate(dataclasses.replace(registry.load('pendulum_sac'), agent=config))


@pytest.mark.parametrize(
  'name', ['pendulum_sac', 'bitflip_sac_her', 'mujoco_sac_halfcheetah', 'dm_control_sac']
)
def test_every_configuration_is_accepted(name):
  config_validation.validate(registry.load(name))
