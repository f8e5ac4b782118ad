"""The weights that the on-policy agent learns beside its network: of penalties, and V-MPO's
temperature.
"""

from __future__ import annotations

import sonnet as snt
import tensorflow as tf

from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.ops import lagrange

_TEMPERATURE = 'temperature'


@snt.allow_empty_variables  # where every weight is fixed
class LearntWeights(snt.Module):
  """Each is exp(k p) with a trainable p. Only learning needs them."""

  def __init__(self, config: on_policy_config.OnPolicyConfig, name: str = 'learnt_weights'):
    super().__init__(name=name)
    self._config = config
    self._parameters = {
      name: tf.Variable(value, dtype=tf.float32, name=f'{name}_parameter')
      for name, value in _initial_parameters(config).items()
    }

  def penalty_weights(self) -> dict[str, tf.Tensor]:
    """Scalars by name, the fixed ones as well; gradients flow into the learnt ones."""
    return {
      name: tf.constant(penalty.weight, tf.float32)
      if penalty.threshold is None
      else lagrange.weight(self._parameters[name], speed=penalty.speed)
      for name, penalty in on_policy_config.penalties(self._config).items()
    }

  def temperature(self) -> tf.Tensor | None:
    """Scalar eta of V-MPO; None for other policy losses."""
    if _TEMPERATURE not in self._parameters:
      return None
    return lagrange.weight(self._parameters[_TEMPERATURE], speed=self._config.vmpo_speed)


def _initial_parameters(config: on_policy_config.OnPolicyConfig) -> dict[str, float]:
  """What p of every learnt weight starts from."""
  values = {
    name: lagrange.initial_parameter(
      penalty.weight,
      speed=penalty.speed,
      weight_name=f'agent.{name}.weight',
      speed_name=f'agent.{name}.speed',
    )
    for name, penalty in on_policy_config.penalties(config).items()
    if penalty.threshold is not None
  }
  if config.policy_loss == 'vmpo':
    values[_TEMPERATURE] = lagrange.initial_parameter(
      config.vmpo_initial_temperature,
      speed=config.vmpo_speed,
      weight_name='agent.vmpo_initial_temperature',
      speed_name='agent.vmpo_speed',
    )
  return values
