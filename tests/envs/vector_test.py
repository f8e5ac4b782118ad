"""VectorOfEnvironments: contract, hand-made rows, and every error message."""

import re

import dm_env
from dm_env import specs as dm_specs
import numpy as np
import pytest

from seed_acme import types
from seed_acme.envs import float_specs
from seed_acme.envs import vector
from seed_acme.testing import environment_contract
from tests import scripted_environments

ZEROS = np.zeros(2, np.int32)


class TestNestedContract(environment_contract.EnvironmentContract):
  def make_environment(self, num_environments, seed):
    return vector.VectorOfEnvironments(
      [scripted_environments.NestedEnvironment(1000 * seed + i) for i in range(num_environments)],
      'nested',
    )


class TestScriptedContract(environment_contract.EnvironmentContract):
  is_random = False

  def make_environment(self, num_environments, seed):
    return vector.VectorOfEnvironments(
      [scripted_environments.ScriptedEnvironment(seed, (2, 5, 1)) for _ in range(num_environments)],
      'scripted',
    )


class Faulty(scripted_environments.ScriptedEnvironment):
  """An environment that is valid in its first row; `fault` replaces fields of later rows."""

  def __init__(self, fault=None, first_fault=None):
    super().__init__(episode_lengths=(5,))
    self._fault, self._first_fault = fault or {}, first_fault or {}

  def reset(self):
    return super().reset()._replace(**self._first_fault)

  def step(self, action):
    return super().step(action)._replace(**self._fault)


def two(second):
  return vector.VectorOfEnvironments([scripted_environments.ScriptedEnvironment(), second], 'pair')


def test_each_environment_ends_and_restarts_alone():
  environment = vector.VectorOfEnvironments(
    [
      scripted_environments.ScriptedEnvironment(episode_lengths=(2,)),
      scripted_environments.ScriptedEnvironment(episode_lengths=(3,), last_discount=0.5),
    ],
    'pair',
  )
  rows = [environment.reset()] + [environment.step(ZEROS) for _ in range(5)]
  np.testing.assert_array_equal(
    [row.step_type for row in rows], [[0, 0], [1, 1], [2, 1], [0, 2], [1, 0], [2, 1]]
  )
  np.testing.assert_array_equal(
    [row.reward for row in rows], [[0, 0], [1, 1], [2, 2], [0, 3], [1, 0], [2, 1]]
  )
  np.testing.assert_array_equal(
    [row.discount for row in rows], [[1, 1], [1, 1], [0, 1], [1, 0.5], [1, 1], [0, 1]]
  )
  np.testing.assert_array_equal(rows[4].observation, [[1, 1], [1, 0]])


def test_each_environment_gets_its_own_action():
  inner = [scripted_environments.ScriptedEnvironment(), scripted_environments.ScriptedEnvironment()]
  environment = vector.VectorOfEnvironments(inner, 'pair')
  environment.reset()
  for actions in ((0, 1), (1, 1), (1, 0), (1, 1)):  # the fourth action meets LAST
    environment.step(np.array(actions))
  assert inner[0].actions == [0, 1, 1]
  assert inner[1].actions == [1, 1, 0]


def test_float64_becomes_float32_and_other_dtypes_stay():
  environment = vector.VectorOfEnvironments([scripted_environments.NestedEnvironment()], 'nested')
  spec = environment.spec
  assert spec.observation['joints']['position'].dtype == np.float32
  assert spec.observation['camera'].dtype == np.uint8
  assert spec.action['force'].dtype == np.float32
  assert spec.action['force'].minimum.dtype == np.float32
  assert environment.reset().observation['joints']['position'].dtype == np.float32


def test_narrowed_action_bounds_stay_inside_and_exact_ones_stay():
  low, high = np.array([-0.1, -0.8, -1.0]), np.array([0.7, 1.1, 1e20])

  class Odd(scripted_environments.ScriptedEnvironment):
    def action_spec(self):
      return dm_specs.BoundedArray((3,), np.float64, low, high)

  spec = vector.VectorOfEnvironments([Odd()], 'odd').spec.action
  assert spec.minimum.dtype == spec.maximum.dtype == np.float32
  assert (spec.minimum >= low).all() and (spec.maximum <= high).all()
  np.testing.assert_allclose(spec.minimum, low, rtol=2e-7)
  np.testing.assert_allclose(spec.maximum[:2], high[:2], rtol=2e-7)
  assert spec.minimum[2] == -1
  assert np.isfinite(spec.maximum).all()


