"""The actor: steps environments and asks the server for actions. No weights, no TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import contextlib

import numpy as np

from seed_acme import core
from seed_acme import types
from seed_acme.acting import activity as activity_lib
from seed_acme.envs import process_state
from seed_acme.inference import batching
from seed_acme.progress import timing

_LAST = bytes([types.LAST])


class EnvironmentGroup:
  """E environments that step together, and their channel to the server."""

  def __init__(
    self,
    environment: core.VectorEnvironment,
    channel: core.InferenceChannel,
    env_ids: np.ndarray,
    run_ids: np.ndarray,
  ):
    """env_ids: `[E]` int32; run_ids: `[E]` int64, new each time the group is built."""
    self._environment = environment
    self._channel = channel
    self._env_ids = env_ids
    self._run_ids = run_ids
    self._request_number = 0
    self.next_call = activity_lib.Doing.RESETTING  # the activity of the next call

  def reset(self) -> None:
    """Starts the environments and asks for the first actions."""
    self._send(self._environment.reset())

  def receive(self) -> types.Nest:
    """Waits for the requested actions."""
    return self._channel.receive()

  def step(self, actions: types.Nest) -> None:
    """Steps the environments and asks for the next actions."""
    self._send(self._environment.step(actions))

  def _send(self, timestep: types.VectorTimeStep) -> None:
    self._channel.send(
      types.ActorRequest(self._request_number, self._env_ids, self._run_ids, timestep)
    )
    self._request_number += 1
    resets = _LAST in timestep.step_type.tobytes()  # 7 µs less than (... == LAST).any()
    self.next_call = activity_lib.Doing.RESETTING if resets else activity_lib.Doing.STEPPING

  def close(self) -> None:
    self._channel.close()
    self._environment.close()


class Actor:
  """Steps its groups in turn: while one group's actions are computed, another steps.

  Used by one thread. Holds no weights and no recurrent state.
  """

  def __init__(self, groups: Sequence[EnvironmentGroup], activity: activity_lib.Activity):
    """activity: where the actor publishes what it is doing."""
    self._groups = groups
    self._activity = activity
    self._started = False
    self.timer = timing.PhaseTimer()

  def step(self) -> None:
    """Steps every group once."""
    begin = self._activity.begin
    if not self._started:
      self._started = True
      with self.timer.phase('environment'):
        for number, group in enumerate(self._groups):
          begin(activity_lib.Doing.RESETTING, number)
          with process_state.kept():
            group.reset()
    for number, group in enumerate(self._groups):
      begin(activity_lib.Doing.WAITING, number)
      with self.timer.phase('wait'):
        actions = group.receive()
      with self.timer.phase('environment'):
        begin(group.next_call, number)
        group.step(actions)
    begin(activity_lib.Doing.WAITING)

  def run(self, should_stop: Callable[[], bool]) -> None:
    """Steps until `should_stop()`, or until the server ends it."""
    try:
      while not should_stop():
        self.step()
    except core.ChannelTaken:
      raise
    except core.ChannelClosed:
      pass

  def close(self) -> None:
    """Closes channels and environments, also those of other groups when one raises.

    Called from the actor's own thread.
    """
    with contextlib.ExitStack() as stack:  # calls the last one first
      stack.callback(self._activity.begin, activity_lib.Doing.STARTING)
      for number, group in reversed(tuple(enumerate(self._groups))):
        stack.callback(group.close)
        stack.callback(self._activity.begin, activity_lib.Doing.CLOSING, number)


def new_run_ids(seed: int | None, env_ids: np.ndarray) -> np.ndarray:
  """Returns run_ids `[E]` int64, drawn from the operating system's entropy if seed is None."""
  entropy = None if seed is None else [seed, int(env_ids[0])]
  rng = np.random.default_rng(np.random.SeedSequence(entropy))
  return rng.integers(1, 2**62, env_ids.size, dtype=np.int64)


class LocalChannel:
  """Channel of the single-process program, which calls the server directly.

  If the program has already answered the request, in one batch with other channels', `receive`
  returns that reply.
  """

  def __init__(self, step: Callable[[list[types.ActorRequest]], list[batching.Reply]]):
    """step: `InferenceServer.step`."""
    self._step = step
    self._request: types.ActorRequest | None = None
    self._reply: batching.Reply | None = None
    self._closed = False

  def send(self, request: types.ActorRequest) -> None:
    self._request, self._reply = request, None

  def answer(self, reply: batching.Reply) -> None:
    """Sets the server's reply to the waiting request."""
    self._reply = reply

  def receive(self) -> types.Nest:
    if self._closed:
      raise core.ChannelClosed
    assert self._request is not None
    reply = self._step([self._request])[0] if self._reply is None else self._reply
    if isinstance(reply, batching.Refusal):
      raise core.Refused(reply.reason)
    return reply

  def waiting(self) -> types.ActorRequest | None:
    """Returns the request sent last; None before the first."""
    return self._request

  def close(self) -> None:
    self._closed = True
