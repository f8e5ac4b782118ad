"""Interfaces between the rooms of the runtime: networks, transports, replay, environments, loggers.

What has several implementations, or is handed in from `agents` and `replay`, is written against
these. What there is only one of (`TrainingLoop`, `InferenceServer`, `StrictTurns`) is handed its
parts as the concrete classes that they are.
"""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, Literal, Protocol

import numpy as np

from seed_acme import types


class VectorEnvironment(Protocol):
  """E environments stepped as one. Called from one actor thread only.

  After a LAST row the next `step` ignores the action and returns FIRST of a new
  episode, for that environment alone: nobody calls `reset` between episodes.
  """

  num_environments: int
  spec: types.EnvironmentSpec

  def reset(self) -> types.VectorTimeStep:
    """Starts all environments anew; every step_type is FIRST."""

  def step(self, actions: types.Nest) -> types.VectorTimeStep:
    """actions: nest of `[E, ...]` as `spec.action`."""

  def close(self) -> None:
    """Frees windows, processes and files."""


class RenderingEnvironment(VectorEnvironment, Protocol):
  """As made with `renders`."""

  def render(self) -> np.ndarray:
    """`[H, W, 3]` uint8: environment 0 as it is now."""


class RecurrentNetwork(Protocol):
  """A Sonnet module that acts (one row) and learns (many rows) with the same weights.

  The core's state is replaced by the initial state wherever a row is FIRST, so that
  `unroll` over rows equals stepping through them.

  An actor-critic may have an attribute `value_layer`, the linear layer of one output that
  gives the value: PopArt then rescales it, instead of appending one of its own.
  """

  @property
  def variables(self) -> tuple[Any, ...]:
    """All variables, in an order that does not change."""

  @property
  def trainable_variables(self) -> tuple[Any, ...]:
    """The variables that receive gradients."""

  def initial_state(self, batch_size: Any) -> types.Nest:
    """Zero state `[batch_size, ...]`; `()` for a feed-forward network."""

  def __call__(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """One row `[N, ...]` -> (prediction `[N, ...]`, new state `[N, ...]`)."""

  def unroll(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """Rows `[T, B, ...]` from state `[B, ...]` -> (predictions `[T, B, ...]`, last state)."""


class InferenceChannel(Protocol):
  """The actor's end of the transport, one per environment group.

  One request at a time: `send`, then `receive`. Used by one thread, except `close`.
  """

  def send(self, request: types.ActorRequest) -> None:
    """Hands the request to the transport; returns at once."""

  def receive(self) -> types.Nest:
    """Actions `[E, ...]` for the request sent last.

    Raises `ChannelClosed` when the program ends, `wire.Refused` when the server did not
    take the request, `ServerLost` when the server stays away too long, `ServerRestarted` when
    another one has taken its place.
    """

  def close(self) -> None:
    """Ends the stream, from any thread; a waiting `receive` raises `ChannelClosed`."""


class ChannelClosed(Exception):
  """The channel was closed, here or because the server ended its work."""


class ChannelTaken(ChannelClosed):
  """Another actor has opened the same environments and goes on with them."""


class ServerPaused(ChannelClosed):
  """The server goes away before the run is over; another may take its place."""


class ServerLost(ConnectionError):
  """No server was to be had for as long as the configuration allows."""


class ServerRestarted(Exception):
  """Another server process answers than before: what this actor has under way means nothing
  to it, so the environments have to begin anew."""


class Logger(Protocol):
  """Takes metrics `group/name`, keyed by the number of agent steps so far."""

  def write(self, agent_steps: int, metrics: dict[str, float]) -> None:
    """Writes one row."""

  def close(self) -> None:
    """Flushes."""


class VideoLogger(Logger, Protocol):
  """A logger that also shows episodes filmed during training (`record_every`).

  A logger may leave `write_video` out: the films are in the run folder anyway.
  """

  def write_video(self, recording: types.Recording) -> None:
    """Shows one. Both of its files stay where they are."""


@dataclasses.dataclass(frozen=True)
class ReplaySpec:
  """The replay an agent wants, as data; `replay.tables` builds it.

  kind: `queue` hands every unroll to the learner exactly once, in order; `uniform` and
    `prioritized` are memories, which keep unrolls and draw from them with replacement.
  capacity: unrolls that a memory keeps; the oldest go first.
  min_size: unrolls there must be in a memory before the first is drawn.
  ratio: unrolls drawn for every unroll inserted; 1 for a queue.
  priority_exponent: alpha of P(i) = p_i^alpha / sum_j p_j^alpha, of `prioritized`.

  Messages speak of `agent.replay_capacity` and `agent.replay_min_size`, which an agent's
  configuration is to call them.
  """

  kind: Literal['queue', 'uniform', 'prioritized'] = 'queue'
  capacity: int = 0
  min_size: int = 0
  ratio: float = 1.0
  priority_exponent: float = 0.0

  @property
  def is_memory(self) -> bool:
    """Whether unrolls stay after they were drawn."""
    return self.kind != 'queue'


class ReplayMemory(Protocol):
  """What the training loop asks of a replay that keeps its unrolls."""

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    """keys `[B]` uint64, priorities `[B]`. Never blocks."""

  def counts(self) -> tuple[int, int]:
    """Unrolls inserted and sampled so far, over all resumptions that restored it."""

  def counts_now(self) -> tuple[int, int] | None:
    """As `counts`, or None where the server does not answer at once."""

  def checkpoint(self) -> pathlib.Path:
    """Writes its content into a folder, which the caller moves away.

    Raises RuntimeError where it cannot be written.
    """


class UnrollAccount(Protocol):
  """What becomes of unrolls between the writer and the learner, since this start."""

  def confirmed(self) -> int:
    """Unrolls that replay has confirmed."""

  def received(self) -> int:
    """Unrolls that the learner has got; of a memory, as often as they were drawn."""

  def missing(self) -> str:
    """What to tell of unrolls that are lost between the two; '' if there are none."""


class UnrollSink(Protocol):
  """Where finished unrolls go: replay's writer, or a list in a test."""

  def has_room(self) -> bool:
    """False while all training environments have to wait (back-pressure)."""

  def put(self, env_ids: np.ndarray, unrolls: types.Unroll) -> None:
    """Takes K finished unrolls, leaves `[K, L, ...]`, of environments `[K]`. Never blocks."""
