"""From the configuration to the algorithm: the one place that reads its fields for learning.

An algorithm's page is imported only where the configuration chooses it.
"""

from __future__ import annotations

from collections.abc import Callable
import functools

from seed_acme import agent as agent_lib
from seed_acme.agents.on_policy import advantages
from seed_acme.agents.on_policy import algorithm as algorithm_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import loss
from seed_acme.agents.on_policy import minibatches
from seed_acme.agents.on_policy import value_metrics

_SIGNS = {'none': 0.0, 'subtracted': -1.0, 'added': 1.0}


def algorithm(config: on_policy_config.OnPolicyConfig) -> algorithm_lib.Algorithm:
  """Called once, by `make_agent`."""
  is_vmpo = config.policy_loss == 'vmpo'
  return algorithm_lib.Algorithm(
    unroll_length=config.unroll_length,
    overlap=config.overlap,
    steps=functools.partial(
      advantages.steps,
      discount=config.discount,
      max_abs_reward=config.max_abs_reward,
      reward_scale=config.reward_scale,
    ),
    estimate=_estimate(config),
    estimates_in_loss=_estimates_in_loss(config),
    policy_loss=_with_preprocessing(_policy_loss(config), config),
    value_loss=functools.partial(
      loss.value_loss,
      of_errors=loss.half_squared
      if config.value_loss == 'mse'
      else functools.partial(loss.huber, delta=config.huber_delta),
      clip=config.value_clip,
    ),
    value_cost=config.value_cost,
    kl_cost=config.kl_cost,
    penalties=on_policy_config.penalties(config),
    penalty_sign=_SIGNS[config.penalties_in_rewards],
    temperature=algorithm_lib.Temperature(config.vmpo_initial_temperature, config.vmpo_speed)
    if is_vmpo
    else None,
    passes=_passes(config),
    by_transitions=config.minibatch_of == 'transitions',
    renews_before_normalizing=config.popart_order == 'statistics_first',
    ratio_bounds=_ratio_bounds(config),
    rho_clip=config.rho_clip,
    optimizer=config.optimizer,
  )


def _estimate(config: on_policy_config.OnPolicyConfig) -> Callable[..., algorithm_lib.Estimates]:
  if config.advantage == 'gae':
    return functools.partial(advantages.gae, lambda_=config.lambda_)
  if config.advantage == 'nstep':
    return functools.partial(advantages.nstep, n=config.num_bootstrap_steps)
  from seed_acme.agents.on_policy import vtrace

  return functools.partial(
    vtrace.estimate,
    lambda_=config.lambda_,
    rho_clip=config.rho_clip,
    c_clip=config.c_clip,
    advantage_lambda=1.0 if config.advantage_form == 'paper' else config.lambda_,
  )


def _estimates_in_loss(config: on_policy_config.OnPolicyConfig) -> bool:
  """Where advantages and targets are to be those of each minibatch, or where a single gradient
  step takes them at the same weights. Normalised values need a forward pass before the loss.
  """
  is_one_step = config.num_epochs == on_policy_config.num_minibatches(config) == 1
  return config.recompute_advantages == 'minibatch' or (
    is_one_step and config.minibatch_of == 'unrolls' and config.values.statistics == 'none'
  )


def _policy_loss(
  config: on_policy_config.OnPolicyConfig,
) -> Callable[[algorithm_lib.Played], algorithm_lib.PolicyLoss]:
  if config.policy_loss == 'vtrace':
    from seed_acme.agents.on_policy import vtrace

    return functools.partial(vtrace.policy_loss, rho_clip=config.policy_rho_clip)
  if config.policy_loss == 'ppo':
    from seed_acme.agents.on_policy import ppo

    return functools.partial(ppo.policy_loss, bounds=_ratio_bounds(config))
  if config.policy_loss == 'vmpo':
    from seed_acme.agents.on_policy import vmpo

    return functools.partial(
      vmpo.policy_loss, epsilon=config.vmpo_epsilon, is_original=config.vmpo_form == 'original'
    )
  if config.policy_loss == 'vpg':
    from seed_acme.agents.on_policy import vpg

    return vpg.policy_loss
  from seed_acme.agents.on_policy import awr

  if config.policy_loss == 'awr':
    return functools.partial(
      awr.policy_loss, beta=config.awr_beta, max_weight=config.awr_max_weight
    )
  return getattr(awr, config.policy_loss)


def _with_preprocessing(
  policy_loss: Callable[[algorithm_lib.Played], algorithm_lib.PolicyLoss],
  config: on_policy_config.OnPolicyConfig,
) -> Callable[[algorithm_lib.Played], algorithm_lib.PolicyLoss]:
  """The page's function as it is where nothing is done to the advantages."""
  if (config.normalize_advantages, config.advantage_offset, config.keep_advantages) == (
    (False, 0.0, 'all')
  ):
    return policy_loss
  return functools.partial(
    advantages.with_preprocessed,
    policy_loss=policy_loss,
    normalize=config.normalize_advantages,
    offset=config.advantage_offset,
    keep=config.keep_advantages,
    keep_form=config.keep_form,
  )


def _ratio_bounds(config: on_policy_config.OnPolicyConfig) -> tuple[float, float]:
  """From 1 - epsilon (PPO's paper) or 1 / (1 + epsilon) (SEED RL) to 1 + epsilon."""
  upper = 1.0 + config.ppo_epsilon
  return 1.0 - config.ppo_epsilon if config.ppo_lower_bound == 'linear' else 1.0 / upper, upper


def _passes(config: on_policy_config.OnPolicyConfig) -> agent_lib.Passes | None:
  """Epochs and minibatches; None for a single gradient step.

  Targets that are computed anew for each minibatch move with the weights from one to the next.
  Their variance is that within a minibatch, because the value would seem to explain its own
  movement.
  """
  if config.num_epochs == on_policy_config.num_minibatches(config) == 1:
    return None
  return agent_lib.Passes(
    num_epochs=config.num_epochs,
    num_minibatches=on_policy_config.num_minibatches(config),
    num_elements=on_policy_config.num_elements(config),
    prepares_each_epoch=config.recompute_advantages == 'epoch',
    take=functools.partial(minibatches.take, axis=0 if config.minibatch_of == 'transitions' else 1),
    of_first=value_metrics.OF_FIRST_PASS,
    of_last=(loss.LAST_DIVERGENCE,),
    variances={} if config.recompute_advantages == 'minibatch' else value_metrics.VARIANCES,
  )
