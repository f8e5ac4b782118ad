"""CheckedEnvironment: each wrong value of a vector is named, in the first row or later."""

from dm_env import specs as dm_specs
import numpy as np
import pytest
import tree

from seed_acme import types
from seed_acme.envs import checked
from seed_acme.envs import choices

F, M, L = types.FIRST, types.MID, types.LAST
SPEC = types.EnvironmentSpec(
  {
    'camera': dm_specs.BoundedArray((2, 2), np.uint8, 0, 255),
    'cell': dm_specs.DiscreteArray(3, np.int32),
    'far': dm_specs.Array((), np.float64),
    'hand': choices.ChoicesArray([2, 200], np.uint8),
    'joints': dm_specs.Array((2,), np.float32),
    'signed': choices.ChoicesArray([[128, 3]], np.int8),
  },
  dm_specs.DiscreteArray(2, np.int32),
)


class Scripted:
  """Three valid environments with rows FIRST, MID, LAST, FIRST ...; `fault` changes row `at`."""

  num_environments = 3
  spec = SPEC

  def __init__(self, fault=lambda row: row, at=0):
    self._fault, self._at, self._number = fault, at, -1
    self.is_closed = False

  def reset(self):
    self._number = -1
    return self.step(None)

  def step(self, actions):
    self._number += 1
    floats = np.zeros(3, np.float32)
    row = types.VectorTimeStep(
      np.full(3, (F, M, L)[self._number % 3], np.uint8),
      floats,
      floats + 1,
      tree.map_structure(
        lambda spec: np.zeros((3, *spec.shape), spec.dtype), self.spec.observation
      ),
      floats.copy(),
    )
    return self._fault(row) if self._number == self._at else row

  def close(self):
    self.is_closed = True


def set_(field, value, index=1):
  """Returns a fault that sets a field of environment 1 to this value."""

  def fault(row):
    def change(path, array):
      if '/'.join(map(str, path)) != field:
        return array
      array = array.copy()
      array[index] = value
      return array

    return tree.map_structure_with_path(change, row)

  return fault


def replace(**fields):
  return lambda row: row._replace(**fields)


def without(key):
  return lambda row: row._replace(
    observation={k: v for k, v in row.observation.items() if k != key}
  )


def observation(key, value):
  return lambda row: row._replace(observation={**row.observation, key: value})


ONE = 'environment 1 of script: '
ALL = 'environments 0 ... 2 of script: '
WRONG = [
  (set_('discount', 5), ONE + 'discount: expected a number in [0, 1], got 5.0'),
  (set_('discount', -0.5), ONE + 'discount: expected a number in [0, 1], got -0.5'),
  (set_('step_type', 3), ONE + 'step_type: expected {}, got 3'),
  (set_('observation/cell', 3), ONE + 'observation/cell: expected 0 ... 2, got 3'),
  (set_('observation/cell', -1), ONE + 'observation/cell: expected 0 ... 2, got -1'),
  (
    set_('observation/hand', 200, (1, 1)),
    ONE + 'observation/hand: expected 0 ... 199, got 200 at [1]',
  ),
  (
    set_('observation/signed', -128, (1, 0, 0)),
    ONE + 'observation/signed: expected 0 ... 127, got -128 at [0, 0]',
  ),
  (set_('observation/hand', 2, (1, 0)), ONE + 'observation/hand: expected 0 ... 1, got 2 at [0]'),
  (replace(reward=[0.0, 0.0, 0.0]), ALL + 'reward: expected float32 of shape (3,), got list'),
  (
    replace(reward=np.zeros((3, 1), np.float32)),
    ALL + 'reward: expected float32 of shape (3,), got float32 of shape (3, 1)',
  ),
  (
    replace(score=np.zeros(3)),
    ALL + 'score: expected float32 of shape (3,), got float64 of shape (3,)',
  ),
  (without('far'), ALL + 'observation: expected the structure of the specification, '),
  (
    observation('camera', np.zeros((3, 2, 2), np.int64)),
    ALL + 'observation/camera: expected uint8 of shape (3, 2, 2), got int64 of shape (3, 2, 2)',
  ),
  (
    observation('joints', np.array(['A', 'B', 'C'])),
    ALL + 'observation/joints: expected float32 of shape (3, 2), got <U1 of shape (3,)',
  ),
  (lambda row: (row.observation, 1.0), ALL + 'time step: expected a seed_acme.types.Vec'),
]
NOT_FINITE = [
  (set_('reward', np.nan), ONE + 'reward: expected a finite scalar, got nan'),
  (set_('score', -np.inf), ONE + 'score: expected a finite scalar, got -inf'),
  (set_('discount', np.nan), ONE + 'discount: expected a finite scalar, got nan'),
  (set_('observation/far', 1e300), ONE + 'observation/far: expected finite numbers, got 1e+300'),
  (set_('observation/far', -1e39), ONE + 'observation/far: expected finite numbers, got -1e+39'),
  (
    set_('observation/joints', np.inf, (1, 1)),
    ONE + 'observation/joints: expected finite numbers, got inf at [1]',
  ),
]


