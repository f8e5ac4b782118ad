"""How V-trace acts."""

from dm_env import specs
import numpy as np

from seed_acme import types
from seed_acme.agents.vtrace import agent
from seed_acme.agents.vtrace import config as vtrace_config

_CONFIG = vtrace_config.VTraceConfig()


def _prediction():
  params = np.log(np.float32([[0.3, 0.4, 0.3]] * 4))
  return types.ActorCriticOutput(policy_params=params, value=np.zeros(4, np.float32))


def test_greedy_rows_take_the_mode_and_the_others_what_their_uniform_says():
  prediction = _prediction()
  output = agent.AGENT.select_actions(
    None,
    prediction,
    types.Exploration(
      uniforms=np.float32([[0.1], [0.1], [0.9], [0.9]]),
      place=np.zeros(4, np.float32),
      is_evaluation=np.array([True, False] * 2),
    ),
    _CONFIG,
  )
  np.testing.assert_array_equal(output.action, [1, 0, 1, 2])
  assert output.prediction is prediction


def test_one_uniform_a_row_and_a_queue():
  spec = types.EnvironmentSpec(observation=None, action=specs.DiscreteArray(3))
  assert agent.AGENT.num_uniforms(spec) == 1
  assert agent.AGENT.replay_spec(_CONFIG).kind == 'queue'
  assert agent.AGENT.initial_priorities is None
