"""Vectors of gymnasium, with each way to begin the next episode."""

import numpy as np
import pytest

from seed_acme import types
from seed_acme.envs import checked
from seed_acme.envs import registry
from seed_acme.testing import environment_contract
from tests.envs import configs

pytest.importorskip('gymnasium', minversion='1.1')
_MINE = 'tests.envs.gym_vectors'
_MODES = ('NextStep', 'SameStep', 'Disabled')


def _make(name, num_environments=4, seed=7, **settings):
  environment = registry.make(configs.of(name, **settings), num_environments, seed)
  return checked.CheckedEnvironment(environment, name)


def _play(environment, num_steps=30):
  rows = environment_contract.play(environment, num_steps)
  environment.close()
  return rows


class _Contract(environment_contract.EnvironmentContract):
  name, settings = '', {}

  def make_environment(self, num_environments, seed):
    return _make(self.name, num_environments, seed, **self.settings)


class TestSync(_Contract):
  name = 'gymnasium:CartPole-v1'
  settings = {'vectorization_mode': 'sync', 'max_episode_steps': 12}


class TestVectorEntryPoint(_Contract):
  name = 'gymnasium:CartPole-v1'
  settings = {'vectorization_mode': 'vector_entry_point', 'max_episode_steps': 12}
  has_seed_per_environment = False

  # One random stream serves all environments, in the order in which episodes begin.
  test_environments_do_not_touch_each_other = None


class TestSameStep(_Contract):
  name, settings = f'{_MINE}:make', {'mode': 'SameStep'}


class TestDisabled(_Contract):
  name, settings = f'{_MINE}:make', {'mode': 'Disabled'}


@pytest.mark.processes
@pytest.mark.parametrize('mode', ['sync', 'async'])
def test_a_vector_is_what_single_environments_are(mode):
  """Compares row by row: ends by falling and by the time limit, observations, rewards."""
  one_by_one = _make('gymnasium:CartPole-v1', max_episode_steps=12)
  together = _make('gymnasium:CartPole-v1', max_episode_steps=12, vectorization_mode=mode)
  assert together.spec == one_by_one.spec
  for ours, theirs in zip(_play(one_by_one), _play(together), strict=True):
    environment_contract.assert_equal_rows(ours, theirs)


@pytest.mark.parametrize('mode', _MODES)
@pytest.mark.parametrize('truncates', [True, False])
def test_an_end_shows_its_own_last_row_and_the_next_its_first(mode, truncates):
  environment = _make(f'{_MINE}:make', mode=mode, truncates=truncates)
  rows = _play(environment, 11)
  row_types = np.stack([row.step_type for row in rows])  # [T, E]
  shown = np.stack([row.observation['row'][:, 0] for row in rows])
  for index, length in enumerate((3, 4, 3, 4)):
    numbers = np.arange(12) % (length + 1)
    np.testing.assert_array_equal(shown[:, index], numbers)
    expected = np.where(
      numbers == 0, types.FIRST, np.where(numbers == length, types.LAST, types.MID)
    )
    np.testing.assert_array_equal(row_types[:, index], expected)
  discounts = np.stack([row.discount for row in rows])
  np.testing.assert_array_equal(
    discounts, np.where((row_types == types.LAST) & (not truncates), 0, 1)
  )


@pytest.mark.parametrize('mode', _MODES)
def test_nested_spaces_and_choices_that_begin_elsewhere(mode):
  environment = _make(f'{_MINE}:make', 2, mode=mode)
  alone = _make(f'{_MINE}:make_alone', 2)
  assert environment.spec == alone.spec
  alone.close()
  environment.reset()
  action = {'turn': np.array([2, 0], np.int32), 'push': np.array([[0.25, 0], [-1, 0]], np.float32)}
  row = environment.step(action)
  environment.close()
  np.testing.assert_array_equal(row.reward, [0.75, -0.5])
  first, second = row.observation['choices']
  np.testing.assert_array_equal(first, [1, 1])
  np.testing.assert_array_equal(second[:, 0], [2, 0])  # the turns, -1 ... 1 there


@pytest.mark.parametrize('factory', ['make_locked', 'make_locked_alone'])
@pytest.mark.parametrize('rescales', [True, False])
def test_an_action_that_cannot_vary_is_the_space_s_own(factory, rescales):
  environment = _make(f'{_MINE}:{factory}', 2, rescale_actions=rescales)
  environment.reset()
  for bound in environment.spec.action.minimum, environment.spec.action.maximum:
    row = environment.step(np.stack([bound, bound]))  # the space is asserted there
    np.testing.assert_array_equal(row.observation, [[bound[0], np.float32(0.1)]] * 2)
  environment.close()


def test_the_seed_of_a_run_decides_and_is_given_once():
  first, again, other = (_make(f'{_MINE}:make', 2, seed=seed) for seed in (1, 1, 2))
  noise = [e.reset().observation['row'][:, 1].tolist() for e in (first, again, other)]
  assert noise[0] == noise[1] != noise[2]
  assert len({*noise[0], *first.reset().observation['row'][:, 1]}) == 4
  for environment in (first, again, other):
    environment.close()


