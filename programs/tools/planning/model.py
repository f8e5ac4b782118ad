"""The plan of a run: the highest rate that all of its parts can sustain.

All hosts are alike, so the model has one learner host with its share of the actors. At a given rate
of rows per second every part has a load, where 1 means always busy. Loads rise with the rate, and
bisection finds the rate at which the first of them reaches 1. That part is the bottleneck.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import math
from typing import Annotated

from seed_acme.checks import bounds
from seed_acme.programs.tools.planning import costs as costs_lib

_HALVINGS = 80
ENVIRONMENTS = 'environments'  # there are too few to keep any part busy


@dataclasses.dataclass(frozen=True)
class Scale:
  """The numbers of hosts, processes, devices and environments of a run.

  learners: hosts. actors: single-threaded processes in total. unrolls_per_update: of all hosts
    together. inference_rows: rows at which a device's batch runs. inference_devices,
    training_devices: of each learner. cores: of one machine that all processes share; 0 = a core
    for each actor and separate devices for learners. network_bytes_per_s: of a learner's host.
    round_trip_s: of a message over the network.
  """

  learners: Annotated[int, bounds.at_least(1)]
  actors: Annotated[int, bounds.at_least(1)]
  environments_per_actor: Annotated[int, bounds.at_least(1)]
  groups_per_actor: Annotated[int, bounds.at_least(1)]
  unrolls_per_update: Annotated[int, bounds.at_least(1)]
  inference_rows: Annotated[int, bounds.at_least(1)]
  inference_devices: Annotated[int, bounds.at_least(1)] = 1
  training_devices: Annotated[int, bounds.at_least(1)] = 1
  cores: Annotated[float, bounds.at_least(0)] = 0.0
  network_bytes_per_s: Annotated[float, bounds.above(0, takes_infinity=True)] = math.inf
  round_trip_s: Annotated[float, bounds.at_least(0)] = 0.0

  def __post_init__(self) -> None:
    bounds.check(self)

  @property
  def environments(self) -> int:
    return self.actors * self.environments_per_actor


@dataclasses.dataclass(frozen=True)
class Plan:
  """The predicted performance of a run, over all hosts.

  bottleneck: the part with load 1. idle: share of time without work, by part. batch_rows: mean rows
    of an inference call. policy_lag: mean updates between acting and learning.
  bytes_per_s: into and out of all learner hosts.
  """

  steps_per_s: float
  frames_per_s: float
  updates_per_s: float
  bottleneck: str
  idle: dict[str, float]
  batch_rows: float
  policy_lag: float
  bytes_per_s: float


# Rows per second of one host -> load by part.
_Loads = Callable[[float], dict[str, float]]


def central(costs: costs_lib.Costs, scale: Scale) -> Plan:
  """Returns the plan for central inference (SEED): learners compute the actors' actions."""
  host = _Host(costs, scale)
  rows_per_s = _highest(host.central_loads)
  waiting = host.environments / rows_per_s * costs.setting.unroll_length / 2
  return host.plan(rows_per_s, host.central_loads, host.central_bytes(rows_per_s), waiting)


def actor_side(costs: costs_lib.Costs, scale: Scale) -> Plan:
  """Returns the plan for inference on the actors (IMPALA), which the weights are sent to.

  An actor fetches the weights after each update, but at most once per unroll. It also does the work
  around a call that a central learner does, which is to keep states and to make unrolls.
  """
  host = _Host(costs, scale)
  rows_per_s = _highest(host.actor_side_loads)
  # Every row of an unroll was acted with the weights from its beginning.
  waiting = host.environments / rows_per_s * costs.setting.unroll_length
  return host.plan(rows_per_s, host.actor_side_loads, host.actor_side_bytes(rows_per_s), waiting)


def _highest(loads: _Loads) -> float:
  """Returns the rows per second at which the highest load is 1."""
  low, high = 0.0, 1.0
  while max(loads(high).values()) < 1:
    low, high = high, 2 * high
  for _ in range(_HALVINGS):
    middle = (low + high) / 2
    low, high = (middle, high) if max(loads(middle).values()) < 1 else (low, middle)
  return high


