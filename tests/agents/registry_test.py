"""Agents by name."""

import importlib

import pytest

from seed_acme import types
from seed_acme.agents import registry


def test_known_agents_are_found_under_the_name_of_their_configuration():
  for name, module in registry.AGENTS.items():
    assert registry.get(name) is importlib.import_module(module).make_agent


def test_an_unknown_name_is_answered_with_near_ones():
  with pytest.raises(types.UserError, match=r"agent \('r2d'\) is not known; did you mean r2d2"):
    registry.get('r2d')