def test_pictures_show_environment_0():
  config = configs.of(f'{_MINE}:make', render_mode='rgb_array')
  environment = registry.make(config, 2, 1, renders=True)
  environment.reset()
  environment.step(environment_contract.random_actions(environment, np.random.default_rng(1)))
  np.testing.assert_array_equal(environment.render(), np.full((2, 3, 3), 1))
  environment.close()
  with pytest.raises(types.UserError, match='cannot show its screen'):
    registry.make(configs.of(f'{_MINE}:make'), 2, 1, renders=True)


def test_pictures_of_an_id_come_from_a_single_environment():
  pytest.importorskip('pygame')
  environment = registry.make(
    configs.of('gymnasium:CartPole-v1', vectorization_mode='sync'), 2, 1, renders=True
  )
  environment.reset()
  assert environment.render().shape == (400, 600, 3)
  environment.close()


@pytest.mark.parametrize(
  ('name', 'settings', 'message'),
  [
    (
      'gymnasium:CartPole-v1',
      {'vectorization_mode': 'threads'},
      r"vectorization_mode \('threads'\) must be one of sync, async, vector_entry_point",
    ),
    (
      'gymnasium:Pendulum-v1',
      {'vectorization_mode': 'vector_entry_point'},
      'it has none; take sync or async',
    ),
    (
      'gymnasium:CartPole-v1',
      {'vectorization_mode': 'vector_entry_point', 'gravity': 3},
      "no setting 'gravity': expected max_episode_steps",
    ),
    ('CartPole-v1', {'vectorization_mode': 'sync'}, "no setting 'vectorization_mode'"),
    (f'{_MINE}:make', {'missing': 1}, 'the vector has 3 environments instead of 4'),
    (f'{_MINE}:make_silent', {}, r"metadata\['autoreset_mode'\] of the vector \(None\) must be"),
    (f'{_MINE}:make_without_number', {}, 'returned SyncVectorEnv: .* parameter num_environments'),
  ],
)
def test_what_is_wrong_is_said_before_the_first_step(name, settings, message):
  with pytest.raises(types.UserError, match=message):
    _make(name, **settings)


@pytest.mark.parametrize(
  ('name', 'settings', 'message'),
  [
    (f'{_MINE}:make', {'mode': 'SameStep', 'is_deaf': True}, 'does not heed the reset_mask'),
    (f'{_MINE}:make_no_final', {}, "its info has no 'final_obs'"),
    (f'{_MINE}:make_lists_info', {}, "its info is a list: give a dict with .* as 'final_obs'"),
  ],
)
def test_a_vector_that_does_not_keep_the_contract_is_named(name, settings, message):
  environment = _make(name, **settings)
  with pytest.raises(types.UserError, match=f'{message}.*autoreset_mode=NextStep'):
    environment_contract.play(environment, 10)
  environment.close()


@pytest.mark.parametrize(('field', 'name'), [(1, 'reward'), (2, 'terminated'), (3, 'truncated')])
def test_a_column_of_numbers_is_named_before_it_is_broadcast(field, name):
  environment = _make(f'{_MINE}:make_columns', field=field)
  with pytest.raises(types.UserError, match=rf'{name}: expected shape \(4,\), got \(4, 1\)$'):
    environment_contract.play(environment, 2)
  environment.close()


@pytest.mark.parametrize(
  ('how', 'message'),
  [
    ('wraps uint8', 'observation/a: expected uint8 of shape .*, got uint16'),
    ('wraps a choice', 'observation/b: expected int32 of shape .*, got int64'),
    ('lacks a key', 'observation: expected the structure of the space, .*, got'),
    ('returns four', 'what step.. returns: expected observation, reward, terminated'),
  ],
)
def test_what_a_vector_returns_wrongly_is_named(how, message):
  environment = _make(f'{_MINE}:make_faulty', how=how)
  environment.reset()
  with pytest.raises(types.UserError, match=message):
    environment.step(np.zeros((4, 2), np.int64))
  environment.close()


def test_keys_that_no_space_has_are_left_out():
  environment = _make(f'{_MINE}:make_faulty', how='has one key too many')
  environment.reset()
  row = environment.step(np.zeros((4, 2), np.int64))
  assert sorted(row.observation) == ['a', 'b']
  np.testing.assert_array_equal(row.observation['b'], [1, 1, 1, 1])
  environment.close()


@pytest.mark.parametrize('action', [[2, 0], [0, 3], [-1, 0]])
def test_choices_that_do_not_exist_are_refused(action):
  environment = _make(f'{_MINE}:make_faulty')
  environment.reset()
  with pytest.raises(ValueError, match=r'expected 0 ... \[1, 2\]'):
    environment.step(np.array([[0, 0], [0, 0], action, [0, 0]]))
  environment.close()


def test_actions_of_another_shape_are_refused():
  environment = _make('gymnasium:Pendulum-v1', 2, vectorization_mode='sync')
  environment.reset()
  with pytest.raises(ValueError, match=r'actions of shape \(2,\): expected \(2, 1\)'):
    environment.step(np.zeros(2, np.float32))
  environment.close()


@pytest.mark.parametrize('mode', _MODES)
def test_returned_arrays_belong_to_the_caller(mode):
  """A vector that returns its own buffers gives the same rows as one that copies them."""
  rows = _play(_make(f'{_MINE}:make', copy=False, mode=mode))
  for row, copied in zip(rows, _play(_make(f'{_MINE}:make', mode=mode)), strict=True):
    environment_contract.assert_equal_rows(row, copied)
