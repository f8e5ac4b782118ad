"""Short learning runs in one process: seeds are fixed, budgets are counted in agent steps.

The budgets are at least twice the worst of ten seeds, whose numbers are in the comments. On one
machine, a seed always takes the same number of steps, but another processor rounds differently,
which acts like another seed. If about one seed in ten does not reach the target, a test tries
three, because an agent that cannot learn fails with all three.
"""

import dataclasses
import statistics

import pytest

from seed_acme import config as config_lib
from seed_acme.configs import registry
from seed_acme.envs import memory_chain
from seed_acme.learning import training_loop
from seed_acme.programs import single_process
from seed_acme.programs.tools.reports import evaluation
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

pytestmark = pytest.mark.timeout(1200)

# Agent steps until the mean return of the last 100 episodes was >= 0.9, seeds 1 ... 10:
# 23040, 22464, 21312, 23040, 24768, 21888, 26496, 19584, 21312, 23040 (3 CPU-seconds each).
_CATCH_STEPS = 53_000
# The same, >= 0.95: 32384, 22528, 28160, 33792, 40832, 29568, 30976, 29568, 25344, 18304
# (5 CPU-seconds each).
_MEMORY_STEPS = 82_000
# R2D2: the whole run, over which the learning rate falls to 0. A learnt policy is lost for some
# hundred steps now and then, so a single measurement may hit such a moment: with a constant rate 8
# of 98 measurements were below 0.9, down to 0.52; with the falling one 2 of 217 (Catch, 100
# episodes each). Reverb's sampling has no seed, so a seed's run differs every time (13 CPU-seconds
# each).
_R2D2_CATCH_STEPS = 50_000
_R2D2_MEMORY_STEPS = 30_000
_R2D2_SHORT_MEMORY_STEPS = 20_000  # of a seed in the shorter tests
_R2D2_MEMORYLESS_STEPS = 10_000  # with a memory, seeds 1 ... 10 reached 0.95 within 9,200
# FrozenLake without slipping, a Discrete observation, >= 0.9; seeds 1 ... 6: 4505, 4528, 4274,
# 4237, 3992, 5098 (1 CPU-second each). With the observation as one number, seeds 1, 2 and 3 did not
# reach it in 30,000.
_FROZEN_LAKE_STEPS = 12_000


def _start(config, folder):
  """Returns the program and its episodes: evaluation ones if it has environments for that."""
  run = run_directory.create(folder)
  saved_config.save(config, run.config)
  program = single_process.SingleProcess(config, run)
  episodes = (
    program.statistics.evaluation_episodes
    if config.num_evaluation_environments
    else program.statistics.training_episodes
  )
  return program, episodes


def _train(config, folder, target, max_steps):
  """Trains until the last 100 episodes reach `target`, and returns whether they did."""
  program, episodes = _start(config, folder)
  steps, is_solved = 0, False
  while steps < max_steps and not is_solved:
    program.step()
    steps = program.counters.snapshot().agent_steps
    window = episodes.summary()
    is_solved = window.num_episodes >= 100 and window.score >= target
  program.loop.finish(training_loop.FINISHED)
  program.close()
  return is_solved


def _memory_score(run_dir):
  """Returns the score over 1,000 greedy episodes: 0 = chance, 1 = perfect."""
  result = evaluation.evaluate(str(run_dir), num_episodes=1000)
  environment = memory_chain.MemoryChain(
    1, 0, **registry.load('memory_chain_vtrace').environment.settings
  )
  return environment.memory_score(result['return_mean'])


def _without_memory(config):
  network = dataclasses.replace(config.network, core='none', previous_action_input=False)
  return dataclasses.replace(config, network=network)


def test_catch_is_learnt_within_the_budget(tmp_path):
  config = registry.load('catch_vtrace')
  assert _train(config, tmp_path, target=0.9, max_steps=_CATCH_STEPS)
  result = evaluation.evaluate(str(tmp_path), num_episodes=200)
  assert result['return_mean'] >= 0.9
  assert result['length_mean'] == 9


@pytest.mark.slow
def test_memory_chain_is_learnt_with_a_memory(tmp_path):
  config = registry.load('memory_chain_vtrace')
  assert _train(config, tmp_path, target=0.95, max_steps=_MEMORY_STEPS)
  assert _memory_score(tmp_path) >= 0.9