@pytest.mark.parametrize('dtype', [np.float32, np.float64])
@pytest.mark.parametrize(
  ('low', 'high'), [(-1e30, 1e30), (0, np.finfo(np.float32).max), ([-1, -1], [1, np.inf])]
)
def test_bounds_of_actions_that_are_limits_of_the_type_are_none(dtype, low, high):
  """Otherwise the environment would get actions of 1e37, scaled to its bounds."""

  class Odd(scripted_environments.ScriptedEnvironment):
    def action_spec(self):
      return dm_specs.BoundedArray((2,), dtype, low, high)

  spec = vector.VectorOfEnvironments([Odd()], 'odd').spec
  assert spec.action == dm_specs.Array((2,), np.float32)


def test_a_bound_for_all_numbers_is_held_like_one_for_each():
  spec = dm_specs.BoundedArray((2,), np.float64, 0.7, [0.7, 1.0])
  low, high = float_specs.clip_bounds(spec)
  assert low == 0.7 and high.tolist() == [0.7, 1.0]


@pytest.mark.parametrize(
  'low, high, got',
  [
    ([-1, 0.1], [1, 0.1], 0.1),  # a locked joint, at a number that float32 has not
    ([-1, 0.1 + 1e-12], [1, 0.1 + 2e-12], 0.1 + 2e-12),  # no float32 lies between these
    ([-1, -0.7], [1, -0.7], -0.7),
    ([-1, 0.5], [1, 0.5], 0.5),
  ],
)
def test_an_action_that_cannot_vary_reaches_the_environment_within_its_bounds(low, high, got):
  received = []

  class Locked(scripted_environments.ScriptedEnvironment):
    def action_spec(self):
      return dm_specs.BoundedArray((2,), np.float64, low, high)

    def step(self, action):
      received.append(action)
      return super().step(action[0])

  environment = vector.VectorOfEnvironments([Locked(), Locked()], 'locked')
  spec = environment.spec.action
  assert spec.minimum[1] == spec.maximum[1] == np.float32(got)
  assert (spec.minimum[0], spec.maximum[0]) == (-1, 1)
  environment.reset()
  environment.step(np.stack([spec.minimum, spec.maximum]))
  assert [action.tolist() for action in received] == [[-1, got], [1, got]]
  assert received[0].dtype == np.float64


def test_environment_gets_its_own_action_dtype():
  received = []

  class Recording(scripted_environments.NestedEnvironment):
    def step(self, action):
      received.append(action)
      return super().step(action)

  environment = vector.VectorOfEnvironments([Recording()], 'nested')
  environment.reset()
  environment.step({'button': np.array([2], np.int64), 'force': np.full((1, 2), 0.5, np.float32)})
  assert received[0]['force'].dtype == np.float64
  assert received[0]['button'].dtype == np.int32
  assert received[0]['button'] == 2


def test_what_an_environment_writes_stays_with_it():

  class Clipping(scripted_environments.NestedEnvironment):
    def step(self, action):
      action['force'][:] = 9
      return super().step(action)

  environment = vector.VectorOfEnvironments([Clipping()], 'clipping')
  environment.reset()
  force = np.full((1, 2), 0.5, np.float64)
  environment.step({'button': np.array([2], np.int32), 'force': force})
  np.testing.assert_array_equal(force, 0.5)


def test_score_is_the_reward_unless_the_environment_has_its_own():
  environment = vector.VectorOfEnvironments([scripted_environments.NestedEnvironment(3)], 'nested')
  environment.reset()
  row = environment.step({'button': np.array([0]), 'force': np.zeros((1, 2))})
  assert row.score[0] < 0
  np.testing.assert_allclose(row.reward, row.score / 2)
  assert environment.spec.frames_per_step == 4
  plain = two(scripted_environments.ScriptedEnvironment())
  plain.reset()
  row = plain.step(ZEROS)
  np.testing.assert_array_equal(row.score, [1, 1])
  row.reward[:] = 7  # rows belong to the caller, who may scale rewards in place
  np.testing.assert_array_equal(row.score, [1, 1])
  assert plain.spec.frames_per_step == 1


