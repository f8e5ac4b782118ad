"""An agent is a record of functions and a registry entry; the runtime knows nothing else of it."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
from typing import Any, Literal

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import multi_pass_learner
from seed_acme import types


@dataclasses.dataclass(frozen=True)
class ReplaySpec:
  """The replay an agent wants, as data; `seed_acme.replay.tables` builds it.

  kind: `queue` hands every unroll to the learner exactly once, in order; `uniform` and
    `prioritized` keep `memory.replay_capacity` unrolls and draw from them with replacement.
  memory: the numbers of the latter two, None for a queue.
  """

  kind: Literal['queue', 'uniform', 'prioritized']
  memory: config_lib.ReplayAgentConfig | None = None


@dataclasses.dataclass(frozen=True)
class Agent:
  """What the runtime asks of an agent. `config` is always the agent's own configuration record.

  make_network(spec, network_config, config) -> RecurrentNetwork.
  select_actions(spec, prediction, exploration, config) -> AgentOutput: prediction `[N, ...]`
    of the network, exploration a `types.Exploration`. Pure: all randomness is in its
    `uniforms`, so what one row does depends on no other row.
  replay_spec(config) -> ReplaySpec.
  loss(network, sample, config) -> LossOutput. Pure; sample is time-major.
  initial_priorities(unrolls, config) -> `[K]`, of unrolls `[K, L, ...]` as they were acted;
    None where the replay has no priorities.
  after_update(network, num_updates, config): changes variables that no gradient does, a
    target network for instance, after the num_updates-th update; None where there are none.
  passes(config): how a sample is gone over several times; the loss is then that of a minibatch,
    `loss(network, minibatch, config)`, and `config.makes_passes()` is True. None = one gradient
    step a sample.
  num_uniforms(spec) -> random numbers that `select_actions` needs for one row.
  """

  make_network: Callable[[types.EnvironmentSpec, Any, Any], core.RecurrentNetwork]
  select_actions: Callable[
    [types.EnvironmentSpec, types.Nest, types.Exploration, Any], types.AgentOutput
  ]
  replay_spec: Callable[[Any], ReplaySpec]
  loss: Callable[[Any, Any, Any], types.LossOutput]
  initial_priorities: Callable[[types.Unroll, Any], Any] | None
  after_update: Callable[[Any, Any, Any], None] | None
  passes: Callable[[Any], multi_pass_learner.Passes] | None
  num_uniforms: Callable[[types.EnvironmentSpec], int]
