"""n-step returns that never read past the end of an episode, and R2D2's value rescaling."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from seed_acme.ops import shapes
from seed_acme.ops import transitions as transitions_lib


def nstep_returns(values: Any, rewards: Any, discounts: Any, mask: Any, *, n: int) -> tf.Tensor:
  """n-step bootstrapped returns G^n_t (Sutton and Barto 2018, eq. 12.1).

  values: `[T+1, B]` V(x_t), or the value of the chosen action; bootstraps only.
  rewards, discounts: `[T, B]` result of action t; discount 0 = terminated.
  mask: `[T, B]` False where row t is LAST; such a row returns its own value, so that a
    truncated episode bootstraps there. Its reward and discount may be NaN.
  n: number of rewards; rows closer than n to the end use as many as there are.

    G^0_t = V_t;  G^k_t = m_t ? r_t + d_t G^{k-1}_{t+1} : V_t;  G^k_T = V_T

  Returns `[T, B]`, without gradient.
  """
  if n < 1:
    raise ValueError(f'n ({n}) must be >= 1')
  values, mask = shapes.as_float(values), tf.cast(mask, tf.bool)
  rewards, discounts = map(shapes.as_float, (rewards, discounts))
  shapes.check_transitions(values, rewards=rewards, discounts=discounts, mask=mask)
  rewards, discounts = (transitions_lib.select(mask, x) for x in (rewards, discounts))
  v_t, v_last = values[:-1], values[-1:]
  num_steps = values.shape[0]
  num_backups = n if num_steps is None else min(n, num_steps - 1)
  returns = v_t
  for _ in range(num_backups):
    next_returns = tf.concat([returns[1:], v_last], axis=0)
    returns = tf.where(mask, rewards + discounts * next_returns, v_t)
  return tf.stop_gradient(returns)


def nstep_q_targets(
  q_values: Any, rewards: Any, discounts: Any, mask: Any, *, n: int, epsilon: float
) -> tf.Tensor:
  """n-step targets of a rescaled Q function (Kapturowski et al. 2019, R2D2, sec. 2.3).

  q_values: `[T+1, B]` Q_target(x_t, a*_t) as predicted, in rescaled units, where a*_t is the
    online network's greedy action.
  rewards, discounts, mask, n: as in `nstep_returns`, in unscaled units.
  epsilon: parameter of h, see `rescale`.

    q_t = h^-1(Q_target(x_t, a*_t)),  target_t = h(G^n_t) with G^0_t = q_t

  Returns `[T, B]` targets of Q(x_t, a_t) in rescaled units, without gradient.
  """
  unscaled = unrescale(q_values, epsilon=epsilon)
  return rescale(nstep_returns(unscaled, rewards, discounts, mask, n=n), epsilon=epsilon)


def rescale(x: Any, *, epsilon: float) -> tf.Tensor:
  """h, any shape (Pohlen et al. 2018, proposition A.2).

    h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x

  Computed as x / (sqrt(|x| + 1) + 1) + epsilon x, which does not cancel near 0.
  """
  x = shapes.as_float(x)
  return x / (tf.sqrt(tf.abs(x) + 1.0) + 1.0) + epsilon * x


def unrescale(x: Any, *, epsilon: float) -> tf.Tensor:
  """h^-1, any shape (Pohlen et al. 2018, proposition A.2).

    h^-1(x) = sign(x) [ ((sqrt(1 + 4 epsilon (|x| + 1 + epsilon)) - 1) / (2 epsilon))^2 - 1 ]

  Computed like this, float32 loses four digits and epsilon = 0 divides by zero. With s the root
  and p = 2|x| / (s + 1 + 2 epsilon) the bracket is exactly p (p + 2), and nothing cancels.
  """
  x = shapes.as_float(x)
  root = tf.sqrt(1.0 + 4.0 * epsilon * (tf.abs(x) + 1.0 + epsilon))
  p = 2.0 * x / (root + 1.0 + 2.0 * epsilon)
  return p * (tf.abs(p) + 2.0)