def error_of(fault, at):
  environment = checked.CheckedEnvironment(Scripted(fault, at), 'script')
  rows = iter([environment.reset, *[lambda: environment.step(np.zeros(3, np.int32))] * 9])
  for _ in range(at):
    next(rows)()
  with pytest.raises(types.UserError) as error:
    next(rows)()
  return error.value


@pytest.mark.parametrize('at', [0, 1, 3, 4])
@pytest.mark.parametrize('fault, words', WRONG)
def test_what_contradicts_the_specification_is_named(fault, words, at):
  error = error_of(fault, at)
  expected = 'MID or LAST (within an episode)' if at % 3 else 'FIRST (at the start and after LAST)'
  assert str(error).startswith(words.format(expected) if '{}' in words else words)
  assert not isinstance(error, types.NotFinite)


@pytest.mark.parametrize('at', [0, 4])
@pytest.mark.parametrize('fault, words', NOT_FINITE)
def test_what_is_not_finite_in_float32_may_be_so_the_next_time(fault, words, at):
  error = error_of(fault, at)
  assert str(error) == words and isinstance(error, types.NotFinite)


@pytest.mark.parametrize(
  'at, step_type, expected, got',
  [
    (0, M, 'FIRST (at the start and after LAST)', 'MID'),
    (0, L, 'FIRST (at the start and after LAST)', 'LAST'),
    (1, F, 'MID or LAST (within an episode)', 'FIRST'),
    (2, F, 'MID or LAST (within an episode)', 'FIRST'),
    (3, M, 'FIRST (at the start and after LAST)', 'MID'),
    (3, L, 'FIRST (at the start and after LAST)', 'LAST'),
  ],
)
def test_step_types_that_cannot_follow_each_other_are_named(at, step_type, expected, got):
  error = error_of(set_('step_type', step_type), at)
  assert str(error) == f'{ONE}step_type: expected {expected}, got {got}'


def test_a_reset_begins_anew_wherever_the_episode_stands():
  environment = checked.CheckedEnvironment(Scripted(at=-1), 'script')
  for _ in range(2):
    environment.reset()
    environment.step(np.zeros(3, np.int32))
  environment.close()


def test_extreme_values_within_the_specification_pass_as_they_are():
  largest = float(np.finfo(np.float32).max)
  inside = Scripted(set_('observation/far', -largest), 0)
  row = checked.CheckedEnvironment(inside, 'script').reset()
  assert row.observation['far'].tolist() == [0, -largest, 0]
  for field, value in (
    ('observation/hand', [1, 199]),
    ('observation/signed', [[127, 2]]),
    ('discount', 0),
    ('discount', -0.0),
    ('reward', largest),
  ):
    checked.CheckedEnvironment(Scripted(set_(field, value), 0), 'script').reset()
