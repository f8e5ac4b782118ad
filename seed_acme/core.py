"""Interfaces between the parts of the runtime: networks, transports, replay, environments, loggers.

There is an interface for anything that has several implementations, or that comes from `agents` or
`replay`. Classes with a single implementation (`TrainingLoop`, `InferenceServer`, `StrictTurns`)
are passed as they are.
"""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, Literal, Protocol

import numpy as np

from seed_acme import types


class VectorEnvironment(Protocol):
  """E environments stepped as one. Called from one actor thread only.

  After a LAST row the next `step` ignores that environment's action and returns FIRST of
  a new episode for it; `reset` is not called between episodes.
  """

  num_environments: int
  spec: types.EnvironmentSpec

  def reset(self) -> types.VectorTimeStep:
    """Starts new episodes in all environments; every step_type is FIRST."""

  def step(self, actions: types.Nest) -> types.VectorTimeStep:
    """Steps all environments. actions: nest of `[E, ...]` that matches `spec.action`."""

  def close(self) -> None:
    """Frees windows, processes and files."""


class RenderingEnvironment(VectorEnvironment, Protocol):
  """A vector environment that was made with `renders`."""

  def render(self) -> np.ndarray:
    """Returns a picture of environment 0, `[H, W, 3]` uint8."""


class RecurrentNetwork(Protocol):
  """A Sonnet module that acts (on one row) and trains (on many rows) with the same weights.

  The core's state is replaced by the initial state wherever a row is FIRST, so that
  `unroll` over rows equals stepping through them.

  An actor-critic may have an attribute `value_layer`, the linear layer with one output that
  gives the value. PopArt then rescales this layer instead of appending another one.
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
    """Runs one row `[N, ...]` -> (prediction `[N, ...]`, new state `[N, ...]`)."""

  def unroll(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """Runs rows `[T, B, ...]` from state `[B, ...]` -> (predictions `[T, B, ...]`, last state)."""


class InferenceChannel(Protocol):
  """The actor's end of the transport, one per environment group.

  One request at a time: `send`, then `receive`. Used by one thread, except `close`.
  """

  def send(self, request: types.ActorRequest) -> None:
    """Hands the request to the transport; returns at once."""

  def receive(self) -> types.Nest:
    """Returns the actions `[E, ...]` for the request sent last.

    Raises `ChannelClosed` when the program ends, `Refused` when the server rejected
    the request, `ServerLost` when the server is gone for too long, `ServerRestarted` when
    another one has taken its place.
    """

  def close(self) -> None:
    """Ends the stream, from any thread; a waiting `receive` raises `ChannelClosed`."""


class ChannelClosed(Exception):
  """Raised when the channel was closed, on this side or because the server has finished."""


class Refused(Exception):
  """The server rejected a message; the text says why."""


class ChannelTaken(ChannelClosed):
  """Raised when another actor has opened the same environments and continues with them."""


class ServerPaused(ChannelClosed):
  """Raised when the server shuts down before the run is over; another may take its place."""


class ServerLost(types.Failure, ConnectionError):
  """Raised when no server could be reached for as long as the configuration allows."""


class ServerRestarted(Exception):
  """Raised when another server process answers than before. It knows nothing of this actor's
  episodes, so the environments must be restarted."""


class Logger(Protocol):
  """Writes metrics `group/name`, keyed by the number of agent steps so far."""

  def write(self, agent_steps: int, metrics: dict[str, float]) -> None:
    """Writes one row."""

  def close(self) -> None:
    """Flushes and closes."""


class VideoLogger(Logger, Protocol):
  """A logger that also shows episodes filmed during training (`record_every`).

  A logger may leave out `write_video`, because the films are in the run folder anyway.
  """

  def write_video(self, recording: types.Recording) -> None:
    """Shows one episode. Both of its files stay where they are."""


@dataclasses.dataclass(frozen=True)
class ReplaySpec:
  """The replay that an agent needs, as data; `replay.tables` builds it.

  kind: `queue` hands every unroll to the learner exactly once, in order; `uniform` and
    `prioritized` are memories, which keep unrolls and draw from them with replacement.
  capacity: unrolls that a memory keeps; the oldest are removed first.
  min_size: unrolls that must be in a memory before the first is drawn.
  ratio: unrolls drawn for every unroll inserted; 1 for a queue.
  priority_exponent: alpha of P(i) = p_i^alpha / sum_j p_j^alpha, for `prioritized`.

  Messages refer to `agent.replay_capacity` and `agent.replay_min_size`, so an agent's
  configuration must use these names.
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
  """The training loop's interface to a replay that keeps its unrolls."""

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    """Sets the priorities `[B]` of the items with keys `[B]` uint64; NaN = an item keeps its own.
    Never blocks."""

  def counts(self) -> tuple[int, int]:
    """Unrolls inserted and sampled so far, including earlier runs whose memory was restored."""

  def counts_now(self) -> tuple[int, int] | None:
    """Returns `counts()`, or None if the server does not answer at once."""

  def checkpoint(self) -> pathlib.Path:
    """Writes its content into a folder, which the caller moves away.

    Raises RuntimeError if it cannot be written.
    """


class UnrollAccount(Protocol):
  """Counts of unrolls on their way from the writer to the learner, since this process started."""

  def confirmed(self) -> int:
    """Unrolls that replay has confirmed."""

  def received(self) -> int:
    """Unrolls that the learner has received; one of a memory counts as often as it was drawn."""

  def missing(self) -> str:
    """Returns a message about unrolls that were lost between the two; '' if there are none."""


class UnrollSink(Protocol):
  """Destination of finished unrolls: replay's writer, or a list in a test."""

  def has_room(self) -> bool:
    """False while all training environments have to wait (back-pressure)."""

  def put(self, env_ids: np.ndarray, unrolls: types.Unroll) -> None:
    """Takes K finished unrolls, leaves `[K, L, ...]`, of environments `[K]`. Never blocks."""
