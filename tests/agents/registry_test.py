"""Agents by name."""

import dataclasses
import importlib

import pytest

from seed_acme import types
from seed_acme.agents import registry
from seed_acme.configs import registry as configs


def test_known_agents_are_found_under_the_name_of_their_configuration():
  for name, module in registry.AGENTS.items():
    assert registry.get(name) is importlib.import_module(module).make_agent


def test_an_unknown_name_is_answered_with_near_ones():
  with pytest.raises(types.UserError, match=r"agent \('r2d'\) is not known; did you mean r2d2"):
    registry.get('r2d')


def _config(name, agent):
  return dataclasses.replace(configs.load(name).agent, agent=agent)


@pytest.mark.parametrize('agent', sorted(registry.AGENTS))
def test_an_agent_takes_only_its_own_configuration(agent):
  """It would read fields that another one does not have."""
  own = {'on_policy': 'cartpole_ppo', 'r2d2': 'catch_r2d2', 'sac': 'pendulum_sac'}
  for of, name in own.items():
    if of == agent:
      registry.check_config(_config(name, agent))
      continue
    with pytest.raises(
      types.UserError, match=rf"agent.agent \('{agent}'\) needs \w+Config.*has"
    ) as e:
      registry.check_config(_config(name, agent))
    example = str(e.value).partition('--config=')[2].partition(',')[0]
    assert configs.load(example).agent.agent == agent


def test_an_agent_of_ones_own_takes_any_configuration():
  registry.check_config(_config('catch_r2d2', 'mine:make_agent'))
