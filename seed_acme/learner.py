"""The learner: loss -> gradients -> clip -> apply -> a copy of the weights to publish.

One class for all agents; what an agent adds is its loss. `multi_pass_learner` goes over a
sample more than once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import sonnet as snt
import tensorflow as tf
import tree

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import graph_function
from seed_acme import types
from seed_acme.ops import schedules

Loss = Callable[[core.RecurrentNetwork, types.Sample], types.LossOutput]
AfterUpdate = Callable[[core.RecurrentNetwork, tf.Tensor], None]


class Update(NamedTuple):
  """What one update did.

  metrics: `{'group/name': float}`. trained_steps: unmasked transitions in the batch.
  priorities: `[B]` or None. variables: the weights after it.
  """

  metrics: dict[str, float]
  trained_steps: int
  priorities: np.ndarray | None
  variables: types.Variables


class NonFiniteError(Exception):
  """A loss or a gradient is NaN or infinite. The weights are spoilt; do not save them."""


class Learner:
  """Takes samples, changes the network's weights. Used by the training thread only.

  It never touches the network that acts: that one receives `Update.variables`.
  """

  def __init__(
    self,
    network: core.RecurrentNetwork,
    loss: Loss,
    config: config_lib.AgentConfig,
    total_steps: int,
    after_update: AfterUpdate | None = None,
  ):
    """after_update(network, number of this update, int64 from 1): see `agents.base.Agent`."""
    self._network = network
    self._loss = loss
    self._after_update = after_update
    self._config = config
    self._total_steps = total_steps
    self._learning_rate = tf.Variable(
      config.optimizer.learning_rate, trainable=False, dtype=tf.float32, name='learning_rate'
    )
    self._optimizer = make_optimizer(config.optimizer, self._learning_rate)
    self._metric_names: list[str] = []
    self._train: graph_function.GraphFunction | None = None  # traced for the first sample
    self.num_updates = 0
    # The slots of the optimiser appear with its first step; a checkpoint needs them now.
    self._optimizer.apply(
      [tf.zeros_like(v) for v in network.trainable_variables], network.trainable_variables
    )
    for variable in self._optimizer.variables:
      variable.assign(tf.zeros_like(variable))

  def step(self, sample: types.Sample, agent_steps: int) -> Update:
    """One update. agent_steps: of the run so far, for the learning-rate schedule.

    Raises `NonFiniteError` naming the first metric that is not finite.
    """
    arguments = (sample, self._scheduled_rate(agent_steps), np.int64(self.num_updates))
    if self._train is None:
      self._train = compiled(self._train_step, arguments)
    numbers, priorities, values = self._train(*arguments)
    metrics = dict(zip(self._metric_names, numbers.numpy().tolist()))
    self._check_finite(metrics)
    self.num_updates += 1
    trained_steps = int(metrics.pop('learner/trained_steps'))
    return Update(
      metrics=metrics,
      trained_steps=trained_steps,
      priorities=priorities[0].numpy() if priorities else None,
      variables=types.Variables(self.num_updates, values),
    )

  def _scheduled_rate(self, agent_steps: int) -> np.float32:
    optimizer = self._config.optimizer
    return np.float32(
      schedules.scheduled_value(
        optimizer.schedule, optimizer.learning_rate, agent_steps, self._total_steps
      )
    )

  def _check_finite(self, metrics: dict[str, float]) -> None:
    bad = [name for name, value in metrics.items() if not np.isfinite(value)]
    if bad:
      raise NonFiniteError(
        f'{", ".join(bad[:3])} became {metrics[bad[0]]} in update {self.num_updates + 1}: '
        'lower agent.optimizer.learning_rate or agent.optimizer.max_gradient_norm, '
        'or look for extreme rewards and observations'
      )

  def variables(self) -> types.Variables:
    """A copy of the weights as they are."""
    return types.Variables(self.num_updates, tuple(tf.identity(v) for v in self._network.variables))

  def _train_step(
    self, sample: types.Sample, learning_rate: tf.Tensor, num_updates: tf.Tensor
  ) -> tuple[tf.Tensor, Any, tuple[tf.Tensor, ...]]:
    metrics, priorities = self._gradient_step(sample, learning_rate)
    if self._after_update is not None:
      self._after_update(self._network, num_updates + 1)
    metrics = {**metrics, **sample_metrics(sample, self._config.overlap, num_updates)}
    self._metric_names = list(metrics)
    # Reads after the assignments above; later updates copy before they write.
    return (
      stacked(metrics),
      () if priorities is None else (priorities,),
      tuple(tf.identity(v) for v in self._network.variables),
    )

  def _gradient_step(
    self, batch: types.Nest, learning_rate: tf.Tensor
  ) -> tuple[dict[str, tf.Tensor], Any]:
    """In a graph: loss, gradients, clip, apply. Returns metrics and priorities or None.

    batch: what the loss takes, a `types.Sample` or a part of a prepared one.
    """
    variables = self._network.trainable_variables
    with tf.GradientTape() as tape:
      output = self._loss(self._network, batch)
    gradients = tape.gradient(output.loss, variables)
    unused = [v.name for v, g in zip(variables, gradients) if g is None]
    if unused:
      raise types.UserError(
        f'the loss does not depend on {", ".join(unused[:3])}: '
        'remove these variables from the network or use them'
      )
    norm = tf.linalg.global_norm(gradients)
    max_norm = self._config.optimizer.max_gradient_norm
    if max_norm:
      gradients, _ = tf.clip_by_global_norm(gradients, max_norm, use_norm=norm)
    self._learning_rate.assign(learning_rate)
    self._optimizer.apply(gradients, variables)
    metrics = {
      **output.metrics,
      'loss/total': output.loss,
      'learner/gradient_norm': norm,
      'learner/learning_rate': learning_rate,
    }
    return metrics, output.priorities

  def save(self) -> dict[str, np.ndarray]:
    """Everything a checkpoint holds of the learner, by name."""
    return {name: variable.numpy() for name, variable in self._named_variables().items()}

  def restore(self, arrays: dict[str, np.ndarray], num_updates: int) -> None:
    """The inverse of `save`. Raises `types.UserError` if names or shapes differ."""
    assign_variables(self._named_variables(), arrays)
    self.num_updates = num_updates

  def warm_start(self, arrays: dict[str, np.ndarray]) -> None:
    """Takes the network's weights from another run's checkpoint; the optimiser starts anew."""
    assign_variables(network_variables(self._network), arrays)

  def _named_variables(self) -> dict[str, tf.Variable]:
    named = network_variables(self._network)
    for i, variable in enumerate(self._optimizer.variables):
      named[f'optimizer/{i:03d}/{variable.name}'] = variable
    return named


def compiled(
  function: Callable[..., types.Nest], arguments: tuple[types.Nest, ...], xla: bool = False
) -> graph_function.GraphFunction:
  """`function` traced for arguments of these shapes."""
  return graph_function.GraphFunction(
    function, tree.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), arguments), xla
  )


def stacked(metrics: dict[str, tf.Tensor]) -> tf.Tensor:
  """`[M]` float32: one tensor is cheaper to fetch than M."""
  return tf.stack([tf.cast(x, tf.float32) for x in metrics.values()])


def network_variables(network: core.RecurrentNetwork) -> dict[str, tf.Variable]:
  """The variables by the names they have in a checkpoint."""
  return {f'network/{variable.name}': variable for variable in network.variables}


def assign_variables(variables: dict[str, tf.Variable], arrays: dict[str, np.ndarray]) -> None:
  """Sets every variable from the array of its name; all of them or none.

  Raises `types.UserError` naming the first that is missing or has another shape.
  """
  for name, variable in variables.items():
    if name not in arrays:
      raise types.UserError(
        f'the checkpoint has no {name}: it was made by another network; '
        'use the configuration it was made with'
      )
    if arrays[name].shape != tuple(variable.shape):
      raise types.UserError(
        f'{name} has shape {list(arrays[name].shape)} in the checkpoint and '
        f'{variable.shape.as_list()} here: use the network it was made with'
      )
  for name, variable in variables.items():
    variable.assign(arrays[name])


def sample_metrics(
  sample: types.Sample, overlap: int, num_updates: tf.Tensor
) -> dict[str, tf.Tensor]:
  """Policy lag (updates between acting and learning) and count of the unmasked transitions."""
  step_type = sample.unroll.inputs.step_type[overlap:-1]
  is_step = tf.not_equal(step_type, tf.cast(types.LAST, step_type.dtype))
  lag = tf.cast(num_updates - sample.unroll.policy_version[overlap:-1], tf.float32)
  zero = tf.zeros_like(lag)
  num_steps = tf.reduce_sum(tf.cast(is_step, tf.float32))
  return {
    'learner/policy_lag': tf.reduce_sum(tf.where(is_step, lag, zero)) / tf.maximum(num_steps, 1),
    'learner/policy_lag_max': tf.reduce_max(tf.where(is_step, lag, zero)),
    'learner/trained_steps': num_steps,
  }


def make_optimizer(config: config_lib.OptimizerConfig, learning_rate: tf.Variable) -> snt.Optimizer:
  """Sonnet's optimiser. epsilon is added to the root of the second moment (Adam), or within it."""
  if config.name == 'rmsprop':
    return snt.optimizers.RMSProp(
      learning_rate,
      decay=config.rmsprop_decay,
      momentum=config.rmsprop_momentum,
      epsilon=config.epsilon,
    )
  return snt.optimizers.Adam(
    learning_rate, beta1=config.adam_beta1, beta2=config.adam_beta2, epsilon=config.epsilon
  )
