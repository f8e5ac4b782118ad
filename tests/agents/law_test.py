"""The runtime names no agent, and no field of an agent's configuration."""

import dataclasses
import pathlib
import re

import pytest

from seed_acme import config as config_lib
from seed_acme.agents import memory_config
from seed_acme.agents import registry
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.agents.sac import config as sac_config

_ROOT = pathlib.Path(__file__).resolve().parents[2]
# `ops` belong to no agent, but their errors may name the settings that their numbers come from.
_FREE = ('seed_acme/ops/',)
_RUNTIME = sorted(
  path
  for folder in ('seed_acme', 'replay')
  for path in (_ROOT / folder).rglob('*.py')
  if not any(part.is_symlink() for part in path.parents)
  and not str(path.relative_to(_ROOT)).startswith(_FREE)
)
_fields = lambda *kinds: {field.name for kind in kinds for field in dataclasses.fields(kind)}
_SHARED = _fields(config_lib.AgentConfig)
# The runtime must not use fields that only some agents share, either: it asks for `replay_spec`.
_OWN = (
  _fields(
    memory_config.MemoryAgentConfig,
    memory_config.ReplayAgentConfig,
    on_policy_config.OnPolicyConfig,
    r2d2_config.R2D2Config,
    sac_config.SACConfig,
  )
  - _SHARED
)
# `replay` is also a part of the experiment; the other two are names that `core.ReplaySpec` asks
# agents to use.
_OWN -= {'replay', 'replay_capacity', 'replay_min_size'}
_FORBIDDEN = re.compile(
  '|'.join(
    [
      rf'\bagents\.({"|".join(registry.AGENTS)})\b',  # imports
      rf'[\'"`]({"|".join(registry.AGENTS)})[\'"`]',  # names
      rf'\bagent\.({"|".join(sorted(_OWN))})\b',  # fields, read or mentioned
      rf'config\.({"|".join(sorted(_OWN - {"values", "entropy", "observations", "advantage"}))})\b',
    ]
  )
)


def test_the_scan_sees_the_runtime():
  names = {str(path.relative_to(_ROOT)) for path in _RUNTIME}
  assert {
    'seed_acme/learning/learner.py',
    'seed_acme/config.py',
    'seed_acme/config_validation.py',
    'seed_acme/inference/server.py',
    'replay/tables.py',
  } <= names
  assert {
    'discount',
    'ppo_epsilon',
    'target_period',
    'optimizer',
    'target_step',
    'hindsight',
    'transitions_per_unroll',
    'replay_ratio',
  } <= _OWN


@pytest.mark.parametrize(
  'text',
  [
    "if name == 'r2d2':",
    'from seed_acme.agents.on_policy import loss',
    'config.agent.target_period',
    'config.agent.hindsight.probability',
    "'raise agent.random_steps'",
    "agent == 'sac'",
    'config.agent.replay_ratio',
    'return self._config.ppo_epsilon',
    "'lower agent.optimizer.learning_rate'",
  ],
)
def test_the_scan_finds(text):
  assert _FORBIDDEN.search(text)


def test_the_runtime_names_no_agent_and_no_field_of_one():
  found = [
    f'{path.relative_to(_ROOT)}:{number}: {line.strip()}'
    for path in _RUNTIME
    for number, line in enumerate(path.read_text().splitlines(), 1)
    if _FORBIDDEN.search(line)
  ]
  assert not found, '\n'.join(found)
