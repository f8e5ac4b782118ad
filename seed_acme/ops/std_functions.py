"""Functions from an unbounded parameter to a standard deviation, elementwise.

Each is shifted so that parameter 0, about the output of an untrained policy head, gives a chosen
standard deviation. With TFP, each would be a chain of three bijectors, and none clips with a
gradient that leads back.
"""

from __future__ import annotations

from collections.abc import Callable
import math

import tensorflow as tf

from seed_acme import types
from seed_acme.ops import shapes
from seed_acme.ops import straight_through

StdFunction = Callable[[tf.Tensor], tf.Tensor]

_MAX_EXPONENT = 15.0  # in `safe_exp`, as in SEED RL: e^15 is 3.3e6, e^-15 is 3.1e-7


def softplus(*, std_at_zero: float, min_std: float) -> StdFunction:
  """Any shape -> standard deviations; nearly linear above 1, so no step changes them by much.

  std(s) = log(1 + exp(s + c)) + min_std,  c such that std(0) = std_at_zero
  """
  above_min = _above_min(std_at_zero, min_std)
  shift = above_min + math.log(-math.expm1(-above_min))  # the inverse of log(1 + e^c)

  def std(s: tf.Tensor) -> tf.Tensor:
    return tf.nn.softplus(shapes.as_float(s) + shift) + min_std

  return std


def safe_exp(*, std_at_zero: float, min_std: float) -> StdFunction:
  """Any shape -> standard deviations; a step of the parameter changes them by a factor.

    std(s) = exp(clip(s + c, -15, 15)) + min_std,  c such that std(0) = std_at_zero

  The gradient is exp(clip(s + c)) outside the clip as well: a parameter that has gone too far
  can come back.
  """
  shift = math.log(_above_min(std_at_zero, min_std))
  if abs(shift) > _MAX_EXPONENT:
    raise types.UserError(
      f'agent.initial_std ({std_at_zero}) less agent.min_std ({min_std}) must be between '
      f'{math.exp(-_MAX_EXPONENT):.1e} and {math.exp(_MAX_EXPONENT):.1e} for safe_exp'
    )

  def std(s: tf.Tensor) -> tf.Tensor:
    exponent = straight_through.clip(shapes.as_float(s) + shift, -_MAX_EXPONENT, _MAX_EXPONENT)
    return tf.exp(exponent) + min_std

  return std


def make(kind: str, *, std_at_zero: float, min_std: float) -> StdFunction:
  """Makes a function. kind: `softplus` or `safe_exp`, as in configurations."""
  makers = {'softplus': softplus, 'safe_exp': safe_exp}
  return makers[kind](std_at_zero=std_at_zero, min_std=min_std)


def _above_min(std_at_zero: float, min_std: float) -> float:
  if not (math.isfinite(min_std) and min_std >= 0):
    raise types.UserError(f'agent.min_std ({min_std}) must be >= 0')
  if not (math.isfinite(std_at_zero) and std_at_zero > min_std):
    raise types.UserError(
      f'agent.initial_std ({std_at_zero}) must be greater than agent.min_std ({min_std})'
    )
  return std_at_zero - min_std
