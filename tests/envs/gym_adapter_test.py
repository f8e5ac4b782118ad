"""GymEnvironment: both packages, the old interface, spaces, endings, seeds."""

import subprocess
import sys
import types as python_types

import dm_env
from dm_env import specs as dm_specs
import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import checked
from seed_acme.envs import gym_adapter
from seed_acme.envs import gym_levels
from seed_acme.envs import registry
from seed_acme.envs import suite
from seed_acme.envs import time_steps
from seed_acme.envs import vector
from seed_acme.networks import torsos
from seed_acme.testing import environment_contract
from tests.envs import gym_environments

PACKAGES = ('gym', 'gymnasium')


@pytest.fixture(params=PACKAGES)
def package(request):
  gym_environments.import_package(request.param)
  return request.param


class TestGymCartPoleContract(environment_contract.EnvironmentContract):
  package = 'gym'

  def make_environment(self, num_environments, seed):
    gym_environments.import_package(self.package)
    config = config_lib.EnvironmentConfig(f'{self.package}:CartPole-v1')
    return registry.make(config, num_environments, seed)


class TestGymnasiumCartPoleContract(TestGymCartPoleContract):
  package = 'gymnasium'


class TestOldStyleContract(environment_contract.EnvironmentContract):
  def make_environment(self, num_environments, seed):
    spaces = gym_environments.import_package('gym').spaces
    seeds = suite.environment_seeds(seed, num_environments)
    return vector.VectorOfEnvironments(
      [gym_adapter.GymEnvironment(gym_environments.OldStyle(spaces), one, 'old') for one in seeds],
      'old',
    )


def balance(observation):
  """Keeps CartPole up for 500 steps by pushing to where the pole falls."""
  _, velocity, angle, angular_velocity = observation
  return int(angle + 0.5 * angular_velocity + 0.05 * velocity > 0)


def test_cartpole_truncation_at_500_keeps_its_discount(package):
  environment = gym_levels.make(package, 'CartPole-v1', 1, {})
  timestep, steps = environment.reset(), 0
  while not timestep.last():
    timestep = environment.step(balance(timestep.observation))
    steps += 1
  assert steps == 500
  assert timestep.discount == 1
  assert environment.step(0).first()


def test_cartpole_falling_terminates(package):
  environment = gym_levels.make(package, 'CartPole-v1', 1, {})
  timestep = environment.reset()
  while not timestep.last():
    timestep = environment.step(1)
  assert timestep.discount == 0
  assert timestep.reward == 1


def test_make_passes_settings_on(package):
  environment = gym_levels.make(package, 'CartPole-v1', 1, {'max_episode_steps': 2})
  environment.reset()
  assert environment.step(0).mid()
  assert environment.step(1).last()


def test_the_packages_own_checker_is_off_unless_asked_for(package, monkeypatch):
  asked = []
  inner = gym_environments.OldStyle(sys.modules[package].spaces)
  monkeypatch.setattr(
    sys.modules[package],
    'make',
    lambda id, disable_env_checker=None: asked.append(disable_env_checker) or inner,
  )
  for settings in ({}, {'disable_env_checker': False}):
    gym_levels.make(package, 'CartPole-v1', 1, settings)
  assert asked == [True, False]


def test_a_package_without_a_checker_or_a_mapping_is_used(package, monkeypatch):
  """As gym was before 0.24."""
  gym = sys.modules[package]
  made = gym_environments.OldStyle(gym.spaces)
  monkeypatch.setattr(gym, 'make', lambda id, **settings: made if not settings else 1 / 0)
  gym_levels.make(package, 'CartPole-v1', 1, {})
  specs = [python_types.SimpleNamespace(id=level) for level in ('B-v0', 'A-v0')]
  monkeypatch.setattr(gym.envs, 'registry', python_types.SimpleNamespace(all=lambda: specs))
  assert gym_levels.known_levels(package) == ['A-v0', 'B-v0']


@pytest.mark.parametrize(
  ('ending', 'step_type', 'discount'),
  [
    ((False, False), dm_env.StepType.MID, 1),
    ((True, False), dm_env.StepType.LAST, 0),
    ((False, True), dm_env.StepType.LAST, 1),
    ((True, True), dm_env.StepType.LAST, 0),
    ((np.bool_(False), np.bool_(True)), dm_env.StepType.LAST, 1),
  ],
)
def test_endings(ending, step_type, discount):
  spaces = gym_environments.import_package('gymnasium').spaces
  environment, inner = gym_environments.adapt(spaces.Discrete(2), spaces.Discrete(2), 0, [ending])
  environment.reset()
  timestep = environment.step(0)
  assert (timestep.step_type, timestep.discount, timestep.reward) == (step_type, discount, 2)


