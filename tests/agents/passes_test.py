"""What a configuration says of its agent's passes is what the agent has."""

import pytest

from seed_acme.agents import registry as agents
from seed_acme.configs import registry as configs


@pytest.mark.parametrize('name', configs.names())
def test_the_configuration_knows_whether_its_agent_makes_passes(name):
  config = configs.load(name).agent
  assert config.makes_passes() == (agents.get(config.agent).passes is not None)
