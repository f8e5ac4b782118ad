"""The learner's objectives: their optimisers, and the assignment of variables to them."""

from __future__ import annotations

import sonnet as snt
import tensorflow as tf

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.learning import fused_optimizers
from seed_acme.ops import schedules


class Stepper:
  """The optimiser of one objective, whose slots exist from the start."""

  def __init__(self, objective: agent_lib.Objective):
    self.variables = tuple(objective.variables)
    self.config = objective.optimizer
    self._learning_rate = tf.Variable(
      self.config.learning_rate, trainable=False, dtype=tf.float32, name='learning_rate'
    )
    self.optimizer = make_optimizer(self.config, self._learning_rate)
    # The optimiser creates its slots in the first step, but a checkpoint needs them now.
    self.optimizer.apply([tf.zeros_like(v) for v in self.variables], self.variables)
    for variable in self.optimizer.variables:
      variable.assign(tf.zeros_like(variable))

  def scheduled_rate(self, agent_steps: int, total_steps: int) -> float:
    config = self.config
    return schedules.scheduled_value(
      config.schedule, config.learning_rate, agent_steps, total_steps, config.final_share
    )

  def gradients(self, tape: tf.GradientTape, loss: tf.Tensor) -> list[tf.Tensor]:
    found = tape.gradient(loss, self.variables)
    unused = [v.name for v, g in zip(self.variables, found) if g is None]
    if unused:
      raise types.UserError(
        f'the loss does not depend on {", ".join(unused[:3])}: '
        'remove these variables from the network or use them'
      )
    # The gradient of an embedding is sparse and repeats rows, whose norm is not that of their sum.
    return [tf.convert_to_tensor(gradient) for gradient in found]

  def apply(self, gradients: list[tf.Tensor], learning_rate: tf.Tensor) -> tf.Tensor:
    """Clips and steps; returns the norm before clipping."""
    norm = tf.linalg.global_norm(gradients)
    if self.config.max_gradient_norm:
      gradients, _ = tf.clip_by_global_norm(gradients, self.config.max_gradient_norm, use_norm=norm)
    self._learning_rate.assign(learning_rate)
    self.optimizer.apply(gradients, self.variables)
    return norm


def check_partition(network: core.RecurrentNetwork, learning: agent_lib.Learning) -> None:
  """Checks that each trainable variable of the acting network is in exactly one objective."""
  objective_of: dict[int, str] = {}
  known = {id(v) for v in (*network.variables, *learning.variables.values())}
  for name, objective in learning.objectives.items():
    for variable in objective.variables:
      if id(variable) in objective_of:
        raise ValueError(
          f'{variable.name} is in the objectives {objective_of[id(variable)]} and '
          f'{name}: a variable has one optimiser'
        )
      if id(variable) not in known:
        raise ValueError(
          f'{variable.name} of the objective {name} is neither the acting '
          "network's nor in Learning.variables: it would not be saved"
        )
      objective_of[id(variable)] = name
  left_out = [v.name for v in network.trainable_variables if id(v) not in objective_of]
  if left_out:
    raise ValueError(f'{", ".join(left_out[:3])} can be trained, and no objective does')


def make_optimizer(config: config_lib.OptimizerConfig, learning_rate: tf.Variable) -> snt.Optimizer:
  """Makes an optimiser. epsilon is added to the second moment's root (Adam) or inside it."""
  if config.name == 'rmsprop':
    return fused_optimizers.RMSProp(
      learning_rate,
      decay=config.rmsprop_decay,
      momentum=config.rmsprop_momentum,
      epsilon=config.epsilon,
    )
  return fused_optimizers.Adam(
    learning_rate, beta1=config.adam_beta1, beta2=config.adam_beta2, epsilon=config.epsilon
  )