@pytest.mark.parametrize(('is_truncated', 'discount'), [(None, 0), (False, 0), (True, 1)])
def test_old_interface_endings(is_truncated, discount):
  inner = gym_environments.OldStyle(
    gym_environments.import_package('gym').spaces, is_truncated=is_truncated
  )
  environment = gym_adapter.GymEnvironment(inner, 1, 'old')
  rows = [environment.reset()] + [environment.step(0) for _ in range(4)]
  assert [int(row.step_type) for row in rows] == [0, 1, 1, 2, 0]
  assert rows[3].discount == discount
  assert rows[3].observation[0] == 3
  assert rows[0].observation.dtype == np.float32


def test_seeded_at_the_first_reset_only():
  spaces = gym_environments.import_package('gymnasium').spaces
  environment, inner = gym_environments.adapt(
    spaces.Discrete(2), spaces.Discrete(2), 0, [(True, False)] * 2
  )
  for _ in range(3):  # FIRST, LAST, FIRST
    environment.step(0)
  environment.reset()
  assert inner.resets == [gym_environments.SEED, None, None]
  old = gym_environments.OldStyle(gym_environments.import_package('gym').spaces)
  environment = gym_adapter.GymEnvironment(old, 78, 'old')
  environment.reset()
  environment.reset()
  assert old.seeds == [78]


def test_old_environment_inside_a_wrapper_that_takes_anything_is_seeded():
  old = gym_environments.OldStyle(gym_environments.import_package('gym').spaces)
  wrapper = python_types.SimpleNamespace(
    observation_space=old.observation_space,
    action_space=old.action_space,
    unwrapped=old,
    reset=lambda **kwargs: old.reset(**kwargs),
    seed=old.seed,
    step=old.step,
  )
  gym_adapter.GymEnvironment(wrapper, 5, 'wrapped').reset()
  assert old.seeds == [5]


@pytest.mark.parametrize('is_old', [False, True])
def test_an_environment_below_a_wrapper_that_takes_no_seed_is_seeded(is_old):
  if is_old:
    inside = gym_environments.OldStyle(gym_environments.import_package('gym').spaces)
  else:
    spaces = gym_environments.import_package('gymnasium').spaces
    inside = gym_environments.Scripted(spaces.Discrete(2), spaces.Discrete(2), 0)
  wrapper = python_types.SimpleNamespace(
    observation_space=inside.observation_space,
    action_space=inside.action_space,
    unwrapped=inside,
    reset=lambda: inside.reset(),
    step=inside.step,
  )
  environment = gym_adapter.GymEnvironment(wrapper, 5, 'wrapped')
  environment.reset()
  environment.reset()
  assert (inside.seeds if is_old else inside.resets) == ([5] if is_old else [5, None])


class _Noisy:
  """Mixed into an environment whose first observation is random."""

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    return self.np_random.random(1).astype(np.float32), {}

  def step(self, action):
    return np.zeros(1, np.float32), 0.0, False, False, {}


def _drops(self, **kwargs):
  return self.env.reset()


def _ignores(self, *, seed=None, options=None):
  return self.env.reset()


def _takes_none(self):
  return self.env.reset()


@pytest.mark.parametrize(
  ('reset', 'is_within'),
  [(_drops, False), (_drops, True), (_ignores, False), (_ignores, True), (_takes_none, False)],
)
def test_an_environment_below_a_wrapper_that_drops_the_seed_is_seeded(package, reset, is_within):
  gym = gym_environments.import_package(package)
  box = {'observation_space': gym.spaces.Box(0, 1, (1,)), 'action_space': gym.spaces.Discrete(2)}
  inside = type('Inside', (_Noisy, gym.Env), box)
  wrapper = type('Own', (gym.Wrapper,), {'reset': reset, '__module__': 'mine'})

  def first(seed):
    wrapped = wrapper(inside())
    if is_within:  # a wrapper of the package, which passes on what it is given
      wrapped = gym.wrappers.RecordEpisodeStatistics(wrapped)
    return gym_adapter.GymEnvironment(wrapped, seed, 'wrapped').reset().observation[0]

  assert first(5) == first(5) != first(6)


