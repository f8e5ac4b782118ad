"""An agent is a record of functions and a registry entry; the runtime knows nothing else of it."""
from __future__ import annotations

from collections.abc import Callable
import dataclasses
from typing import Any, Literal

from seed_acme import core
from seed_acme import types


@dataclasses.dataclass(frozen=True)
class ReplaySpec:
  """The replay an agent wants, as data; `seed_acme.replay.tables` builds it.

  kind: `queue` hands every unroll to the learner exactly once, in order.
  """
  kind: Literal['queue']


@dataclasses.dataclass(frozen=True)
class Agent:
  """What the runtime asks of an agent. `config` is always the agent's own configuration record.

  make_network(spec, network_config, config) -> RecurrentNetwork.
  select_actions(prediction, uniforms, is_greedy, config) -> AgentOutput: prediction
    `[N, ...]` of the network, uniforms `[N, num_uniforms(spec)]` float32 in (0, 1),
    is_greedy `[N]` bool, true for evaluation rows. Pure: all randomness is in
    `uniforms`, so what one row does depends on no other row.
  replay_spec(config) -> ReplaySpec.
  loss(network, sample, config) -> LossOutput. Pure; sample is time-major.
  initial_priorities(unrolls, config) -> `[K]`, or None where the replay has none.
  num_uniforms(spec) -> random numbers that `select_actions` needs for one row.
  """
  make_network: Callable[[types.EnvironmentSpec, Any, Any], core.RecurrentNetwork]
  select_actions: Callable[[types.Nest, Any, Any, Any], types.AgentOutput]
  replay_spec: Callable[[Any], ReplaySpec]
  loss: Callable[[core.RecurrentNetwork, types.Sample, Any], types.LossOutput]
  initial_priorities: Callable[[types.Unroll, Any], Any] | None
  num_uniforms: Callable[[types.EnvironmentSpec], int]
