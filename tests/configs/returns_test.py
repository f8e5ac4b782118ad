"""Configurations reach the return that their docstrings promise, with each of three seeds."""

import dataclasses
import importlib
import re

import pytest

from seed_acme.configs import registry
from seed_acme.learning import training_loop
from seed_acme.programs import single_process
from seed_acme.programs.tools.reports import evaluation
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from seed_acme.tensors import graph_function

_LEAST = {
  'CartPole-v1': 475,
  'Pendulum-v1': -250,
  'catch': 0.95,
  'memory_chain': 0.9,
  'toy_memory': 0.9,
  'bit_flip': 0.9,
}
_LEAST_OF_SAC = {'Pendulum-v1': -200}
# All but those that take hours or need a package of their own, and those that only measure
# throughput.
_OTHERS = ('atari', 'bench', 'mujoco', 'dm', 'dmlab', 'dmlab2d', 'football')
_NAMES = tuple(name for name in registry.names() if name.split('_')[0] not in _OTHERS)
_PROMISE = re.compile(
  r'Ends with a mean return of at least (?P<least>-?[\d.]+) over '
  r'(?P<of>its last 100 training episodes|200 greedy episodes) \(seeds 1, 2, 3\)\.'
)


def _promise(name):
  """Returns the promised return, and whether it is that of greedy episodes."""
  text = importlib.import_module(f'seed_acme.configs.{name}').experiment.__doc__
  found = _PROMISE.search(' '.join(text.split()))
  assert found, f'the docstring of {name} names no return'
  return float(found['least']), found['of'] == '200 greedy episodes'


@pytest.mark.parametrize('name', _NAMES)
def test_a_configuration_names_the_return_that_it_reaches(name):
  least, _ = _promise(name)
  config = registry.load(name)
  of_agent = _LEAST_OF_SAC if config.agent.agent == 'sac' else {}
  assert least == {**_LEAST, **of_agent}[config.environment.id]


@pytest.mark.learning
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
  'name, seed', [*((name, seed) for name in _NAMES for seed in (1, 2, 3)), ('cartpole_ppo', 4)]
)
def test_a_whole_run_ends_with_the_return_that_is_named(tmp_path, name, seed):
  least, is_greedy = _promise(name)
  config = dataclasses.replace(registry.load(name), seed=seed)
  run = run_directory.create(tmp_path)
  saved_config.save(config, run.config)
  program = single_process.SingleProcess(config, run)
  with graph_function.serial_execution():
    while not program.loop.is_finished():
      program.step()
  window = program.statistics.training_episodes.summary()
  program.loop.finish(training_loop.FINISHED)
  program.close()
  assert window.num_episodes == 100
  score = (
    evaluation.evaluate(str(tmp_path), num_episodes=200)['return_mean']
    if is_greedy
    else window.score
  )
  assert score >= least