def test_an_environment_that_its_wrapper_prepares_is_reset_by_the_wrapper_alone(package):
  gym = gym_environments.import_package(package)

  class Inside(gym.Env):
    observation_space, action_space = gym.spaces.Box(0, 1, (1,)), gym.spaces.Discrete(2)
    resets = ()

    def reset(self, *, seed=None, options=None):
      self.resets += ((seed, options['level']),)
      return np.zeros(1, np.float32), {}

  class Levels(gym.Wrapper):
    def reset(self, **kwargs):
      for level in (1, 2):
        result = self.env.reset(options={'level': level})
      return result

  inside = Inside()
  environment = gym_adapter.GymEnvironment(Levels(inside), 5, 'wrapped')
  environment.reset()
  environment.reset()
  assert inside.resets == ((5, 1), (None, 2), (None, 1), (None, 2))
  assert 'reset' not in vars(inside)


@pytest.mark.parametrize('key', ['final_obs', 'final_observation'])
@pytest.mark.parametrize('ending', [(True, False), (False, True), (False, False)])
def test_the_last_observation_is_that_of_the_info_where_a_wrapper_has_reset(key, ending):
  spaces = gym_environments.import_package('gymnasium').spaces
  inside = gym_environments.Scripted(spaces.Discrete(9), spaces.Discrete(2), 3)
  inside.step = lambda action: (3, 1.0, *ending, {key: 7})
  environment = gym_adapter.GymEnvironment(inside, 1, 'reset by a wrapper')
  environment.reset()
  assert environment.step(0).observation == (7 if any(ending) else 3)
  inside.step = lambda action: (3, 1.0, True, False, {key: None})  # as some fill in what is absent
  environment.reset()
  assert environment.step(0).observation == 3


@pytest.mark.parametrize('rest', [(False, {}), ({},)])
def test_several_ends_of_one_environment_are_named(rest):
  spaces = gym_environments.import_package('gymnasium').spaces
  inside = gym_environments.Scripted(spaces.Discrete(9), spaces.Discrete(2), 3)
  inside.step = lambda action: (3, 1.0, np.array([True, False]), *rest)
  environment = gym_adapter.GymEnvironment(inside, 1, 'two')
  environment.reset()
  with pytest.raises(time_steps.WrongValue, match="an episode's end .*: expected a bool, got"):
    environment.step(0)


@pytest.mark.parametrize(('bound', 'is_bounded'), [(1e29, True), (np.finfo(np.float32).max, False)])
def test_a_bound_at_the_end_of_float32_is_none(package, bound, is_bounded):
  """For an action; an observation is not scaled by its bounds."""
  spaces = gym_environments.import_package(package).spaces
  low, high = np.float32([-1, -bound]), np.float32([1, bound])
  environment, inner = gym_environments.adapt(
    spaces.Box(low, high), spaces.Dict({'a': spaces.Box(low, high)}), np.float32([0, 3e38])
  )
  spec = vector.VectorOfEnvironments([environment], 'one').spec
  assert isinstance(spec.action['a'], dm_specs.BoundedArray) == is_bounded
  assert isinstance(spec.observation, dm_specs.BoundedArray)
  environment.reset()
  environment.step({'a': np.float32([1, 5])})
  np.testing.assert_array_equal(inner.actions[0]['a'], [1, 5])


def test_discrete_start_is_hidden(package):
  spaces = gym_environments.import_package(package).spaces
  environment, inner = gym_environments.adapt(
    spaces.Discrete(5, start=10), spaces.Discrete(3, start=-1), 12
  )
  assert environment.action_spec() == dm_specs.DiscreteArray(3, dtype=np.int32)
  assert environment.observation_spec() == dm_specs.DiscreteArray(5, dtype=np.int32)
  observation = environment.reset().observation
  assert (observation, observation.dtype) == (2, np.int32)
  environment.step(np.int32(0))
  assert inner.actions == [-1]


def test_multi_spaces(package):
  spaces = gym_environments.import_package(package).spaces
  environment, inner = gym_environments.adapt(
    spaces.MultiBinary(3), spaces.MultiDiscrete([2, 4]), np.ones(3, np.int8)
  )
  observation_spec, action_spec = environment.observation_spec(), environment.action_spec()
  assert (observation_spec.shape, observation_spec.dtype) == ((3,), np.int8)
  assert (observation_spec.minimum, observation_spec.maximum) == (0, 1)
  np.testing.assert_array_equal(action_spec.maximum, [1, 3])
  observation_spec.validate(environment.reset().observation)
  environment.step(np.array([1, 3], action_spec.dtype))
  assert inner.action_space.contains(inner.actions[0])


