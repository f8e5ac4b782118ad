"""Stand-ins for the parts of a run, which record their arguments and start nothing.

Each replaces one class or function that costs something to make (a server, a thread, an
environment). The real code decides how many of them there are, and with which numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import dataclasses
from typing import Any, NamedTuple

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.acting import activity as activity_lib
from seed_acme.acting import actor as actor_lib
from seed_acme.envs import experiment_environments
from seed_acme.inference import batching
from seed_acme.inference import server as inference_server
from seed_acme.inference import thread as inference_thread
from seed_acme.inference import unroll_quota
from seed_acme.programs.building import build
from seed_acme.programs.nodes import end_notice
from seed_acme.programs.nodes import stall_watch
from seed_acme.programs.system import descriptors
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.programs.trial import door
from seed_acme.programs.trial import specification
from seed_acme.progress import waiting
from seed_acme.replay import account
from seed_acme.replay import dataset
from seed_acme.replay import local_queue
from seed_acme.replay import memory
from seed_acme.replay import server as replay_server
from seed_acme.replay import writer
from seed_acme.storage import checkpoint
from seed_acme.transport import courier_transport
from seed_acme.transport import grpc_client
from seed_acme.transport import grpc_server
from seed_acme.transport import unix_client
from seed_acme.transport import unix_server

SPEC = types.EnvironmentSpec(
  observation=specs.Array((3,), np.float32), action=specs.DiscreteArray(3)
)
FIRST_FREE_PORT = 60_001  # the first of the ports that are chosen automatically


class Quiet:
  """An object whose methods do nothing, and which records its arguments."""

  def __init__(self, *arguments: Any, **named: Any):
    self.arguments = arguments
    self.named = named

  def __getattr__(self, name: str) -> Any:
    if name.startswith('__'):
      raise AttributeError(name)
    return lambda *arguments, **named: None


class ReplayServer(Quiet):
  """A replay server with the address that a real server on its port would have."""

  def __init__(self, ports: Iterator[int], *arguments: Any, **named: Any):
    super().__init__(*arguments, **named)
    self.spec, self.batch, self.queue_size, self.item, _, self.port = arguments
    self.address = f'localhost:{self.port or next(ports)}'


class Writer(Quiet):
  def __init__(self, *arguments: Any):
    super().__init__(*arguments)
    self.address, self.item, self.backlog, _, self.items = arguments
    self.has_got = False

  def put(self, unrolls: Any) -> None:
    self.has_got = True


class LocalQueue(local_queue.LocalQueue):
  def __init__(self, *arguments: Any):
    super().__init__(*arguments)
    self.arguments = arguments


class InferenceServer(Quiet):
  def step(self, requests: Any) -> Any:
    raise AssertionError('nothing acts here')


class Transport(Quiet):
  port = 0


@dataclasses.dataclass
class Acting:
  """The attributes of `build.Acting` that depend on devices."""

  spec: types.EnvironmentSpec
  devices: Any
  agent: Any
  published: Any

  @property
  def policies(self) -> tuple[str, ...]:
    return tuple(self.devices.inference)

  unroll_length = overlap = 0

  def example_unroll(self) -> None:
    return None


class GroupOfEnvironments(NamedTuple):
  """A group of environments. seed: of its environments. channel: by which it requests actions."""

  env_ids: np.ndarray
  seed: int
  channel: Any


class Bricks:
  """All objects that were made, by kind, in order."""

  def __init__(self, num_gpus: int, resumptions: int):
    self._num_gpus = num_gpus
    self._resumptions = resumptions
    self.ports = iter(range(FIRST_FREE_PORT, 65_000))
    self.made: dict[str, list[Any]] = {}

  def take(self, kind: str) -> list[Any]:
    """Returns the objects of a kind made since the last call."""
    return self.made.pop(kind, [])

  @contextlib.contextmanager
  def in_place(self) -> Iterator[pytest.MonkeyPatch]:
    """Replaces the real parts by these within the context."""
    with pytest.MonkeyPatch.context() as patch:
      self._patch_learner(patch)
      self._patch_transport(patch)
      self._patch_actor(patch)
      self._patch_processes(patch)
      yield patch

  def _kept(self, kind: str, make: Any) -> Any:
    def made(*arguments: Any, **named: Any) -> Any:
      self.made.setdefault(kind, []).append(make(*arguments, **named))
      return self.made[kind][-1]

    return made

  def _patch_learner(self, patch: pytest.MonkeyPatch) -> None:
    loop = lambda *arguments, **named: _Loop(self._resumptions)
    kept = self._kept
    patch.setattr(build, 'make_acting', kept('acting', _make_acting))
    patch.setattr(build, 'make_training_loop', kept('loop', loop))
    patch.setattr(inference_server, 'InferenceServer', kept('server', InferenceServer))
    patch.setattr(inference_thread, 'InferenceThread', Quiet)
    patch.setattr(unroll_quota, 'UnrollQuota', Quiet)
    patch.setattr(batching, 'Batcher', kept('batcher', Quiet))
    patch.setattr(end_notice, 'Desk', kept('desk', _Desk))
    replay = lambda *arguments, **named: ReplayServer(self.ports, *arguments, **named)
    patch.setattr(replay_server, 'ReplayServer', kept('replay', replay))
    patch.setattr(replay_server, 'empty_queue', kept('emptied', lambda address, item: address))
    patch.setattr(replay_server, 'empty_memory', lambda address: 0)
    patch.setattr(memory, 'ReplayMemory', kept('memory', _Memory))
    patch.setattr(writer, 'ReplayWriter', kept('writer', Writer))
    patch.setattr(dataset, 'make_samples', kept('samples', lambda *arguments: arguments[:4]))
    patch.setattr(dataset, 'Prefetcher', Quiet)
    patch.setattr(local_queue, 'LocalQueue', LocalQueue)
    patch.setattr(account, 'Account', Quiet)
    patch.setattr(waiting, 'Watch', Quiet)
    found = {'GPU': self._num_gpus, 'CPU': 4}
    patch.setattr(tf.config, 'list_logical_devices', lambda kind: [None] * found[kind])

  def _patch_transport(self, patch: pytest.MonkeyPatch) -> None:
    for module, name in (
      (grpc_server, 'GrpcServer'),
      (courier_transport, 'CourierServer'),
      (unix_server, 'UnixServer'),
    ):
      patch.setattr(module, name, self._kept(name, Transport))
    for module, name in (
      (grpc_client, 'GrpcChannel'),
      (courier_transport, 'CourierChannel'),
      (unix_client, 'UnixChannel'),
    ):
      patch.setattr(module, name, self._kept('channel', lambda address, *more: address))

  def _patch_actor(self, patch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def make(config: Any, number: int, seed: int, renders: bool) -> Any:
      seeds.append(seed)
      return _Environment(number)

    def make_group(environment: Any, channel: Any, env_ids: np.ndarray, run_ids: np.ndarray) -> Any:
      assert environment.num_environments == env_ids.size == run_ids.size
      return GroupOfEnvironments(env_ids, seeds[-1], channel)

    new_run_ids = actor_lib.new_run_ids

    def run_ids(seed: int | None, env_ids: np.ndarray) -> np.ndarray:
      self.made.setdefault('run seed', []).append(seed)
      return new_run_ids(seed, env_ids)

    patch.setattr(experiment_environments, 'make', make)
    patch.setattr(actor_lib, 'EnvironmentGroup', self._kept('group', make_group))
    patch.setattr(actor_lib, 'Actor', lambda groups, activity: Quiet(groups))
    patch.setattr(actor_lib, 'LocalChannel', lambda step: step.__self__)
    patch.setattr(actor_lib, 'new_run_ids', run_ids)
    patch.setattr(stall_watch, 'Thread', _Watch)

  def _patch_processes(self, patch: pytest.MonkeyPatch) -> None:
    """Replaces functions that would change this process, or start another."""
    patch.setattr(descriptors, 'prepare', lambda: None)
    patch.setattr(processes, 'load_tensorflow', lambda: None)
    patch.setattr(processes, 'configure_tensorflow', lambda num_threads: None)
    patch.setattr(processes, 'set_tensorflow_defaults', lambda: None)
    nothing = lambda *arguments: contextlib.nullcontext()
    patch.setattr(processes, 'reported_failures', nothing)
    patch.setattr(signals, 'answer', lambda stop: None)
    patch.setattr(door, 'check', lambda configs: [SPEC for _ in configs])
    patch.setattr(door, 'environment_spec', lambda config, show=None: SPEC)
    patch.setattr(specification, 'of_run', lambda config, run, show=None: SPEC)
    patch.setattr(checkpoint, 'num_resumptions', lambda checkpoints: self._resumptions)


class _Loop(Quiet):
  def __init__(self, resumptions: int):
    super().__init__()
    self.resumptions = resumptions


class _Memory(Quiet):
  def counts(self) -> tuple[int, int]:
    return 0, 0


class _Desk(Quiet):
  def __init__(self, batcher_of: Any, *arguments: Any, **named: Any):
    super().__init__(*arguments, **named)
    self.batcher_of = batcher_of


class _Watch(Quiet):
  def add(self, sections: Any) -> activity_lib.Activity:
    return activity_lib.Activity()


class _Environment(Quiet):
  spec = SPEC

  def __init__(self, num_environments: int):
    super().__init__()
    self.num_environments = num_environments


def _make_acting(
  config: Any, network: Any, spec: types.EnvironmentSpec, devices: Any = None
) -> Acting:
  return Acting(spec, devices, Quiet(), Quiet())
