"""How R2D2 acts: the rate of random actions by environment, and which actions they are."""

from __future__ import annotations

from dm_env import specs
import numpy as np
import pytest
from scipy import stats

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.agents.r2d2 import agent
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.agents.r2d2 import policy
from seed_acme.inference import noise

_CONFIG = r2d2_config.R2D2Config()


def _exploration(uniforms, place=0.0, is_evaluation=False):
  uniforms = np.asarray(uniforms, np.float32)
  number = uniforms.shape[0]
  return types.Exploration(
    uniforms,
    np.broadcast_to(np.float32(place), number).copy(),
    np.broadcast_to(is_evaluation, number).copy(),
    np.zeros(number, np.int64),
  )


def _act(q_values, exploration, config=_CONFIG):
  q_values = np.asarray(q_values, np.float32)
  return policy.select_actions(
    types.QOutput(q_values), exploration, num_actions=q_values.shape[-1], config=config
  )


@pytest.mark.parametrize('number', [2, 5, 610])
def test_epsilons_are_the_powers_of_the_paper(number):
  place = (np.arange(number) / (number - 1)).astype(np.float32)
  expected = [0.4 ** (1 + 7 * i / (number - 1)) for i in range(number)]
  found = policy.epsilons(_exploration(np.zeros((number, 2)), place), _CONFIG)
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  assert found.dtype == np.float32


def test_evaluation_has_its_own_epsilon_at_every_place():
  is_evaluation = np.array([True, False, True, False])
  found = policy.epsilons(
    _exploration(np.zeros((4, 2)), np.float32([0, 0, 1, 1]), is_evaluation), _CONFIG
  )
  np.testing.assert_allclose(found, [1e-3, 0.4, 1e-3, 0.4**8], rtol=1e-5)


def _random_uniforms(number, seed=11):
  """Returns uniforms drawn like the inference server's."""
  keys = noise.stream_keys(seed, np.zeros(number, np.int64), np.zeros(number, np.int64))
  return noise.uniforms(keys, np.arange(number, dtype=np.uint64), 2)


@pytest.mark.parametrize(
  'place, is_evaluation', [(0.0, False), (0.3, False), (1.0, False), (0.3, True)]
)
def test_random_actions_come_as_often_as_epsilon_says(place, is_evaluation):
  number, num_actions = 200_000, 4
  epsilon = 1e-3 if is_evaluation else 0.4 ** (1 + 7 * place)
  output = _act(
    np.tile([0.0, 2.0, 1.0, -1.0], (number, 1)),
    _exploration(_random_uniforms(number), place, is_evaluation),
  )
  counts = np.bincount(output.action, minlength=num_actions)
  expected = np.full(num_actions, number * epsilon / num_actions)
  expected[1] += number * (1 - epsilon)
  assert stats.chisquare(counts, expected).pvalue > 1e-6
  assert (np.delete(counts, 1) > 0).all()


def test_whether_to_act_at_random_says_nothing_about_the_action():
  """If one number were used for both, only the first actions would ever be explored."""
  uniforms = _random_uniforms(100_000)
  explored = uniforms[uniforms[:, 0] < 0.05]
  counts = np.bincount(
    _act(np.zeros((len(explored), 5)), _exploration(explored)).action, minlength=5
  )
  assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize('num_actions', [*range(1, 40), 63, 64, 65, 1000, 4095])
def test_the_largest_and_the_smallest_uniform_give_the_last_and_the_first_action(num_actions):
  largest = (np.float32(2**23 - 1) + np.float32(0.5)) * np.float32(2.0**-23)  # as in noise.py
  smallest = np.float32(0.5) * np.float32(2.0**-23)
  assert 0 < smallest < largest < 1
  q_values = np.zeros((2, num_actions))
  q_values[:, num_actions // 2] = 1
  action = _act(q_values, _exploration([[0.0, largest], [0.0, smallest]])).action
  np.testing.assert_array_equal(action, [num_actions - 1, 0])


def test_rows_do_not_know_of_each_other():
  rng = np.random.default_rng(0)
  q_values, uniforms = rng.normal(size=(64, 3)), _random_uniforms(64)
  place = rng.random(64)
  together = _act(q_values, _exploration(uniforms, place)).action
  alone = [
    _act(q_values[i : i + 1], _exploration(uniforms[i : i + 1], place[i])).action[0]
    for i in range(64)
  ]
  np.testing.assert_array_equal(together, alone)


def test_the_played_action_and_the_prediction_come_out():
  output = _act([[0, 1], [0, 1]], _exploration([[0.0, 0.1], [0.9, 0.1]]))
  np.testing.assert_array_equal(output.action, [0, 1])
  np.testing.assert_array_equal(output.prediction.q_values, [[0, 1], [0, 1]])


def test_two_uniforms_a_row_and_only_discrete_actions():
  observation, network = specs.Array((4,), np.float32), config_lib.NetworkConfig()
  discrete = types.EnvironmentSpec(observation, specs.DiscreteArray(3))
  assert agent.make_agent(discrete, network, _CONFIG).acting.num_uniforms == 2
  continuous = types.EnvironmentSpec(observation, specs.Array((2,), np.float32))
  with pytest.raises(types.UserError, match='discrete'):
    agent.make_agent(continuous, network, _CONFIG)


@pytest.mark.parametrize('kind', ['prioritized', 'uniform'])
def test_the_replay_is_the_one_configured(kind):
  config = r2d2_config.R2D2Config(replay=kind)
  assert config.replay_spec() == core.ReplaySpec(
    kind, capacity=100_000, min_size=5_000, ratio=0.75, priority_exponent=0.9
  )
