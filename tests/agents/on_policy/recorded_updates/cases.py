"""The combinations whose updates are recorded, each as a preset and its changes.

They are small on purpose: unrolls of 5 transitions, 10 in a batch, hidden layers of 5 and 4 units.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from dm_env import specs
import numpy as np

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets

_ACTIONS: dict[str, Any] = {
  'discrete': specs.DiscreteArray(3),
  'continuous': specs.BoundedArray((2,), np.float32, -1.0, 1.0),
  'multi_discrete': specs.BoundedArray((2,), np.int32, 0, [1, 2]),
  'nested': {
    'arm': specs.BoundedArray((2,), np.float32, -1.0, 1.0),
    'grip': specs.DiscreteArray(3),
  },
}
# Adam divides by the size of a gradient. A large epsilon keeps it from turning the rounding error
# of a gradient near 0 into a step of full size.
_OPTIMIZER = config_lib.OptimizerConfig(learning_rate=0.02, epsilon=0.1, max_gradient_norm=0.5)
_COMMON: dict[str, Any] = {
  'unroll_length': 5,
  'batch_size': 10,
  'discount': 0.9,
  'optimizer': _OPTIMIZER,
}
_PRESETS = {name: getattr(presets, name) for name in ('vtrace', 'ppo', 'awr', 'vmpo', 'vpg')}
# Fewer passes than in the presets over transitions, of a size that divides the batch.
_PASSES = {'num_epochs': 2, 'minibatch_size': 25}


@dataclasses.dataclass(frozen=True)
class Case:
  """A recorded case. network, action: settings of `config.NetworkConfig`, and the action space."""

  config: on_policy_config.OnPolicyConfig
  network: config_lib.NetworkConfig
  action: str

  @property
  def spec(self) -> types.EnvironmentSpec:
    return types.EnvironmentSpec(
      observation=specs.Array((4,), np.float32), action=_ACTIONS[self.action]
    )


def _case(
  preset: str, action: str = 'discrete', network: dict[str, Any] | None = None, **changes: Any
) -> Case:
  passes = _PASSES if preset in ('ppo', 'awr') else {}
  return Case(
    _PRESETS[preset](**{**_COMMON, **passes, **changes}),
    config_lib.NetworkConfig(
      **{'mlp_sizes': (5,), 'core_size': 4, 'activation': 'tanh', **(network or {})}
    ),
    action,
  )


def _on_unrolls(preset: str, action: str = 'discrete', network: Any = None, **changes: Any) -> Case:
  """Whole unrolls as minibatches, as networks with memory need them."""
  return _case(preset, action, network, minibatch_of='unrolls', minibatch_size=5, **changes)


def _penalty(weight: float, threshold: float | None = None, speed: float = 1.0) -> Any:
  return on_policy_config.PenaltyConfig(weight, threshold, speed)


def _statistics(kind: Any, decay: float = 0.1) -> on_policy_config.NormalizationConfig:
  return on_policy_config.NormalizationConfig(kind, decay)


_LSTM, _GRU = {'core': 'lstm'}, {'core': 'gru'}
_POPART = {'values': _statistics('average')}

CASES: dict[str, Case] = {
  # The presets unchanged.
  'vtrace': _case('vtrace'),
  'ppo': _case('ppo'),
  'awr': _case('awr'),
  'vmpo': _case('vmpo'),
  'vpg': _case('vpg'),
  # Estimators.
  'vtrace, gae form': _case('vtrace', advantage_form='gae', lambda_=0.7),
  'vtrace, paper form with lambda': _case('vtrace', lambda_=0.6),
  'vtrace, other bounds': _case('vtrace', rho_clip=1.6, c_clip=0.7, policy_rho_clip=0.8),
  'vtrace, no bounds': _case(
    'vtrace', rho_clip=math.inf, c_clip=math.inf, policy_rho_clip=math.inf
  ),
  'vtrace, nstep': _case('vtrace', advantage='nstep', num_bootstrap_steps=3),
  'vtrace, gae': _case('vtrace', advantage='gae', lambda_=0.8),
  'ppo, vtrace': _case('ppo', advantage='vtrace', recompute_advantages='epoch'),
  'vpg, nstep': _case('vpg', advantage='nstep', num_bootstrap_steps=2, discount=0.97),
  'vmpo, vtrace': _case('vmpo', advantage='vtrace', rho_clip=1.2),
  # Passes.
  'vtrace, passes over unrolls': _on_unrolls('vtrace', num_epochs=3),
  'ppo, passes over unrolls': _on_unrolls('ppo', recompute_advantages='minibatch'),
  'ppo, one pass over transitions': _case('ppo', num_epochs=1, minibatch_size=0),
  'ppo, one pass': _case('ppo', num_epochs=1, minibatch_of='unrolls', minibatch_size=0),
  'awr, advantages of each epoch': _case('awr', recompute_advantages='epoch', lambda_=0.5),
  'vpg, two passes': _case('vpg', num_epochs=2, normalize_advantages=False),
  # The choice of advantages.
  'ppo, positive': _case('ppo', keep_advantages='positive', advantage_offset=0.2),
  'ppo, positive before the offset': _case(
    'ppo', keep_advantages='positive', advantage_offset=0.4, keep_form='original'
  ),
  'awr, top half': _case('awr', keep_advantages='top_half', normalize_advantages=False),
  'vpg, top half of all': _case('vpg', keep_advantages='top_half', keep_form='original'),
  # Policy losses.
  'ppo, reciprocal bound': _case('ppo', ppo_lower_bound='reciprocal', ppo_epsilon=0.4),
  'awr, other temperature': _case('awr', awr_beta=0.4, awr_max_weight=3.0),
  'awr, no bound': _case('awr', awr_max_weight=math.inf, advantage_offset=-0.3),
  'repeat positive': _case('awr', policy_loss='repeat_positive'),
  'behaviour cloning': _case('awr', policy_loss='behaviour_cloning', value_cost=0.0),
  'vmpo, original': _case(
    'vmpo', vmpo_form='original', vmpo_epsilon=0.1, vmpo_initial_temperature=0.5, vmpo_speed=2.0
  ),
  'vmpo, over transitions': _case('vmpo', minibatch_of='transitions', minibatch_size=25),
  # Value losses and rewards.
  'vtrace, huber': _case('vtrace', value_loss='huber', huber_delta=0.4, value_cost=1.5),
  'ppo, clipped value': _case('ppo', value_clip=0.3, value_loss='huber', huber_delta=0.7),
  'vtrace, clipped rewards': _case('vtrace', max_abs_reward=0.5, reward_scale=3.0),
  # Penalties.
  'vtrace, every penalty': _case(
    'vtrace',
    entropy=_penalty(0.02),
    kl_to_behaviour=_penalty(0.3),
    kl_from_behaviour=_penalty(0.2),
    kl_from_reference=_penalty(0.1),
    kl_cost=0.15,
  ),
  'vtrace, every penalty learnt': _case(
    'vtrace',
    entropy=_penalty(0.02, threshold=-0.9, speed=5.0),
    kl_to_behaviour=_penalty(0.3, threshold=0.05),
    kl_from_behaviour=_penalty(0.2, threshold=0.05, speed=2.0),
    kl_from_reference=_penalty(0.1, threshold=0.1),
  ),
  'vtrace, penalties subtracted': _case(
    'vtrace', penalties_in_rewards='subtracted', entropy=_penalty(0.2), num_epochs=2
  ),
  'ppo, penalties added': _on_unrolls(
    'ppo',
    penalties_in_rewards='added',
    recompute_advantages='epoch',
    kl_from_behaviour=_penalty(0.3, threshold=0.02),
    entropy=_penalty(0.05),
  ),
  # Normalisers.
  'ppo, PopArt': _case('ppo', **_POPART, observations=_statistics('average')),
  'vtrace, PopArt': _case('vtrace', **_POPART, value_compensation=False),
  'ppo, PopArt with forgetting': _case(
    'ppo',
    values=_statistics('ema', 0.3),
    observations=_statistics('ema', 0.2),
    observation_clip=0.8,
    popart_order='targets_first',
  ),
  'ppo, PopArt and clipped value': _case('ppo', **_POPART, value_clip=0.5),
  'vmpo, PopArt on an LSTM': _case('vmpo', network=_LSTM, **_POPART),
  # Networks.
  'vtrace, LSTM': _case('vtrace', network={**_LSTM, 'previous_action_input': True}),
  'vtrace, LSTM with overlap': _case('vtrace', network=_LSTM, overlap=2),
  'ppo, GRU and a value of its own': _on_unrolls(
    'ppo', network={**_GRU, 'separate_value_network': True, 'previous_reward_input': True}
  ),
  # Actions.
  'ppo, continuous': _case('ppo', 'continuous', entropy=_penalty(0.01)),
  'ppo, continuous with one std': _case(
    'ppo',
    'continuous',
    action_distribution='clipped_normal',
    std_function='safe_exp',
    state_independent_std=True,
    initial_std=0.6,
    min_std=0.05,
  ),
  'vtrace, continuous': _case('vtrace', 'continuous', network=_LSTM, initial_std=0.5),
  'vmpo, continuous': _case('vmpo', 'continuous', std_function='safe_exp'),
  'vtrace, several choices': _case('vtrace', 'multi_discrete', kl_to_behaviour=_penalty(0.1)),
  'ppo, nested actions': _case('ppo', 'nested', entropy=_penalty(0.01)),
}
