"""The server's exploration, evaluation and statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tree

from seed_acme import types
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.agents.r2d2 import policy as r2d2_policy
from seed_acme.inference import policy as policy_lib
from tests.inference import rigs

pytestmark = pytest.mark.timeout(120)


class _Recording:
  """A policy that records the exploration that it was given."""

  def __init__(self, policy: policy_lib.Policy):
    self._policy = policy
    self.seen: list[types.Exploration] = []

  def __getattr__(self, name: str) -> Any:
    return getattr(self._policy, name)

  def __call__(self, inputs: types.Nest, state: types.Nest, exploration: types.Exploration) -> Any:
    self.seen.append(exploration)
    return self._policy(inputs, state, exploration)


@pytest.mark.parametrize('env_ids', [range(rigs.NUM_ENVIRONMENTS), [5, 0, 7, 3]])
def test_epsilon_goes_from_the_first_training_environment_to_the_last(acting, env_ids):
  """The position is i / (N - 1) of N training environments, so both ends of the range occur."""
  recording = _Recording(acting('none').policy)
  rig = rigs.Rig(acting('none')._replace(policy=recording))
  rig.step(rigs.request(env_ids, 0, rigs.F))
  [exploration] = recording.seen
  config = r2d2_config.R2D2Config()
  ladder = [0.4 ** (1 + 7 * i / (rigs.NUM_TRAINING - 1)) for i in range(rigs.NUM_TRAINING)]
  wanted = np.array([*ladder, *[config.evaluation_epsilon] * 2])[list(env_ids)]
  found = r2d2_policy.epsilons(exploration, config)
  np.testing.assert_allclose(found[: len(env_ids)], wanted, rtol=1e-5)


@pytest.mark.slow
def test_evaluation_is_greedy_and_reaches_neither_sink_nor_counters(rig):
  env_ids = [5, 6, 7]
  greedy, sampled = [], []
  for number in range(30):
    # All three get the same observation, so that only the choice differs.
    one = rigs.request(
      env_ids, number, rigs.F if number == 0 else rigs.L if number == 29 else rigs.M
    )
    one.timestep.observation[:] = rigs.observation([99], number)
    state = tree.map_structure(np.copy, rig.server.slots.state)
    previous = rig.server.slots.action[env_ids]
    if number == 0:
      state = tree.map_structure(lambda s: np.zeros((8, *s.shape[1:]), s.dtype), state)
    [actions] = rig.step(one)
    inputs = types.AgentInput(
      one.timestep.step_type,
      np.where(one.timestep.step_type == rigs.F, 0, one.timestep.reward).astype(np.float32),
      one.timestep.discount,
      previous,
      one.timestep.observation,
    )
    prediction, _ = rig.acting.network(inputs, tree.map_structure(lambda s: s[env_ids], state))
    best = prediction.policy_params.numpy().argmax(axis=1)
    assert actions[1:].tolist() == best[1:].tolist(), number
    greedy.append(best[0])
    sampled.append(actions[0])
  assert greedy != sampled
  assert sum(u.policy_version.shape[0] for u in rig.sink.unrolls) == 9  # only from environment 5
  assert rig.counters.snapshot()[:5] == (27, 27 * 4, 0, 1, 0)
  assert rig.server.statistics.training_episodes.summary().num_episodes == 1
  assert rig.server.statistics.evaluation_episodes.summary() == (2, 29 * 2.0, 29 * 0.5, 29)


def test_a_batch_of_evaluation_alone(rig):
  for number in range(8):
    rig.step(rigs.request([6, 7], number, rigs.F if number == 0 else rigs.M))
  assert rig.sink.unrolls == [] and rig.counters.snapshot().agent_steps == 0


def test_statistics_and_steps_agree_with_a_slow_reference(acting):
  rig = rigs.Rig(acting('none'), unroll_length=4)
  random = np.random.default_rng(5)
  number, has_ended, rows = 0, np.ones(4, bool), [[] for _ in range(4)]
  for number in range(81):
    step_types = np.where(has_ended, rigs.F, np.where(random.random(4) < 0.25, rigs.L, rigs.M))
    rewards, scores = random.integers(-5, 6, (2, 4)).astype(np.float32)
    one = rigs.request(range(4), number, step_types)
    # A discount of 0 in a MID row, such as for a lost life, ends no episode.
    discounts = np.where(step_types == rigs.F, 1, random.integers(2, size=4)).astype(np.float32)
    rows_of_now = one.timestep._replace(reward=rewards, discount=discounts, score=scores)
    rig.step(one._replace(timestep=rows_of_now))
    for i in range(4):
      rows[i].append((int(step_types[i]), float(rewards[i]), float(scores[i])))
    has_ended = step_types == rigs.L
  returns, scores, lengths, steps = [], [], [], 0
  for run in rows:
    for t, (step_type, _, _) in enumerate(run):
      steps += t < 80 and step_type != rigs.L
      if step_type == rigs.L:
        start = max(s for s in range(t) if run[s][0] == rigs.F)
        returns.append(sum(r for _, r, _ in run[start + 1 : t + 1]))
        scores.append(sum(s for _, _, s in run[start + 1 : t + 1]))
        lengths.append(t - start)
  summary = rig.server.statistics.training_episodes.take_recent()
  assert summary.num_episodes == len(returns) > 30
  assert summary.return_ == pytest.approx(np.mean(returns))
  assert summary.score == pytest.approx(np.mean(scores))
  assert summary.length == pytest.approx(np.mean(lengths))
  counts = rig.counters.snapshot()
  assert (counts.agent_steps, counts.frames, counts.episodes) == (steps, 4 * steps, len(returns))
