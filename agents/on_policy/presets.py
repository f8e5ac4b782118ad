"""Five algorithms as presets of one agent: each sets what differs from the defaults.

Other fields can be given by keyword.
"""

from __future__ import annotations

from typing import Any

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import config as on_policy_config

_SEVERAL_PASSES: dict[str, Any] = {
  'num_epochs': 10,
  'minibatch_of': 'transitions',
  'minibatch_size': 64,
  'normalize_advantages': True,
}


def _preset(changes: dict[str, Any], **defaults: Any) -> on_policy_config.OnPolicyConfig:
  return on_policy_config.OnPolicyConfig(**{**defaults, **changes})


def vpg(**changes: Any) -> on_policy_config.OnPolicyConfig:
  """Vanilla policy gradient with a learnt baseline (Sutton et al. 2000), one pass."""
  return _preset(changes, policy_loss='vpg', normalize_advantages=True)


def ppo(**changes: Any) -> on_policy_config.OnPolicyConfig:
  """Proximal policy optimisation with a clipped ratio (Schulman et al. 2017, eq. 7)."""
  return _preset(changes, **_SEVERAL_PASSES)


def vtrace(**changes: Any) -> on_policy_config.OnPolicyConfig:
  """V-trace, the actor-critic of IMPALA (Espeholt et al. 2018); tolerates some lag.

  The numbers are those of the original SEED RL's V-trace learner, with two exceptions:
  `unroll_length` was 100 for DeepMind Lab, but small tasks want less policy lag; and gradients were
  not clipped, while their norm is bounded here as in all presets.
  """
  return _preset(
    changes,
    policy_loss='vtrace',
    advantage='vtrace',
    advantage_form='paper',
    lambda_=1.0,
    recompute_advantages='minibatch',
    unroll_length=20,
    batch_size=32,
    optimizer=config_lib.OptimizerConfig(),
    value_cost=0.5,
    entropy=on_policy_config.PenaltyConfig(weight=0.00025, speed=10.0),
  )


def awr(**changes: Any) -> on_policy_config.OnPolicyConfig:
  """Advantage-weighted regression (Peng et al. 2019): imitates actions by their advantage."""
  return _preset(changes, policy_loss='awr', **_SEVERAL_PASSES)


def vmpo(**changes: Any) -> on_policy_config.OnPolicyConfig:
  """V-MPO (Song et al. 2020): imitates the better half by softmax weights, within a KL bound."""
  return _preset(
    changes,
    policy_loss='vmpo',
    num_epochs=4,
    kl_from_behaviour=on_policy_config.PenaltyConfig(weight=1.0, threshold=0.01),
  )