class _Host:
  """One learner host with its actors. Rates are rows per second of this host."""

  def __init__(self, costs: costs_lib.Costs, scale: Scale):
    self._costs = costs
    self._scale = scale
    self.actors = scale.actors / scale.learners
    self.environments = self.actors * scale.environments_per_actor
    self._group = scale.environments_per_actor / scale.groups_per_actor
    self._unrolls = scale.unrolls_per_update / scale.learners
    # On one shared machine a CPU-second takes as long as it did in the measurement.
    self._stretch = costs.contention if scale.cores else 1.0

  def central_loads(self, rate: float) -> dict[str, float]:
    scale, batch = self._scale, self._batch(rate)
    actor = self._actor_row_s()
    served = self._call_s(batch) / batch
    loads = {
      'actors': rate * actor * self._stretch / self.actors,
      'inference': rate * served / scale.inference_devices,
      'training': self._training_load(rate),
      'network': self.central_bytes(rate) / scale.network_bytes_per_s,
      ENVIRONMENTS: rate * self._cycle_s(rate, batch) / self.environments,
    }
    cpu_s = actor + served / self._stretch
    return {**loads, **self._cores_load(rate, cpu_s)}

  def actor_side_loads(self, rate: float) -> dict[str, float]:
    costs = self._costs
    call = costs.actor_inference_call(self._group) + costs.call_s
    acting = self._actor_row_s() + call / self._group + costs.row_s
    loads = {
      'actors': rate * acting * self._stretch / self.actors,
      'training': self._training_load(rate),
      'network': self.actor_side_bytes(rate) / self._scale.network_bytes_per_s,
    }
    return {**loads, **self._cores_load(rate, acting)}

  def central_bytes(self, rate: float) -> float:
    """Returns bytes per second: requests, replies, and updates between hosts."""
    return rate * self._costs.exchange_bytes(self._group) / self._group + self._update_bytes(rate)

  def actor_side_bytes(self, rate: float) -> float:
    """Returns bytes per second: unrolls, weights, and updates between hosts."""
    costs = self._costs
    unrolls = rate / costs.setting.unroll_length
    fetched = min(unrolls / self._scale.environments_per_actor, self.actors * self._updates(rate))
    sent = unrolls * costs.unroll_bytes + fetched * costs.weights_bytes
    return sent + self._update_bytes(rate)

  def plan(self, rate: float, loads: _Loads, bytes_per_s: float, waiting_s: float) -> Plan:
    """Returns the plan at a rate. waiting_s: mean time between acting and the end of the unroll."""
    costs, hosts = self._costs, self._scale.learners
    found = loads(rate)
    bottleneck = max(found, key=lambda part: found[part])
    queued = costs.setting.queued_unrolls / self._unrolls
    lag = self._updates(rate) * waiting_s + costs.setting.prefetched_updates
    steps = rate * costs.steps_per_row * hosts
    return Plan(
      steps_per_s=steps,
      frames_per_s=steps * costs.setting.frames_per_step,
      updates_per_s=self._updates(rate),
      bottleneck=bottleneck,
      idle={
        part: max(0.0, 1 - load) if part != bottleneck else 0.0
        for part, load in found.items()
        if part != ENVIRONMENTS
      },
      batch_rows=self._batch(rate) if 'inference' in found else self._group,
      policy_lag=lag + (queued if bottleneck == 'training' else 0.0),
      bytes_per_s=bytes_per_s * hosts,
    )

  def _updates(self, rate: float) -> float:
    length = self._costs.setting.unroll_length
    return rate * self._costs.replay_ratio / (self._unrolls * length)

  def _update_s(self) -> float:
    return self._costs.update(self._unrolls / self._scale.training_devices)

  def _training_load(self, rate: float) -> float:
    return self._updates(rate) * self._update_s() * self._stretch

  def _update_bytes(self, rate: float) -> float:
    """Returns bytes per second that a host sends to others: in each update what they need of its
    share of the batch, and gradients, of which a ring all-reduce moves nearly twice the size."""
    costs, hosts = self._costs, self._scale.learners
    samples = self._unrolls * costs.shared_unroll_bytes
    gradients = 2 / hosts * costs.gradient_bytes
    return (hosts - 1) * (samples + gradients) * self._updates(rate)

  def _cores_load(self, rate: float, row_s: float) -> dict[str, float]:
    """Returns the load of the shared cores. row_s: CPU-seconds per row without training."""
    if not self._scale.cores:
      return {}
    training = self._updates(rate) * self._update_s() * self._scale.training_devices
    cpu_s = (rate * row_s + training) * self._scale.learners
    return {'cores': cpu_s * self._stretch / self._scale.cores}

  def _actor_row_s(self) -> float:
    call = self._costs.environment_call(self._group) + self._costs.actor_message_s
    return call / self._group

  def _call_s(self, rows: float) -> float:
    """Returns the seconds of an inference call, including the learner's work around it."""
    costs = self._costs
    around = costs.call_s + rows * (costs.row_s + costs.message_s / self._group)
    return (costs.inference_call(rows) + around) * self._stretch

  def _batch(self, rate: float) -> float:
    """Returns the rows of a call: those that arrive during a call and the time-out, up to a
    limit."""
    scale = self._scale
    devices = scale.inference_devices
    most = max(self._group, min(scale.inference_rows, self.environments / devices))
    batch = most
    for _ in range(20):  # fixed-point iteration, because the time of a call depends on its rows
      came = rate / devices * (self._costs.setting.inference_timeout_s + self._call_s(batch))
      batch = min(most, max(self._group, came))
    return batch

  def _cycle_s(self, rate: float, batch: float) -> float:
    """Returns the time from one action of an environment to the next, if no part is overloaded."""
    per_device = rate / self._scale.inference_devices
    filling = (batch - self._group) / (2 * per_device)
    call = self._call_s(batch)
    busy = min(1.0, per_device * call / batch)
    timeout = self._costs.setting.inference_timeout_s
    acting = self._actor_row_s() * self._group * self._stretch
    return acting + self._scale.round_trip_s + min(filling, timeout) + call * (1 + busy / 2)