def _r2d2(name, total_steps, seed=1, replay='prioritized'):
  config = registry.load(name)
  return dataclasses.replace(
    config,
    seed=seed,
    num_evaluation_environments=32,
    total_steps=total_steps,
    agent=dataclasses.replace(config.agent, replay=replay),
  )


def _train_to_the_end(config, folder):
  """Returns the mean return of the last 100 episodes at the end of each hundredth of the run."""
  program, episodes = _start(config, folder)
  scores = []
  while (steps := program.counters.snapshot().agent_steps) < config.total_steps:
    if steps >= len(scores) * config.total_steps / 100:
      scores.append(episodes.summary().score)
    program.step()
  program.loop.finish(training_loop.FINISHED)
  program.close()
  return scores


def _usual(scores):
  """Returns the median over the last 30 % of the run."""
  return statistics.median(scores[-30:])


@pytest.mark.slow
def test_memory_chain_is_learnt_with_r2d2(tmp_path):
  """One of three seeds is enough; the next is tried only if one does not learn."""
  configs = [_r2d2('memory_chain_r2d2', _R2D2_SHORT_MEMORY_STEPS, seed) for seed in (1, 2, 3)]
  assert any(
    _usual(_train_to_the_end(config, tmp_path / str(config.seed))) >= 0.95 for config in configs
  )


@pytest.mark.slow
def test_memory_chain_stays_at_chance_with_r2d2_without_a_memory(tmp_path):
  config = _without_memory(_r2d2('memory_chain_r2d2', _R2D2_MEMORYLESS_STEPS))
  _train_to_the_end(config, tmp_path)
  assert abs(_memory_score(tmp_path)) <= 0.15  # five standard errors


@pytest.mark.slow
def test_discrete_observations_are_learnt_from(tmp_path):
  pytest.importorskip('gymnasium')
  config = dataclasses.replace(
    registry.load('gym_vtrace'),
    seed=2,
    num_actors=1,
    total_steps=120_000,
    environment=config_lib.EnvironmentConfig('gymnasium:FrozenLake-v1', {'is_slippery': False}),
  )
  assert _train(config, tmp_path / 'run', 0.9, _FROZEN_LAKE_STEPS)


@pytest.mark.learning
@pytest.mark.parametrize(
  'name, max_steps', [('catch_r2d2', _R2D2_CATCH_STEPS), ('memory_chain_r2d2', _R2D2_MEMORY_STEPS)]
)
@pytest.mark.parametrize('replay', ['prioritized', 'uniform'])
@pytest.mark.parametrize('seed', [1, 2, 3])
def test_r2d2_learns_from_either_replay(tmp_path, name, max_steps, replay, seed):
  assert _usual(_train_to_the_end(_r2d2(name, max_steps, seed, replay), tmp_path)) >= 0.95


@pytest.mark.learning
def test_memory_chain_stays_at_chance_with_r2d2_for_as_long_as_it_may_take_with_a_memory(tmp_path):
  config = _without_memory(_r2d2('memory_chain_r2d2', 2 * _R2D2_MEMORY_STEPS))
  _train_to_the_end(config, tmp_path)
  assert abs(_memory_score(tmp_path)) <= 0.15


@pytest.mark.learning
def test_memory_chain_at_the_whole_budget_of_its_configuration(tmp_path):
  config = registry.load('memory_chain_vtrace')
  for name, experiment in (('with', config), ('without', _without_memory(config))):
    _train_to_the_end(experiment, tmp_path / name)
  assert _memory_score(tmp_path / 'with') >= 0.9
  assert _memory_score(tmp_path / 'without') <= 0.3


@pytest.mark.learning
@pytest.mark.parametrize('seed', range(1, 11))
def test_catch_is_learnt_with_every_seed(tmp_path, seed):
  config = dataclasses.replace(registry.load('catch_vtrace'), seed=seed)
  assert _train(config, tmp_path, target=0.9, max_steps=_CATCH_STEPS)


@pytest.mark.learning
def test_catch_stays_learnt(tmp_path):
  config = registry.load('catch_vtrace')
  _train_to_the_end(config, tmp_path)
  assert evaluation.evaluate(str(tmp_path), num_episodes=1000)['return_mean'] >= 0.9


@pytest.mark.learning
def test_catch_is_learnt_with_an_lstm(tmp_path):
  config = registry.load('catch_lstm_vtrace')
  assert _train(config, tmp_path, target=0.9, max_steps=config.total_steps // 2)
  assert evaluation.evaluate(str(tmp_path), num_episodes=1000)['return_mean'] >= 0.9
