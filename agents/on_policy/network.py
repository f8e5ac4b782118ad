"""Variables of the on-policy agent: an actor-critic with its normalisation statistics, and the
learnt weights of the loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sonnet as snt
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.agents.on_policy import algorithm
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.networks import build
from seed_acme.networks import running_statistics
from seed_acme.ops import action_distributions
from seed_acme.ops import distributions
from seed_acme.ops import lagrange
from seed_acme.ops import std_functions
from seed_acme.parallel import data_parallel

_TEMPERATURE = 'temperature'


def make_network(
  spec: types.EnvironmentSpec,
  network_config: config_lib.NetworkConfig,
  distribution: distributions.Distribution,
  config: on_policy_config.OnPolicyConfig,
) -> OnPolicyNetwork:
  """Makes the actor-critic. Raises `types.UserError` for options that cannot be combined."""
  inner = build.make_actor_critic(network_config, spec, distribution.num_params)
  if tf.nest.flatten(inner.initial_state(1)):
    on_policy_config.check_takes_memory(config, network_config)
  return OnPolicyNetwork(inner, distribution, spec, config)


def make_distribution(
  spec: types.EnvironmentSpec, config: on_policy_config.OnPolicyConfig
) -> distributions.Distribution:
  """Returns the distribution of the environment's actions; the configuration chooses the one of
  continuous actions.
  """
  std = std_functions.make(
    config.std_function, std_at_zero=config.initial_std, min_std=config.min_std
  )
  return action_distributions.make(spec.action, continuous=config.action_distribution, std=std)


def _decay(config: on_policy_config.NormalizationConfig) -> float | None:
  return config.decay if config.statistics == 'ema' else None


class OnPolicyNetwork(snt.Module):
  """An inner actor-critic with normalised observations and values.

  Its prediction's value is in units of the reward.
  """

  def __init__(
    self,
    inner: core.RecurrentNetwork,
    distribution: distributions.Distribution,
    spec: types.EnvironmentSpec,
    config: on_policy_config.OnPolicyConfig,
    name: str = 'on_policy',
  ):
    super().__init__(name=name)
    self._inner = inner
    self.distribution = distribution
    self._clips_values = config.value_clip > 0
    self.observations: running_statistics.ObservationNormalizer | None = None
    if config.observations.statistics != 'none':
      self.observations = running_statistics.ObservationNormalizer(
        spec.observation, _decay(config.observations), config.observation_clip
      )
    self.values: running_statistics.ValueNormalizer | None = None
    if config.values.statistics != 'none':
      self.values = running_statistics.ValueNormalizer(
        _decay(config.values),
        config.value_compensation,
        keeps_previous=self._clips_values,
        last_layer=_last_layer(inner),
      )
    self._free_std = None
    if config.state_independent_std and distribution.is_std.any():
      self._free_std = tf.Variable(tf.zeros([distribution.num_params]), name='free_std')

  @property
  def variables(self) -> tuple[tf.Variable, ...]:
    """The inner network's variables, in its order, then those of this class."""
    statistics = [
      v
      for part in (self.observations, self.values)
      if part is not None
      for v in part.variables
      if not v.trainable
    ]
    return (*self._inner.variables, *self._own_trainable(), *statistics)

  @property
  def trainable_variables(self) -> tuple[tf.Variable, ...]:
    """The inner network's variables, in its order, then those of this class."""
    return (*self._inner.trainable_variables, *self._own_trainable())

  def _own_trainable(self) -> list[tf.Variable]:
    free = [] if self._free_std is None else [self._free_std]
    appended = () if self.values is None else self.values.trainable_variables
    return [*free, *appended]

  def initial_state(self, batch_size: Any) -> types.Nest:
    """Returns the inner network's initial state."""
    return self._inner.initial_state(batch_size)

  def __call__(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """Runs one row `[N, ...]`; see `core.RecurrentNetwork`."""
    prediction, state = self._inner(self._normalized(inputs), state)
    return self._finished(prediction), state

  def unroll(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """Runs rows `[T, B, ...]`; see `core.RecurrentNetwork`."""
    prediction, state = self._inner.unroll(self._normalized(inputs), state)
    return self._finished(prediction), state

  def _normalized(self, inputs: types.AgentInput) -> types.AgentInput:
    if self.observations is None:
      return inputs
    return inputs._replace(observation=self.observations(inputs.observation))

  def _finished(self, prediction: types.ActorCriticOutput) -> types.ActorCriticOutput:
    params, value = prediction
    if self._free_std is not None:
      params = tf.where(self.distribution.is_std, self._free_std, params)
    return types.ActorCriticOutput(
      params, value if self.values is None else self.values.value(value)
    )

  def normalized_value(self, value: tf.Tensor) -> tf.Tensor:
    """Converts values `[...]` from units of the reward to those that the value is learnt in."""
    return value if self.values is None else self.values.normalize(value)

  def value_when_acting(self, value: tf.Tensor) -> tf.Tensor:
    """Converts values `[...]` predicted when acting from units of the reward to those that the
    value is learnt in. For `value_clip`, the result is what the weights that acted would predict
    with the current statistics.

    Statistics before the last update of them stand for those of acting. With policy lag they are
    newer. Compensation preserves values from one update to the next, so that makes no difference;
    without it the result is off by what the statistics have changed meanwhile.
    """
    if self.values is None or not self._clips_values:
      return value
    return self.values.normalize_previous(value)

  def value_std(self) -> tf.Tensor:
    """Returns the scalar that advantages are divided by.

    It is infinite while all targets have been equal, to within 1e-6: nothing says then how much a
    difference between two actions counts, and advantages of 0 are the only ones that do not depend
    on the scale of the rewards.
    """
    if self.values is None:
      return tf.ones([])
    return tf.where(self.values.has_spread(), self.values.std(), float('inf'))


def _last_layer(inner: core.RecurrentNetwork) -> tuple[tf.Variable, tf.Variable] | None:
  """w and b of the network's `value_layer`; None for a network that has no such attribute."""
  layer = getattr(inner, 'value_layer', None)
  if layer is None:
    return None
  w, b = (getattr(layer, name, None) for name in ('w', 'b'))
  if w is None or b is None or (w.shape[-1], b.shape) != (1, (1,)):
    owner = type(data_parallel.unwrapped(inner)).__name__
    raise types.UserError(
      f'value_layer of {owner} ({type(layer).__name__}) must be a linear layer '
      'with one output and a bias, w [H, 1] and b [1]: name the layer that gives the value, or '
      'leave value_layer out'
    )
  return w, b


@snt.allow_empty_variables  # where every weight is fixed
class LearntWeights(snt.Module):
  """Weights of the penalties, and V-MPO's temperature: each is exp(k p) with a trainable p.

  Only training needs them.
  """

  def __init__(
    self,
    penalties: Mapping[str, on_policy_config.PenaltyConfig],
    temperature: algorithm.Temperature | None,
    name: str = 'learnt_weights',
  ):
    super().__init__(name=name)
    self._penalties = penalties
    self._temperature = temperature
    self._parameters = {
      name: tf.Variable(value, dtype=tf.float32, name=f'{name}_parameter')
      for name, value in _initial_parameters(penalties, temperature).items()
    }

  def penalty_weights(self) -> dict[str, tf.Tensor]:
    """Returns fixed and learnt weights, scalars by name; gradients flow into the learnt ones."""
    return {
      name: tf.constant(penalty.weight, tf.float32)
      if penalty.threshold is None
      else lagrange.weight(self._parameters[name], speed=penalty.speed)
      for name, penalty in self._penalties.items()
    }

  def temperature(self) -> tf.Tensor | None:
    """Scalar eta of V-MPO; None for other policy losses."""
    if self._temperature is None:
      return None
    return lagrange.weight(self._parameters[_TEMPERATURE], speed=self._temperature.speed)


def _initial_parameters(
  penalties: Mapping[str, on_policy_config.PenaltyConfig], temperature: algorithm.Temperature | None
) -> dict[str, float]:
  """Returns the initial p of every learnt weight."""
  values = {
    name: lagrange.initial_parameter(
      penalty.weight,
      speed=penalty.speed,
      weight_name=f'agent.{name}.weight',
      speed_name=f'agent.{name}.speed',
    )
    for name, penalty in penalties.items()
    if penalty.threshold is not None
  }
  if temperature is not None:
    values[_TEMPERATURE] = lagrange.initial_parameter(
      temperature.initial,
      speed=temperature.speed,
      weight_name='agent.vmpo_initial_temperature',
      speed_name='agent.vmpo_speed',
    )
  return values
