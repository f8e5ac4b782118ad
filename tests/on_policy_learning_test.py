"""Presets of the on-policy agent learn CartPole or continuous actions; a memory solves ToyMemory.

The shorter runs have each policy loss and each kind of action, but not every pair, because a loss
sees an action's log-probability alone. Only V-MPO is in both, because its KL constraint differs
between them. V-trace learns Catch in `tests/learning_test.py`, and PPO learns continuous actions of
ToyMemory. Without a memory nothing of ToyMemory can be known: `tests/envs/toy_test.py`.

Budgets are in agent steps; CartPole's are those of the configurations.
`tests/configs/returns_test.py` has whole runs.
"""

import dataclasses

import pytest

from seed_acme import config as config_lib
from seed_acme.configs import registry
from seed_acme.envs import toy
from seed_acme.programs import single_process
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from seed_acme.tensors import graph_function

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

_CARTPOLE_RETURN = 200  # random actions have 22; every seed has to reach 400 in the long tests
# Steps to a mean return of 400 on CartPole with seeds 1, 2, 3; to 1 on the toy with seeds 1, 2:
#   vpg     122953, 177526, 134176; 14208, 14592    ppo   46346, 45103, 45867; 3456, 3840
#   vtrace  109401,  91896, 104062; 4224, 4464      awr   45622, 46903, 44869; 3072, 2880
#   vmpo     54743,  63111,  64924; 4800, 4608
_PRESETS = ('vpg', 'ppo', 'vtrace', 'awr', 'vmpo')
_TOY_STEPS = 30_000
_TOY_MEMORY_STEPS = 40_000  # it takes 20,000
# with seed 1 it takes 240,000 to reach 2.4; the best is 3, or 0 without memory
_WHOLE_TOY_MEMORY_STEPS = 500_000


def _train(config, folder, target, max_steps):
  """Trains until the mean of the last 100 episodes reaches `target`; returns the best mean."""
  run = run_directory.create(folder)
  saved_config.save(config, run.config)
  program = single_process.SingleProcess(config, run)
  best = -float('inf')
  with graph_function.serial_execution():
    while best < target and program.counters.snapshot().agent_steps < max_steps:
      program.step()
      window = program.statistics.training_episodes.summary()
      if window.num_episodes >= 100:
        best = max(best, window.score)
  program.close()
  return best


def _last_score(config, folder):
  """Returns the mean of the last 100 episodes of a whole run."""
  run = run_directory.create(folder)
  saved_config.save(config, run.config)
  program = single_process.SingleProcess(config, run)
  with graph_function.serial_execution():
    while program.counters.snapshot().agent_steps < config.total_steps:
      program.step()
  score = program.statistics.training_episodes.summary().score
  program.close()
  return score


def _cartpole(preset, seed):
  return dataclasses.replace(registry.load(f'cartpole_{preset}'), seed=seed)


def _toy(preset):
  """Returns the preset's CartPole configuration with Toy, a vector to copy: continuous actions."""
  config = _cartpole(preset, seed=1)
  return dataclasses.replace(
    config,
    environment=config_lib.EnvironmentConfig(id='toy', settings={'size': 2}),
    agent=dataclasses.replace(config.agent, state_independent_std=True),
  )


@pytest.mark.parametrize('preset', ['ppo', 'vmpo'])
def test_the_preset_learns_cartpole(tmp_path, preset):
  """One of three seeds is enough, because rounding on some processor may make one fail."""
  configs = [_cartpole(preset, seed) for seed in (1, 2, 3)]
  assert any(
    _train(config, tmp_path / str(config.seed), _CARTPOLE_RETURN, config.total_steps)
    >= _CARTPOLE_RETURN
    for config in configs
  )


@pytest.mark.learning
@pytest.mark.parametrize('preset', _PRESETS)
@pytest.mark.parametrize('seed', [1, 2, 3])
def test_the_preset_learns_cartpole_with_every_seed(tmp_path, preset, seed):
  config = _cartpole(preset, seed)
  assert _train(config, tmp_path, target=400, max_steps=config.total_steps) >= 400


@pytest.mark.parametrize('preset', ['vpg', 'awr', 'vmpo'])
def test_the_preset_learns_continuous_actions(tmp_path, preset):
  """The target is far above random actions (-3) and above acting blindly (0); the best is 3."""
  environment = toy.Toy(1, 0, size=2)
  assert (environment.random_return, environment.memoryless_return) == (-3.0, 0.0)
  assert _train(_toy(preset), tmp_path, target=1.0, max_steps=_TOY_STEPS) >= 1.0


def test_toy_memory_is_solved_with_a_recurrent_core(tmp_path):
  config = registry.load('toy_memory_ppo')
  assert _train(config, tmp_path, target=0.8, max_steps=_TOY_MEMORY_STEPS) >= 0.8


@pytest.mark.learning
def test_toy_memory_of_three_vectors_is_solved_with_a_recurrent_core(tmp_path):
  """Uses the environment's defaults: three vectors of three numbers, three rows later."""
  config = registry.load('toy_memory_ppo')
  config = dataclasses.replace(config, environment=config_lib.EnvironmentConfig(id='toy_memory'))
  assert _train(config, tmp_path, target=2.4, max_steps=_WHOLE_TOY_MEMORY_STEPS) >= 2.4


@pytest.mark.learning
@pytest.mark.timeout(7200)  # twelve whole runs
def test_pendulum_is_learnt_equally_well_at_every_scale_of_the_rewards(tmp_path):
  """Compares means over three seeds; scales differ only by luck in exploration."""
  returns = {}
  for scale in (0.01, 1.0, 100.0, 1000.0):
    scores = []
    for seed in (1, 2, 3):
      config = registry.load('pendulum_ppo')
      config = dataclasses.replace(
        config, seed=seed, agent=dataclasses.replace(config.agent, reward_scale=scale)
      )
      scores.append(_last_score(config, tmp_path / f'{scale}_{seed}'))
    returns[scale] = sum(scores) / len(scores)
  assert min(returns.values()) >= -250, returns
  assert min(returns.values()) >= 1.15 * max(returns.values()), returns  # they are negative
