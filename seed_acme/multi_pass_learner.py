"""A learner that goes over each sample several times, in minibatches: PPO and its kin."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses

import numpy as np
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import graph_function
from seed_acme import learner as learner_lib
from seed_acme import types


@dataclasses.dataclass(frozen=True)
class Passes:
  """How an agent goes over a sample, as data and pure graph functions.

  num_epochs: passes over the sample. num_minibatches: gradient steps in one pass.
  num_elements: what is shuffled and dealt into the minibatches, unrolls or transitions; a
    multiple of num_minibatches.
  prepare(network, sample) -> a nest of tensors: what is learnt from, advantages for
    instance. It may change variables that receive no gradient.
  prepares_each_epoch: prepare anew before each pass, with the weights as they are by then;
    `prepare` is told by its third argument, a Python bool, whether it is the first pass.
  take(prepared, indices) -> the minibatch of the elements `indices` `[M]`, for the loss.
  finish(network, sample) -> metrics: after the last pass; may change variables, too.
  """

  num_epochs: int
  num_minibatches: int
  num_elements: int
  prepare: Callable[[core.RecurrentNetwork, types.Sample, bool], types.Nest]
  prepares_each_epoch: bool
  take: Callable[[types.Nest, tf.Tensor], types.Nest]
  finish: Callable[[core.RecurrentNetwork, types.Sample], dict[str, tf.Tensor]]


class MultiPassLearner(learner_lib.Learner):
  """One update is one sample: all its passes. The weights are published once, after them.

  A gradient step on a small network costs little more than calling it, so nothing is
  fetched before the last one.
  """

  def __init__(
    self,
    network: core.RecurrentNetwork,
    loss: learner_lib.Loss,
    config: config_lib.AgentConfig,
    total_steps: int,
    passes: Passes,
    seed: int,
    xla: bool,
  ):
    """loss(network, minibatch), of what `passes.take` gives. seed: of the shuffling.

    xla: of the gradient step.
    """
    super().__init__(network, loss, config, total_steps)
    self._passes = passes
    self._seed = seed
    self._xla = xla
    self._prepare: dict[bool, graph_function.GraphFunction] = {}
    self._learn: graph_function.GraphFunction | None = None
    self._finish: graph_function.GraphFunction | None = None
    self._finish_names: list[str] = []

  def step(self, sample: types.Sample, agent_steps: int) -> learner_lib.Update:
    """All passes over one sample; metrics are means over the gradient steps.

    Raises `NonFiniteError` naming the first metric that is not finite.
    """
    rate = self._scheduled_rate(agent_steps)
    # From the number of the update, so that a resumed run shuffles as the unbroken one.
    rng = np.random.default_rng((self._seed, self.num_updates))
    prepared, numbers = None, []
    for epoch in range(self._passes.num_epochs):
      if epoch == 0 or self._passes.prepares_each_epoch:
        prepared = self._prepared(sample, is_first=epoch == 0)
      order = rng.permutation(self._passes.num_elements).astype(np.int32)
      for indices in np.split(order, self._passes.num_minibatches):
        numbers.append(self._learnt(prepared, indices, rate))
    metrics = self._means([number.numpy() for number in numbers])
    metrics.update(self._finished(sample))
    self._check_finite(metrics)
    self.num_updates += 1
    trained_steps = int(metrics.pop('learner/trained_steps'))
    return learner_lib.Update(metrics, trained_steps, None, self.variables())

  def _prepared(self, sample: types.Sample, is_first: bool) -> types.Nest:
    if is_first not in self._prepare:
      self._prepare[is_first] = learner_lib.compiled(
        lambda sample: self._passes.prepare(self._network, sample, is_first), (sample,)
      )
    return self._prepare[is_first](sample)

  def _learnt(self, prepared: types.Nest, indices: np.ndarray, rate: np.float32) -> tf.Tensor:
    """One gradient step; its metrics, not fetched yet."""
    arguments = (prepared, indices, rate)
    if self._learn is None:
      self._learn = learner_lib.compiled(self._learn_step, arguments, self._xla)
    return self._learn(*arguments)

  def _learn_step(
    self, prepared: types.Nest, indices: tf.Tensor, learning_rate: tf.Tensor
  ) -> tf.Tensor:
    metrics, _ = self._gradient_step(self._passes.take(prepared, indices), learning_rate)
    self._metric_names = list(metrics)
    return learner_lib.stacked(metrics)

  def _finished(self, sample: types.Sample) -> dict[str, float]:
    arguments = (sample, np.int64(self.num_updates))
    if self._finish is None:
      self._finish = learner_lib.compiled(self._finish_step, arguments)
    return dict(zip(self._finish_names, self._finish(*arguments).numpy().tolist()))

  def _finish_step(self, sample: types.Sample, num_updates: tf.Tensor) -> tf.Tensor:
    metrics = {
      **self._passes.finish(self._network, sample),
      **learner_lib.sample_metrics(sample, self._config.overlap, num_updates),
      'learner/gradient_steps': tf.constant(self._passes.num_epochs * self._passes.num_minibatches),
    }
    self._finish_names = list(metrics)
    return learner_lib.stacked(metrics)

  def _means(self, numbers: list[np.ndarray]) -> dict[str, float]:
    """By name, over the gradient steps; of a `*_max` the greatest."""
    stacked = np.stack(numbers)
    means, maxima = stacked.mean(axis=0), stacked.max(axis=0)
    return {
      name: float(maxima[i] if name.endswith('_max') else means[i])
      for i, name in enumerate(self._metric_names)
    }