def test_discrete_and_multi_discrete_observations_reach_the_mlp_one_hot(package):
  spaces = gym_environments.import_package(package).spaces
  space = spaces.Dict({'cell': spaces.Discrete(3, start=5), 'hand': spaces.MultiDiscrete([2, 3])})
  environment, _ = gym_environments.adapt(
    space, spaces.Discrete(2), {'cell': 6, 'hand': np.array([1, 2])}
  )
  rows = vector.VectorOfEnvironments([environment], 'scripted')
  observation = rows.reset().observation
  assert (observation['cell'].tolist(), observation['hand'].tolist()) == ([1], [[1, 2]])
  torso = torsos.MLP((), observation_spec=rows.spec.observation)
  np.testing.assert_array_equal(torso(observation), [[0, 1, 0, 0, 1, 0, 0, 1]])


def test_multi_discrete_start_is_hidden():
  spaces = gym_environments.import_package('gymnasium').spaces
  space = spaces.MultiDiscrete([2, 4], start=[5, -5])
  environment, inner = gym_environments.adapt(space, space, np.array([6, -2]))
  np.testing.assert_array_equal(environment.reset().observation, [1, 3])
  np.testing.assert_array_equal(environment.observation_spec().maximum, [1, 3])
  environment.step(np.array([0, 1]))
  np.testing.assert_array_equal(inner.actions[0], [5, -4])


def test_dict_and_tuple_spaces(package):
  spaces = gym_environments.import_package(package).spaces
  box = spaces.Box(np.array([-1, -2], np.float32), np.array([1, 2], np.float32))
  space = spaces.Dict(
    {'pair': spaces.Tuple((spaces.Discrete(3, start=1), box)), 'flag': spaces.MultiBinary(1)}
  )
  value = {'pair': (2, np.array([0.5, 1.5])), 'flag': np.array([1], np.int8)}
  environment, inner = gym_environments.adapt(space, space, value)
  spec = environment.observation_spec()
  np.testing.assert_array_equal(spec['pair'][1].minimum, [-1, -2])
  observation = environment.reset().observation
  assert observation['pair'][0] == 1
  np.testing.assert_array_equal(observation['pair'][1], np.array([0.5, 1.5], np.float32))
  environment.step({'pair': (np.int32(2), np.zeros(2, np.float32)), 'flag': np.zeros(1, np.int8)})
  assert inner.actions[0]['pair'][0] == 3
  assert space.contains(inner.actions[0])
  rows = vector.VectorOfEnvironments([environment], 'scripted').reset()
  assert rows.observation['pair'][1].shape == (1, 2)


def test_tuple_observation_of_the_old_interface_is_not_taken_for_an_info():
  spaces = gym_environments.import_package('gym').spaces
  old = gym_environments.OldStyle(spaces)
  old.observation_space = spaces.Tuple((spaces.Discrete(2), spaces.Dict({'a': spaces.Discrete(2)})))
  old.reset = lambda: (1, {'a': 0})
  observation = gym_adapter.GymEnvironment(old, 1, 'old').reset().observation
  assert observation == (1, {'a': 0})


def test_unsupported_space_names_where_it_is():
  spaces = gym_environments.import_package('gymnasium').spaces
  with pytest.raises(types.UserError, match=r'scripted: observation space/said Text.*not supp'):
    gym_environments.adapt(spaces.Dict({'said': spaces.Text(5)}), spaces.Discrete(2), {})


