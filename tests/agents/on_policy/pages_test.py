"""Each algorithm's page is imported where it is chosen, and only there."""

import subprocess
import sys

import pytest

from seed_acme.agents.on_policy import resolve

_WITHOUT = """
import sys

class Missing:
  def find_spec(self, name, path=None, target=None):
    if name in {pages}:
      raise ModuleNotFoundError('No module named ' + name, name=name)

sys.meta_path.insert(0, Missing())
import numpy as np
from seed_acme import types
from seed_acme.agents import registry as agents
from seed_acme.configs import registry as configs
from seed_acme.envs import registry as envs
from seed_acme.learning import learner

config = configs.load('catch_vtrace')
spec = envs.environment_spec(config.environment)
agent = agents.get(config.agent.agent)(spec, config.network, config.agent)
shape = (config.agent.unroll_length + 1, config.agent.batch_size)
fill = lambda spec: np.zeros((*shape, *spec.shape), spec.dtype)
inputs = types.AgentInput(
  np.full(shape, types.MID, np.uint8), np.ones(shape, np.float32), np.ones(shape, np.float32),
  fill(spec.action), fill(spec.observation))
network = agent.acting.make()
prediction = types.ActorCriticOutput(*(x.numpy() for x in network.unroll(inputs, ())[0]))
unroll = types.Unroll((), inputs, types.AgentOutput(fill(spec.action), prediction),
                      np.zeros(shape, np.int64))
subject = learner.Learner(
  agent, published=(), total_steps=1000, seed=1, xla=False, devices=['cpu:0'])
before = subject.save()
sample = types.Sample(unroll, np.zeros(shape[1], np.uint64), np.ones(shape[1]))
assert np.isfinite(subject.step(sample, 0).metrics['loss/policy'])
after = subject.save()
assert any((after[name] != before[name]).any() for name in before if name.endswith('value/b:0'))
loaded = [name for name in {pages} if name in sys.modules]
assert not loaded, loaded
"""
_OTHERS = [f'seed_acme.agents.on_policy.{name}' for name in ('ppo', 'awr', 'vmpo', 'vpg')]


@pytest.mark.slow  # imports TensorFlow anew
def test_vtrace_trains_without_the_pages_of_the_others():
  done = subprocess.run(
    [sys.executable, '-c', _WITHOUT.replace('{pages}', repr(_OTHERS))],
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize(
  'fields, modules',
  [
    ({'policy_loss': 'vtrace', 'advantage': 'vtrace'}, ['vtrace', 'vtrace']),
    ({'policy_loss': 'ppo', 'advantage': 'vtrace'}, ['ppo', 'vtrace']),
    ({'policy_loss': 'vpg', 'advantage': 'nstep'}, ['vpg', 'advantages']),
    ({'policy_loss': 'awr'}, ['awr', 'advantages']),
    ({'policy_loss': 'behaviour_cloning'}, ['awr', 'advantages']),
    ({'policy_loss': 'vmpo'}, ['vmpo', 'advantages']),
  ],
)
def test_an_algorithm_is_made_of_the_functions_of_its_page(fields, modules, make_config):
  algorithm = resolve.algorithm(make_config(**fields))
  found = [x.func.__module__ for x in (algorithm.policy_loss, algorithm.estimate)]
  assert found == [f'seed_acme.agents.on_policy.{name}' for name in modules]
