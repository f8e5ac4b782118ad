"""SAC makes the configured number of updates; long runs reach what its configurations promise."""

import dataclasses

import pytest

from seed_acme import config as config_lib
from seed_acme.agents.sac import config as sac_config
from seed_acme.configs import registry
from seed_acme.envs import toy
from seed_acme.programs import single_process
from seed_acme.programs.tools.reports import evaluation
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from seed_acme.tensors import graph_function

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

_UNROLL, _BATCH = 4, 8
_NUM_GREEDY = 20  # episodes


def _run_directory(config, folder):
  run = run_directory.create(folder)
  saved_config.save(config, run.config)
  return run


def _greedy_score(config, folder, num_episodes):
  """Returns the mean return of greedy episodes after the whole run."""
  single_process.run(config, _run_directory(config, folder))
  return evaluation.evaluate(str(folder), num_episodes=num_episodes)['return_mean']


def _toy(total_steps=1_500, **fields):
  """Returns a task of copying two numbers; a third of the rows end or begin an episode."""
  optimizer = config_lib.OptimizerConfig(learning_rate=1e-3, epsilon=1e-8, max_gradient_norm=0.0)
  agent = sac_config.SACConfig(
    **{
      'unroll_length': _UNROLL,
      'batch_size': _BATCH,
      'replay_capacity': 5_000,
      'replay_min_size': 100,
      'target_entropy': -2.0,
      'entropy_weight': 0.1,
      'optimizer': optimizer,
      'critic_optimizer': optimizer,
      'entropy_optimizer': optimizer,
      **fields,
    }
  )
  return config_lib.ExperimentConfig(
    name='toy_sac',
    num_actors=1,
    environments_per_actor=8,
    total_steps=total_steps,
    environment=config_lib.EnvironmentConfig('toy', {'size': 2}),
    network=config_lib.NetworkConfig(mlp_sizes=(64, 64)),
    agent=agent,
  )


@pytest.mark.parametrize(
  'updates_per_step, fields',
  [(0.25, {}), (0.1, {'replay': 'prioritized', 'transitions_per_unroll': 1})],
)
def test_transitions_learnt_per_step_inserted(tmp_path, updates_per_step, fields):
  """The count is within 5 % of updates times batch, from the memory's minimum size on."""
  config = _toy(updates_per_step=updates_per_step, **fields)
  program = single_process.SingleProcess(config, _run_directory(config, tmp_path))
  first = None
  with graph_function.serial_execution():
    while program.counters.snapshot().agent_steps < config.total_steps:
      program.step()
      counts = program.counters.snapshot()
      if first is None and counts.updates:
        first = counts
  program.close()
  assert first is not None and first.agent_steps < 0.25 * config.total_steps
  steps = counts.agent_steps - first.agent_steps
  learnt = (counts.trained_steps - first.trained_steps) / steps
  wanted = updates_per_step * _BATCH * (config.agent.transitions_per_unroll or _UNROLL)
  assert learnt == pytest.approx(wanted, rel=0.05)


@pytest.mark.learning
@pytest.mark.parametrize('bootstrap', ['action_value', 'state_value'])
def test_the_toy_is_learnt_with_either_bootstrap(tmp_path, bootstrap):
  """The target is far above random actions (-3) and above acting blindly (0); the best is 3."""
  environment = toy.Toy(1, 0, size=2)
  assert (environment.random_return, environment.memoryless_return) == (-3.0, 0.0)
  config = _toy(20_000, bootstrap=bootstrap, updates_per_step=0.25, discount=0.9, target_step=0.02)
  assert _greedy_score(config, tmp_path, 100) >= 2.0


@pytest.mark.learning
@pytest.mark.parametrize('seed', [1, 2, 3])
def test_pendulum_is_learnt(tmp_path, seed):
  config = dataclasses.replace(registry.load('pendulum_sac'), seed=seed)
  assert config.total_steps == 20_000
  assert _greedy_score(config, tmp_path, _NUM_GREEDY) >= -200


def _bit_flip(seed, **changes):
  config = registry.load('bitflip_sac_her')
  assert config.environment.settings == {'num_bits': 10}
  return dataclasses.replace(config, seed=seed, **changes)


@pytest.mark.learning
@pytest.mark.parametrize('seed', [1, 2, 3])
def test_bit_flip_is_learnt_with_hindsight(tmp_path, seed):
  config = _bit_flip(seed)
  assert config.total_steps <= 200_000
  assert _greedy_score(config, tmp_path, 200) >= 0.9


@pytest.mark.learning
@pytest.mark.parametrize('seed', [1, 2, 3])
def test_bit_flip_is_not_learnt_without_hindsight(tmp_path, seed):
  config = _bit_flip(seed, total_steps=200_000)
  hindsight = dataclasses.replace(config.agent.hindsight, probability=0.0)
  config = dataclasses.replace(config, agent=dataclasses.replace(config.agent, hindsight=hindsight))
  assert _greedy_score(config, tmp_path, 200) < 0.2