@pytest.mark.parametrize(
  'make_space, value, words',
  [
    (
      lambda spaces: spaces.Box(0, 255, (2,), np.uint8),
      np.zeros(2),
      'observation: expected uint8 of shape (2,), got float64 of shape (2,)',
    ),
    (
      lambda spaces: spaces.Box(0, 255, (2,), np.uint8),
      np.array([3, 256]),
      'observation: expected uint8 of shape (2,), got int64 of shape (2,)',
    ),
    (lambda spaces: spaces.Discrete(3), 7, 'observation: expected an integer 0 ... 2, got 7'),
    (lambda spaces: spaces.Discrete(3), 2**40, 'expected an integer 0 ... 2, got 1099511627776'),
    (lambda spaces: spaces.Discrete(3), 1.5, 'expected an integer 0 ... 2, got 1.5'),
    (lambda spaces: spaces.Discrete(3), np.nan, 'expected an integer 0 ... 2, got nan'),
    (lambda spaces: spaces.Discrete(3), 'left', "expected an integer 0 ... 2, got 'left'"),
    (lambda spaces: spaces.Discrete(3), None, 'expected an integer 0 ... 2, got None'),
    (lambda spaces: spaces.Discrete(3), [1], 'expected an integer 0 ... 2, got [1]'),
    (lambda spaces: spaces.Discrete(3, start=5), 8, 'expected an integer 5 ... 7, got 8'),
    (lambda spaces: spaces.Discrete(3, start=5), 0, 'expected an integer 5 ... 7, got 0'),
    (
      lambda spaces: spaces.MultiDiscrete([3, 3]),
      np.array([0, -1]),
      'observation: expected 0 ... 2, got -1 at [1]',
    ),
    (
      lambda spaces: spaces.MultiDiscrete([3, 4], start=[5, -5]),
      np.array([5, -1]),
      'observation: expected -5 ... -2, got -1 at [1]',
    ),
    (
      lambda spaces: spaces.Dict({'a': spaces.Discrete(3), 'b': spaces.Discrete(3)}),
      {'a': 1},
      "{'a': 'DiscreteArray', 'b': 'DiscreteArray'}, got {'a': 'int'}",
    ),
    (
      lambda spaces: spaces.Dict({'a': spaces.Tuple([spaces.Discrete(3)])}),
      {'a': (3,)},
      'observation/a/0: expected an integer 0 ... 2, got 3',
    ),
    (
      lambda spaces: spaces.Tuple([spaces.Discrete(3), spaces.Discrete(3)]),
      (1,),
      'observation: expected the structure of observation_spec(), ',
    ),
  ],
)
@pytest.mark.parametrize('later', [False, True])
def test_observations_outside_their_space_are_named(make_space, value, words, later):
  spaces = gym_environments.import_package('gymnasium').spaces
  space = make_space(spaces)
  space.seed(1)
  environment, inner = gym_environments.adapt(space, spaces.Discrete(2), value)
  made = checked.CheckedEnvironment(
    vector.VectorOfEnvironments([environment], 'scripted'), 'scripted'
  )
  if later:
    inner.observation = space.sample()
    made.reset()
    inner.observation = value
  with pytest.raises(types.UserError) as error:
    made.step(np.zeros(1, np.int32)) if later else made.reset()
  assert not isinstance(error.value, types.NotFinite)
  assert str(error.value).startswith('environment 0 of scripted: ')
  assert words in str(error.value)


@pytest.mark.parametrize('value', [6, 6.0, np.int64(6), np.array(6, np.uint8), np.float32(6)])
def test_a_choice_may_be_any_whole_number_of_its_space(value):
  spaces = gym_environments.import_package('gymnasium').spaces
  environment, _ = gym_environments.adapt(spaces.Discrete(3, start=5), spaces.Discrete(2), value)
  observation = environment.reset().observation
  assert (observation, observation.dtype) == (1, np.int32)


def test_a_discrete_space_beyond_int32_is_refused():
  spaces = gym_environments.import_package('gymnasium').spaces
  for pair in ((spaces.Discrete(2), spaces.Discrete(2**40)), (spaces.Discrete(2**31), None)):
    with pytest.raises(
      types.UserError, match=r'space: expected .* got (1099511627776|2147483648): wrap'
    ):
      gym_environments.adapt(*pair, 0)


@pytest.mark.parametrize(
  'result, found', [((0, 1.0, True), '3 values'), (None, 'NoneType'), (0.5, 'float')]
)
def test_step_of_another_length_is_refused(result, found):
  spaces = gym_environments.import_package('gymnasium').spaces
  environment, inner = gym_environments.adapt(spaces.Discrete(2), spaces.Discrete(2), 0)
  inner.step = lambda action: result
  rows = vector.VectorOfEnvironments([environment], 'scripted')
  rows.reset()
  words = f'environment 0 of scripted: what step() returns: expected observation.*, got {found}'
  with pytest.raises(types.UserError, match=words.replace('()', r'\(\)')):
    rows.step(np.zeros(1, np.int32))


def test_close_closes_the_environment():
  spaces = gym_environments.import_package('gymnasium').spaces
  environment, inner = gym_environments.adapt(spaces.Discrete(2), spaces.Discrete(2), 0)
  environment.close()
  assert inner.is_closed


def test_output_stays_clean_and_the_users_filters_stay(package):
  code = f"""
import warnings
from seed_acme.envs import gym_levels
before = list(warnings.filters)  # numpy has its own
environment = gym_levels.make({package!r}, 'CartPole-v1', 1, {{}})
environment.reset()
environment.step(1)
assert warnings.filters == before, warnings.filters
"""
  done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=False)
  assert (done.returncode, done.stdout, done.stderr) == (0, '', '')


def test_an_environment_without_pictures_says_why():
  gymnasium = gym_environments.import_package('gymnasium')

  class Blind(gymnasium.Env):
    observation_space = action_space = gymnasium.spaces.Discrete(2)

  environment = gym_adapter.GymEnvironment(Blind(), 1, 'blind')
  with pytest.raises(types.UserError, match=r'blind cannot show its screen: its method render\(\)'):
    environment.render()