def test_a_score_counts_from_the_step_that_sets_it():
  class Late(scripted_environments.ScriptedEnvironment):
    def __init__(self, scored_row):
      super().__init__(episode_lengths=(5,))
      self._scored_row = scored_row

    def step(self, action):
      timestep = super().step(action)
      if self._row >= self._scored_row:
        self.last_score = 7.0
      return timestep

  environment = vector.VectorOfEnvironments([Late(2), Late(1)], 'late')
  scores = [environment.reset().score, *(environment.step(ZEROS).score for _ in range(2))]
  np.testing.assert_array_equal(scores, [[0, 0], [1, 7], [7, 7]])


def test_frames_per_step_may_be_of_numpy_but_is_whole():
  inner = scripted_environments.ScriptedEnvironment()
  inner.frames_per_step = np.int64(4)
  frames = vector.VectorOfEnvironments([inner], 'numpy').spec.frames_per_step
  assert frames == 4 and type(frames) is int
  inner.frames_per_step = 4.0
  words = r'environment 0 of float: frames_per_step: expected an int, got 4\.0'
  with pytest.raises(types.UserError, match=words):
    vector.VectorOfEnvironments([inner], 'float')


@pytest.mark.parametrize(
  ('fault', 'message'),
  [
    ({'reward': np.nan}, r'environment 1 of pair: reward: expected a finite scalar, got nan'),
    ({'reward': np.inf}, r'reward: expected a finite scalar, got inf'),
    ({'reward': None}, r'reward: expected a finite scalar, got None'),
    ({'reward': np.ones(1)}, r'reward: expected a finite scalar, got array\(\[1\.\]\)'),
    ({'reward': [1.0]}, r'reward: expected a finite scalar, got \[1\.0\]'),
    ({'reward': 'high'}, r"reward: expected a finite scalar, got 'high'"),
    ({'reward': '1'}, r"reward: expected a finite scalar, got '1'"),
    ({'reward': list(range(99))}, r'reward: expected a finite scalar, got .{97}\.\.\.$'),
    ({'reward': 1e300}, r'reward: expected a finite scalar, got 1e\+300'),
    ({'discount': 1.5}, r'discount: expected a number in \[0, 1\], got 1\.5$'),
    ({'discount': 5}, r'discount: expected a number in \[0, 1\], got 5\.0'),
    ({'discount': [1.0]}, r'discount: expected a finite scalar, got \[1\.0\]'),
    ({'discount': None}, r'discount: expected a finite scalar, got None'),
    (
      {'observation': np.zeros(3, np.float32)},
      r'observation: expected float32 of shape \(2,\), got float32 of shape \(3,\)',
    ),
    ({'observation': np.zeros(2)}, r'observation: expected float32 .* got float64'),
    (
      {'observation': np.array([0, np.nan], np.float32)},
      r'observation: expected finite numbers, got nan at \[1\]',
    ),
    ({'observation': [1.0]}, r'observation: expected float32 .* got float64 of shape \(1,\)'),
    ({'observation': 'A'}, r'observation: expected float32 .* got <U1 of shape \(\)'),
    (
      {'step_type': dm_env.StepType.FIRST},
      r'step_type: expected MID or LAST \(within an episode\), got FIRST',
    ),
    ({'step_type': 'MID'}, r"step_type: expected MID or LAST \(within an episode\), got 'MID'"),
    ({'step_type': 7}, r'step_type: expected MID or LAST \(within an episode\), got 7'),
  ],
)
def test_wrong_values_are_named(fault, message):
  environment = two(Faulty(fault))
  environment.reset()
  # A non-finite number may occur once in a day; a wrong shape or type is a bug of the environment.
  with pytest.raises(types.UserError, match=message) as error:
    environment.step(ZEROS)
  is_finite = re.search(r'got (nan|inf|1e)', message) is None
  assert isinstance(error.value, types.NotFinite) != is_finite


def test_wrong_first_row_is_named():
  words = (
    r'environment 1 of pair: step_type: expected FIRST \(at the start and after LAST\), got MID'
  )
  with pytest.raises(types.UserError, match=words):
    two(Faulty(first_fault={'step_type': dm_env.StepType.MID})).reset()


def test_what_is_no_time_step_is_named():
  class Gymlike(scripted_environments.ScriptedEnvironment):
    def step(self, action):
      return np.zeros(2, np.float32), 1.0, False, {}

  environment = two(Gymlike())
  environment.reset()
  words = r'environment 1 of pair: time step: expected a dm_env\.TimeStep, got tuple'
  with pytest.raises(types.UserError, match=words):
    environment.step(ZEROS)


