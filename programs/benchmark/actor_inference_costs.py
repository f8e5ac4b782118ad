"""What inference costs in the server and in the actors, each part measured alone.

Central inference sends observations to the server and actions back. With inference in the actors,
as in IMPALA (Espeholt et al. 2018), an actor sends unrolls and gets weights: those of every update,
or only the newest at the start of each unroll.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import dataclasses
import itertools
import socket
import time
from typing import Any

import numpy as np
import tree

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.programs.building import build
from seed_acme.programs.trial import door
from seed_acme.transport import array_codec
from seed_acme.transport import wire
from seed_acme.utils import graph_function

_TRIES = 3
_PIECE = 1 << 16  # bytes that a socket takes without a reader


def scaled(network: config_lib.NetworkConfig, factor: float) -> config_lib.NetworkConfig:
  """Its dense layers and its core with `factor` times the units; convolutions stay."""
  times = lambda units: max(1, round(units * factor))
  return dataclasses.replace(
    network,
    mlp_sizes=tuple(map(times, network.mlp_sizes)),
    head_sizes=tuple(map(times, network.head_sizes)),
    torso_output_size=times(network.torso_output_size),
    core_size=times(network.core_size),
  )


def measure(config: config_lib.ExperimentConfig, min_s: float) -> dict[str, Any]:
  """A JSON record: CPU-seconds per million steps and bytes per step, of both placements.

  A step is a row that an environment makes. What both placements do alike is left out:
  environments, slots, the assembly of unrolls, replay and training. min_s: CPU-seconds of one
  try; the best of three counts.
  """
  acting = build.make_acting(config.agent, config.network, door.environment_spec(config))
  pipe = _Pipe()
  try:
    with graph_function.serial_execution():  # as runs do
      return _Measurement(config, acting, pipe, min_s).record()
  finally:
    pipe.close()


class _Measurement:
  """Of one network."""

  def __init__(
    self, config: config_lib.ExperimentConfig, acting: build.Acting, pipe: _Pipe, min_s: float
  ):
    self._config, self._acting, self._pipe, self._min_s = config, acting, pipe, min_s
    layout = layout_lib.Layout.of(config)
    self._actor_rows = layout.environments_per_group
    self._server_rows = layout.batch_rows(0, 1)[0]
    network = acting.agent.acting.make()
    self._weights = [network.variables[i].numpy() for i in acting.policy.variables_read]

  def record(self) -> dict[str, Any]:
    agent = self._config.agent
    encode_s, deliver_s, weights_bytes = self._weights_to_an_actor()
    messages_s, request_bytes, reply_bytes = self._messages()
    unrolls_s, unrolls_bytes = self._unrolls()
    inference_s = self._inference(self._server_rows)
    is_same = self._server_rows == self._actor_rows  # noise would tell them apart
    in_actor_s = inference_s if is_same else self._inference(self._actor_rows)
    steps_per_update = agent.batch_size * agent.unroll_length / agent.replay_spec().ratio
    every_update = self._config.num_actors / steps_per_update
    every_unroll = 1 / (self._actor_rows * agent.unroll_length)

    def in_actors(deliveries_per_step: float) -> dict[str, Any]:
      weights_s = encode_s / steps_per_update + deliveries_per_step * deliver_s
      return _placement(
        {'inference': in_actor_s, 'unrolls': unrolls_s * every_unroll, 'weights': weights_s},
        {'unrolls': unrolls_bytes * every_unroll, 'weights': deliveries_per_step * weights_bytes},
      )

    return {
      'num_weights': sum(array.size for array in self._weights),
      'actor_rows': self._actor_rows,
      'server_rows': self._server_rows,
      'steps_per_update': steps_per_update,
      'central': _placement(
        {'inference': inference_s, 'messages': messages_s / self._actor_rows},
        {'requests': request_bytes / self._actor_rows, 'actions': reply_bytes / self._actor_rows},
      ),
      'actor_every_update': in_actors(every_update),
      'actor_every_unroll': in_actors(min(every_update, every_unroll)),  # only new weights
    }

  def _inference(self, num_rows: int) -> float:
    """CPU-seconds of one row in a batch of so many."""
    policy = self._acting.policy
    repeat = lambda x: np.repeat(x, num_rows, axis=0)
    inputs = tree.map_structure(lambda x: repeat(np.asarray(x)[None]), policy.example_row()[0])
    state = tree.map_structure(repeat, policy.initial_state())
    exploration = tree.map_structure(repeat, policy.example_exploration())
    return self._best(lambda: policy(inputs, state, exploration)) / num_rows

  def _messages(self) -> tuple[float, int, int]:
    """A request of one actor and its reply: CPU-seconds, bytes there, bytes back."""
    spec, size = self._acting.spec, self._actor_rows
    codec = wire.GroupCodec(spec, size)
    zeros = lambda leaf: np.zeros((size, *leaf.shape), leaf.dtype)
    numbers = np.zeros(size, np.float32)
    timestep = types.VectorTimeStep(
      step_type=np.ones(size, np.uint8),
      reward=numbers,
      discount=numbers,
      score=numbers,
      observation=tree.map_structure(zeros, spec.observation),
    )
    request = types.ActorRequest(
      request_number=0,
      env_ids=np.arange(size, dtype=np.int32),
      run_ids=np.zeros(size, np.int64),
      timestep=timestep,
    )
    actions = tree.map_structure(zeros, spec.action)

    def exchange() -> None:
      codec.decode_request(self._pipe.pass_on(codec.encode_request(request)))
      codec.decode_reply(self._pipe.pass_on(codec.encode_actions(actions)))

    return self._best(exchange), codec.num_request_bytes, len(codec.encode_actions(actions))

  def _unrolls(self) -> tuple[float, int]:
    """CPU-seconds and bytes of an actor's unrolls on their way to the learner, in one message."""
    unroll = self._acting.example_unroll()
    repeat = lambda x: np.repeat(np.asarray(x)[None], self._actor_rows, axis=0)
    arrays = [repeat(x) for x in tree.flatten(unroll)]
    codec = _codec(arrays)
    work = lambda: codec.decode(self._pipe.pass_on(codec.encode(arrays)))
    return self._best(work), codec.num_bytes

  def _weights_to_an_actor(self) -> tuple[float, float, int]:
    """CPU-seconds of encoding, once an update; of one delivery; bytes of one.

    An actor receives the weights and puts them into its network.
    """
    codec = _codec(self._weights)
    message = codec.encode(self._weights)
    versions = itertools.count()

    def deliver() -> None:
      values = tuple(codec.decode(self._pipe.pass_on(message)))
      self._acting.published.publish(types.Variables(next(versions), values))
      self._acting.policy.refresh()

    encode_s = self._best(lambda: codec.encode(self._weights))
    return encode_s, self._best(deliver), codec.num_bytes

  def _best(self, work: Callable[[], object]) -> float:
    """CPU-seconds of one call, over all threads of the process."""
    work()  # traces and warms up
    best = float('inf')
    for _ in range(_TRIES):
      start, calls = time.process_time(), 0
      while time.process_time() - start < self._min_s:
        work()
        calls += 1
      best = min(best, (time.process_time() - start) / max(1, calls))
    return best


def _placement(seconds: dict[str, float], num_bytes: dict[str, float]) -> dict[str, Any]:
  return {
    'cpu_s_per_million_steps': {name: 1e6 * value for name, value in seconds.items()},
    'bytes_per_step': num_bytes,
  }


def _codec(arrays: Sequence[np.ndarray]) -> array_codec.ArrayCodec:
  return array_codec.ArrayCodec(
    [array_codec.Field(str(i), a.dtype.str, a.shape) for i, a in enumerate(arrays)]
  )


class _Pipe:
  """A pair of Unix sockets, both ends in this thread: what sending and receiving costs."""

  def __init__(self) -> None:
    self._here, self._there = socket.socketpair()

  def pass_on(self, message: bytes) -> bytearray:
    """Through the sockets, piece by piece."""
    received = bytearray(len(message))
    source, target = memoryview(message), memoryview(received)
    for start in range(0, len(message), _PIECE):
      piece = target[start : start + _PIECE]
      self._here.sendall(source[start : start + _PIECE])
      while piece:
        piece = piece[self._there.recv_into(piece) :]
    return received

  def close(self) -> None:
    self._here.close()
    self._there.close()
