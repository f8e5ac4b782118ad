"""The fake environments do what their docstrings say."""

import dm_env
import numpy as np
import pytest

from tests import scripted_environments


def play(environment, num_steps):
  rows = [environment.reset()]
  for _ in range(num_steps):
    rows.append(environment.step(np.int32(1)))
  return rows


def test_scripted_lengths_repeat():
  environment = scripted_environments.ScriptedEnvironment(
    episode_lengths=(1, 3), last_discount=0.25
  )
  rows = play(environment, 8)
  assert [int(row.step_type) for row in rows] == [0, 2, 0, 1, 1, 2, 0, 2, 0]
  assert [row.observation.tolist() for row in rows[1:6]] == [[0, 1], [1, 0], [1, 1], [1, 2], [1, 3]]
  assert [row.reward for row in rows[3:6]] == [1, 2, 3]
  assert rows[5].discount == 0.25
  assert len(environment.actions) == 5  # the three steps after LAST took no action


def test_truncating_environment_never_terminates():
  rows = play(scripted_environments.TruncatingEnvironment(episode_length=2, reward=3.0), 5)
  assert [int(row.step_type) for row in rows] == [0, 1, 2, 0, 1, 2]
  assert all(row.reward == 3 and row.discount == 1 for row in rows if not row.first())
  assert all(row.observation == 1 for row in rows)


def test_raising_environment_raises_at_its_step():
  environment = scripted_environments.RaisingEnvironment(raise_at_step=4, episode_length=3)
  play(environment, 4)  # three steps and a reset
  with pytest.raises(RuntimeError, match='step 4'):
    environment.step(np.int32(0))


@pytest.mark.parametrize('field', ['reward', 'observation'])
def test_nan_environment_starts_at_its_step(field):
  rows = play(scripted_environments.NanEnvironment(nan_at_step=2, field=field), 2)
  assert not np.isnan(getattr(rows[1], field)).any()
  assert np.isnan(getattr(rows[2], field)).all()
  other = {'reward': 'observation', 'observation': 'reward'}[field]
  assert not np.isnan(getattr(rows[2], other)).any()


def test_nested_environment_ends_in_both_ways():
  environment = scripted_environments.NestedEnvironment(seed=1)
  timestep, last_discounts = environment.reset(), set()
  action = {'button': np.int32(0), 'force': np.array([0.5, 0.0])}
  for _ in range(100):
    environment.observation_spec()['camera'].validate(timestep.observation['camera'])
    timestep = environment.step(action)
    if timestep.step_type != dm_env.StepType.FIRST:
      assert timestep.reward == environment.last_score / 2
    if timestep.last():
      last_discounts.add(timestep.discount)
  assert last_discounts == {0, 1}