@pytest.mark.filterwarnings('ignore:overflow')
def test_a_number_beyond_float32_is_shown_as_the_environment_gave_it():
  class Large(scripted_environments.NestedEnvironment):
    def _observation(self):
      observation = super()._observation()
      observation['joints'] = {'position': np.array([0, 1e300])}
      return observation

  words = r'observation/joints/position: expected finite numbers, got 1e\+300 at \[1\]'
  with pytest.raises(types.NotFinite, match=words):
    vector.VectorOfEnvironments([Large()], 'nested').reset()


def test_wrong_nested_observation_is_named_with_its_path():
  class WrongCamera(scripted_environments.NestedEnvironment):
    def _observation(self):
      return {**super()._observation(), 'camera': np.zeros((4, 4), np.uint8)}

  class OtherKey(scripted_environments.NestedEnvironment):
    def _observation(self):
      return {'camera': super()._observation()['camera'], 'legs': np.zeros(2)}

  class NoJoints(scripted_environments.NestedEnvironment):
    def _observation(self):
      return {'camera': super()._observation()['camera']}

  with pytest.raises(types.UserError, match=r'nested: observation/camera: expected uint8'):
    vector.VectorOfEnvironments([WrongCamera()], 'nested').reset()
  for wrong in (OtherKey, NoJoints):
    with pytest.raises(types.UserError, match=r"expected the structure .*joints.*, got {'camera'"):
      vector.VectorOfEnvironments([wrong()], 'nested').reset()


@pytest.mark.parametrize('field', ['reward', 'observation'])
def test_nan_environment_is_caught_at_its_step(field):
  environment = vector.VectorOfEnvironments(
    [scripted_environments.NanEnvironment(nan_at_step=2, field=field)], 'nan'
  )
  environment.reset()
  environment.step(np.zeros(1, np.int32))
  with pytest.raises(types.NotFinite, match=f'environment 0 of nan: {field}'):
    environment.step(np.zeros(1, np.int32))


def test_exceptions_of_an_environment_pass_through():
  environment = two(scripted_environments.RaisingEnvironment(raise_at_step=2))
  environment.reset()
  environment.step(ZEROS)
  with pytest.raises(RuntimeError, match='scripted failure at step 2'):
    environment.step(ZEROS)


def test_unequal_specifications_are_refused():
  class Wider(scripted_environments.ScriptedEnvironment):
    def action_spec(self):
      return dm_specs.DiscreteArray(7, dtype=np.int32, name='action')

  with pytest.raises(
    types.UserError,
    match=r'environment 1 of pair: specification: .*environment 0, .*action: .* -> int32.*7 values',
  ):
    two(Wider())


def test_specifications_may_differ_in_names_but_not_in_one_of_many_bounds():
  """numpy shows arrays of more than 1,000 numbers in part."""
  highs = np.linspace(1, 2, 5000, dtype=np.float32)

  class Many(scripted_environments.ScriptedEnvironment):
    def __init__(self, name, high):
      super().__init__()
      self._spec = dm_specs.BoundedArray((5000,), np.float32, -1, high, name)

    def action_spec(self):
      return self._spec

  vector.VectorOfEnvironments([Many('a', highs), Many('b', highs)], 'pair')
  other = highs.copy()
  other[2500] = 2
  with pytest.raises(types.UserError, match='environment 1 of pair: .*action: .* -> other bounds'):
    vector.VectorOfEnvironments([Many('a', highs), Many('b', other)], 'pair')


@pytest.mark.parametrize('actions', [np.zeros(3, np.int32), np.zeros((2, 1), np.int32)])
def test_actions_of_a_wrong_shape_are_refused(actions):
  environment = two(scripted_environments.ScriptedEnvironment())
  environment.reset()
  with pytest.raises(ValueError, match=r'expected \(2,\)'):
    environment.step(actions)


def test_close_reaches_every_environment_though_one_raises():
  class BadClose(scripted_environments.ScriptedEnvironment):
    def close(self):
      raise OSError('window is gone')

  inner = [
    scripted_environments.ScriptedEnvironment(),
    BadClose(),
    scripted_environments.ScriptedEnvironment(),
  ]
  with pytest.raises(OSError, match='window is gone'):
    vector.VectorOfEnvironments(inner, 'trio').close()
  assert inner[0].is_closed
  assert inner[2].is_closed


def test_no_environment_is_refused():
  with pytest.raises(types.UserError, match=r'num_environments \(0\)'):
    vector.VectorOfEnvironments([], 'none')
