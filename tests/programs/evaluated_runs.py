"""Runs that have learnt next to nothing, and their evaluation from the command line."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.configs import registry
from seed_acme.envs import registry as suites
from seed_acme.learning import training_loop
from seed_acme.programs import cli
from seed_acme.programs import single_process
from seed_acme.programs.trial import specification
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

GAME_FRAMES = 120  # an episode of Atari ends after 30 steps


def train(folder, name, environment, agent_changes, **network_changes):
  """Makes a run that has hardly learnt anything, but has a checkpoint."""
  config = registry.load(name)
  config = dataclasses.replace(
    config,
    environment=environment,
    num_actors=1,
    environments_per_actor=2,
    num_evaluation_environments=0,
    total_steps=40,
    network=dataclasses.replace(config.network, **network_changes),
    agent=dataclasses.replace(config.agent, unroll_length=5, batch_size=2, **agent_changes),
    replay=config_lib.ReplayConfig(queue_size=4),
  )
  run = run_directory.create(folder)
  saved_config.save(config, run.config)
  specification.save(run, suites.environment_spec(environment))  # otherwise a process is started
  assert single_process.run(config, run) == training_loop.FINISHED
  return folder


def atari(folder, game):
  settings = {'max_frames': GAME_FRAMES}  # with all 18 actions, so that games have one network
  return train(
    folder,
    'atari_vtrace_small',
    config_lib.EnvironmentConfig(f'atari:{game}', settings),
    {'minibatch_size': 2},
    torso_output_size=8,
  )


def evaluate(capsys, *arguments):
  assert cli.main(['evaluate', *map(str, arguments)]) == 0
  return capsys.readouterr()


def refusal(capsys, *arguments):
  assert cli.main(['evaluate', *map(str, arguments)]) == 2
  output = capsys.readouterr()
  assert output.out == ''
  assert len(output.err.splitlines()) <= 4
  return output.err
