"""The learner: sample -> prepare -> losses -> gradients -> clip -> apply, in one or more passes.

There is one class for all agents; each agent provides its `agent.Learning`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import contextlib
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from seed_acme import agent as agent_lib
from seed_acme import types
from seed_acme.learning import consecutive
from seed_acme.learning import metrics as metrics_lib
from seed_acme.learning import objectives as objectives_lib
from seed_acme.learning import peers as peers_lib
from seed_acme.learning import saved_variables
from seed_acme.parallel import data_parallel
from seed_acme.tensors import graph_function


class Update(NamedTuple):
  """Result of one update.

  metrics: `{'group/name': float}`, means over the gradient steps, or over those of one pass if
  the agent says so. trained_steps: unmasked transitions in the sample. priorities: `[B]` or None.
  """

  metrics: dict[str, float]
  trained_steps: int
  priorities: np.ndarray | None


class NonFiniteError(Exception):
  """Raised if a metric of an update, such as a loss or the gradient norm, is NaN or infinite. The
  weights may be spoilt: do not save them."""


class Learner:
  """Trains the network's weights on samples. Used by the training thread only.

  It never touches the network that acts, which receives `variables()`. One update uses one
  sample, whatever the number of passes over it.
  """

  def __init__(
    self,
    agent: agent_lib.Agent,
    *,
    published: Sequence[int],
    total_steps: int,
    seed: int,
    xla: bool,
    devices: Sequence[str],
    peers: peers_lib.Peers = peers_lib.ALONE,
  ):
    """published: indices of the acting network's variables that inference reads, in its order.

    total_steps: agent steps of the whole run. seed: for keys and shuffling. xla: compile the
    gradient step. devices: to train on, see `parallel.data_parallel`; the learner must be made
    within the scope of the first. peers: the hosts that learn together, each from its own samples.
    """
    self._network = agent.acting.make()
    self._learning = agent.make_learning(self._network)
    objectives_lib.check_partition(self._network, self._learning)
    self._steppers = {
      name: objectives_lib.Stepper(objective)
      for name, objective in self._learning.objectives.items()
    }
    self._total_steps = total_steps
    self._seed = seed
    self._xla = xla
    self._devices = tuple(devices)
    self._peers = peers
    self._local_batch_size: int | None = None  # unrolls whose observations stay on this host
    self._published = [self._network.variables[i] for i in published]
    self._copy = graph_function.GraphFunction(
      lambda: tuple(tf.identity(v) for v in self._published), ()
    )
    # Traced with the first sample.
    self._whole: Callable[..., Any] | None = None
    self._prepare: dict[bool, Callable[..., Any]] = {}
    self._learn: Callable[..., Any] | None = None
    self._finish: Callable[..., Any] | None = None
    self._stacks = metrics_lib.Stacks()
    self.num_updates = 0

  def step(self, sample: types.Sample, agent_steps: int) -> Update:
    """Makes one update. agent_steps: steps of the run so far, for schedules and `progress`.

    With several hosts, sample and priorities belong to this host's share of the batch.

    Raises `NonFiniteError` naming metrics that are not finite.
    """
    scheduled = [s.scheduled_rate(agent_steps, self._total_steps) for s in self._steppers.values()]
    rates = np.array(scheduled, np.float32)
    progress = np.float32(min(agent_steps / self._total_steps, 1.0))
    whole = self._peers.gather(sample, self._learning.keeps_observations)
    if self._learning.keeps_observations:
      self._local_batch_size = len(sample.keys)
    if self._learning.passes is None:
      metrics, priorities = self._step_once(whole, progress, rates)
    else:
      metrics = self._step_in_passes(self._learning.passes, whole, progress, rates)
      priorities = None
    self._check_finite(metrics)
    self.num_updates += 1
    trained_steps = int(metrics.pop('learner/trained_steps'))
    if priorities is not None:
      priorities = self._peers.own(priorities)
    return Update(metrics, trained_steps, priorities)

  @property
  def keeps_observations(self) -> bool:
    """See `agent.Learning`."""
    return self._learning.keeps_observations

  @property
  def watches(self) -> Sequence[agent_lib.Watch]:
    """See `agent.Learning`."""
    return self._learning.watches

  def of_row(self, means: Mapping[str, float]) -> dict[str, float]:
    """See `agent.Learning`."""
    return {} if self._learning.of_row is None else self._learning.of_row(means)

  def variables(self) -> types.Variables:
    """Returns a copy of the current weights that inference reads."""
    return types.Variables(self.num_updates, self._copy())

  def _step_once(
    self, sample: types.Sample, progress: np.float32, rates: np.ndarray
  ) -> tuple[dict[str, float], np.ndarray | None]:
    arguments = (sample, self._keys(1)[0], progress, rates, np.int64(self.num_updates))
    if self._whole is None:
      self._whole = self._compiled(self._whole_step, arguments, self._xla)
    numbers, priorities = self._whole(*arguments)
    return self._stacks.named('whole', numbers), priorities[0].numpy() if priorities else None

  def _whole_step(
    self,
    sample: types.Sample,
    key: tf.Tensor,
    progress: tf.Tensor,
    rates: tf.Tensor,
    num_updates: tf.Tensor,
  ) -> tuple[tf.Tensor, Any]:
    """Computes an update of one pass over the whole batch, in a graph."""
    prepared = self._learning.prepare(sample, key, True)
    metrics, priorities = self._gradient_step(prepared.batch, key, progress, rates)
    metrics.update(self._finishing(sample, num_updates))
    metrics.update(metrics_lib.of_sample(prepared, num_updates))
    return self._stacks.stack('whole', metrics), () if priorities is None else (priorities,)

  def _step_in_passes(
    self, passes: agent_lib.Passes, sample: types.Sample, progress: np.float32, rates: np.ndarray
  ) -> dict[str, float]:
    """Makes an update of several passes. For small networks the calls dominate the cost, so XLA
    gets a whole pass in one call, and nothing is fetched before the last.
    """
    # Seeded with the number of the update, so that a resumed run shuffles like an unbroken one.
    rng = np.random.default_rng((self._seed, self.num_updates))
    num_updates, num_calls = np.int64(self.num_updates), 1 if self._xla else passes.num_minibatches
    num_steps = passes.num_epochs * passes.num_minibatches
    keys = self._keys(num_steps)
    prepared, counted, numbers = None, None, list[tf.Tensor]()
    for epoch, its_keys in enumerate(np.split(keys, passes.num_epochs)):
      if epoch == 0 or passes.prepares_each_epoch:
        prepared, of_sample = self._run_prepare(sample, its_keys[0], num_updates, epoch == 0)
        counted = of_sample if epoch == 0 else counted
      order = rng.permutation(passes.num_elements).astype(np.int32)
      minibatches = order.reshape(passes.num_minibatches, -1)
      for rows in zip(np.split(minibatches, num_calls), np.split(its_keys, num_calls)):
        numbers.append(self._run_gradient_steps(passes, prepared, *rows, progress, rates))
    of_steps = np.concatenate([rows.numpy() for rows in numbers])
    metrics = self._stacks.over_passes('learn', of_steps, passes)
    metrics.update(self._stacks.named('finish', self._run_finish(sample, num_updates)))
    metrics.update(self._stacks.named('prepare', counted))
    return {**metrics, 'learner/gradient_steps': float(num_steps)}

  def _run_prepare(
    self, sample: types.Sample, key: np.ndarray, num_updates: np.int64, is_first: bool
  ) -> tuple[types.Nest, tf.Tensor]:
    """Returns the prepared batch and the metrics of the sample."""

    def prepare(
      sample: types.Sample, key: tf.Tensor, num_updates: tf.Tensor
    ) -> tuple[types.Nest, tf.Tensor]:
      prepared = self._learning.prepare(sample, key, is_first)
      return prepared.batch, self._stacks.stack(
        'prepare', metrics_lib.of_sample(prepared, num_updates)
      )

    arguments = (sample, key, num_updates)
    if is_first not in self._prepare:
      self._prepare[is_first] = self._compiled(prepare, arguments)
    return self._prepare[is_first](*arguments)

  def _run_gradient_steps(
    self,
    passes: agent_lib.Passes,
    batch: types.Nest,
    indices: np.ndarray,
    keys: np.ndarray,
    progress: np.float32,
    rates: np.ndarray,
  ) -> tf.Tensor:
    """Makes a gradient step for each row of indices; returns `[N, M]` metrics, not fetched yet."""

    def learn(
      batch: types.Nest, indices: tf.Tensor, keys: tf.Tensor, *arguments: tf.Tensor
    ) -> tf.Tensor:
      def step(indices: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
        minibatch = passes.take(batch, indices)
        metrics, priorities = self._gradient_step(minibatch, key, *arguments)
        if priorities is not None:
          raise ValueError('losses of an agent with `Learning.passes` must not return priorities')
        return self._stacks.stack('learn', metrics)

      return consecutive.for_each_row(step, indices, keys)

    arguments = (batch, indices, keys, progress, rates)
    if self._learn is None:
      self._learn = self._compiled(learn, arguments, self._xla)
    return self._learn(*arguments)

  def _run_finish(self, sample: types.Sample, num_updates: np.int64) -> tf.Tensor:
    arguments = (sample, num_updates)
    if self._finish is None:
      self._finish = self._compiled(
        lambda *arguments: self._stacks.stack('finish', self._finishing(*arguments)), arguments
      )
    return self._finish(*arguments)

  def _gradient_step(
    self, batch: types.Nest, key: tf.Tensor, progress: tf.Tensor, rates: tf.Tensor
  ) -> tuple[dict[str, tf.Tensor], Any]:
    """Computes all losses with the same weights, then takes all steps, in a graph. Returns metrics
    and priorities (or None)."""
    with tf.GradientTape(persistent=len(self._steppers) > 1) as tape:
      output = self._learning.losses(batch, key, progress)
    if output.losses.keys() != self._steppers.keys():
      raise ValueError(
        f'losses {sorted(output.losses)} are not those of the objectives {sorted(self._steppers)}'
      )
    gradients = {
      name: self._peers.mean(stepper.gradients(tape, output.losses[name]))
      for name, stepper in self._steppers.items()
    }
    metrics = {**output.metrics, 'loss/total': tf.add_n(list(output.losses.values()))}
    for i, (name, stepper) in enumerate(self._steppers.items()):
      group = 'learner' if len(self._steppers) == 1 else name
      metrics[f'{group}/gradient_norm'] = stepper.apply(gradients[name], rates[i])
      metrics[f'{group}/learning_rate'] = rates[i]
    return metrics, output.priorities

  def _finishing(self, sample: types.Sample, num_updates: tf.Tensor) -> dict[str, tf.Tensor]:
    """Does what follows the last gradient step of an update, in a graph; returns metrics."""
    if self._learning.after_update is not None:
      self._learning.after_update(num_updates + 1)
    return {} if self._learning.finish is None else self._learning.finish(sample)

  def _compiled(
    self, function: Callable[..., types.Nest], arguments: tuple[types.Nest, ...], xla: bool = False
  ) -> Callable[..., Any]:
    """Traces `function` for arguments of these shapes, on the training devices.

    After `tf.config.run_functions_eagerly(True)` it is not traced, so that the values and lines of
    a loss can be seen in a debugger.
    """
    if tf.config.functions_run_eagerly():
      return self._on_devices(function)
    specs = tree.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), arguments)
    with self._placed():
      compiled = graph_function.GraphFunction(function, specs, xla)
    return self._peers.timed(compiled)

  def _on_devices(self, function: Callable[..., types.Nest]) -> Callable[..., Any]:
    def call(*arguments: types.Nest) -> Any:
      with self._placed():
        return function(*tree.map_structure(tf.convert_to_tensor, arguments))

    return call

  def _placed(self) -> contextlib.AbstractContextManager[None]:
    """Returns a context that splits the batches of networks over devices and hosts."""
    return data_parallel.on_devices(self._devices, self._peers.group, self._local_batch_size)

  def _keys(self, number: int) -> np.ndarray:
    """Returns `[number, 2]` int32, a key per gradient step that depends on seed and update only."""
    sequence = np.random.SeedSequence((self._seed, self.num_updates))
    return sequence.generate_state(2 * number, np.uint32).view(np.int32).reshape(number, 2)

  def _check_finite(self, metrics: dict[str, float]) -> None:
    bad = [name for name, value in metrics.items() if not np.isfinite(value)]
    if bad:
      raise NonFiniteError(
        f'{", ".join(bad[:3])} became {metrics[bad[0]]} in update {self.num_updates + 1}: '
        'lower the learning rate or the greatest gradient norm of the agent, '
        'or look for extreme rewards and observations'
      )

  def save(self) -> dict[str, np.ndarray]:
    """Returns everything a checkpoint contains of the learner, by name."""
    return {name: variable.numpy() for name, variable in self._named_variables().items()}

  def restore(self, arrays: dict[str, np.ndarray], num_updates: int) -> None:
    """Restores what `save` returned. Raises `types.UserError` if names or shapes differ."""
    saved_variables.assign(self._named_variables(), arrays)
    self.num_updates = num_updates

  def warm_start(self, arrays: dict[str, np.ndarray]) -> list[str]:
    """Loads the weights of another run's checkpoint; the optimisers are not restored.

    Returns the names of variables that only learning reads and the checkpoint lacks, such as the
    learnt weight of a loss term that the other run did not have. They begin as in a new run, where
    targets are copies of what they follow.
    Raises `types.UserError` if one that acts is missing or left over, or if a shape differs.
    """
    weights = self._weights()
    new = [name for name in weights if saved_variables.is_for_learning(name) and name not in arrays]
    loaded = {name: weights[name] for name in weights.keys() - new}
    saved_variables.assign(loaded, arrays)
    if self._learning.copy_targets is not None:
      self._learning.copy_targets()
      saved_variables.assign(loaded, arrays)  # targets that the checkpoint has are no copies
    return new

  def _weights(self) -> dict[str, tf.Variable]:
    return {
      **saved_variables.acting(self._network),
      **{f'{saved_variables.LEARNING}/{name}': v for name, v in self._learning.variables.items()},
    }

  def _named_variables(self) -> dict[str, tf.Variable]:
    named = self._weights()
    for objective, stepper in self._steppers.items():
      for i, variable in enumerate(stepper.optimizer.variables):
        named[f'{saved_variables.OPTIMIZER}/{objective}/{i:03d}/{variable.name}'] = variable
    return named
