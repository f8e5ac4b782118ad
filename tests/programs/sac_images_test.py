"""SAC learns from images that its network stacks, out of a real replay memory."""

import dataclasses

import pytest

from seed_acme import config as config_lib
from seed_acme.configs import registry
from seed_acme.programs import single_process
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_the_stacks_are_made_of_what_the_memory_returns(tmp_path):
  config = registry.load('pendulum_sac')
  config = dataclasses.replace(
    config,
    num_actors=1,
    environments_per_actor=2,
    environment=config_lib.EnvironmentConfig('tests.scripted_environments:ImageEnvironment'),
    network=config_lib.NetworkConfig(mlp_sizes=(16,), head_sizes=(8,), frame_stack=3),
    agent=dataclasses.replace(
      config.agent, unroll_length=6, batch_size=4, random_steps=0, replay_min_size=8
    ),
    learner=dataclasses.replace(config.learner, xla=False),
  )
  run = run_directory.create(tmp_path)
  saved_config.save(config, run.config)
  program = single_process.SingleProcess(config, run)
  for _ in range(100):
    program.step()
  program.close()
  assert program.counters.snapshot().updates > 0  # the first traces the networks for the stacks
