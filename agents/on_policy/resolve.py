"""Makes the algorithm from the configuration; no other part of learning reads its fields.

A function of an algorithm's module, or of `advantages`, takes the configuration fields that it
needs as keyword arguments of the same names, and is bound to their values here. An algorithm's
module is imported only if the configuration chooses it.
"""

from __future__ import annotations

from collections.abc import Callable
import functools
import importlib
import inspect
from typing import Any

from seed_acme import agent as agent_lib
from seed_acme.agents.on_policy import advantages
from seed_acme.agents.on_policy import algorithm as algorithm_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import learner
from seed_acme.agents.on_policy import loss
from seed_acme.agents.on_policy import value_metrics

# Module and function of this folder, by the value of the field.
_ESTIMATES = {'gae': 'advantages:gae', 'nstep': 'advantages:nstep', 'vtrace': 'vtrace:estimate'}
_POLICY_LOSSES = {
  **{name: f'{name}:policy_loss' for name in ('ppo', 'vpg', 'vtrace', 'awr', 'vmpo')},
  **{name: f'awr:{name}' for name in ('repeat_positive', 'behaviour_cloning')},
}
_COPIED = ('unroll_length', 'overlap', 'value_cost', 'kl_cost', 'rho_clip', 'optimizer')
_SIGNS = {'none': 0.0, 'subtracted': -1.0, 'added': 1.0}


def algorithm(config: on_policy_config.OnPolicyConfig) -> algorithm_lib.Algorithm:
  """Makes the algorithm that a configuration describes. `make_agent` calls it once."""
  bound = functools.partial(_bound, config)
  return algorithm_lib.Algorithm(
    **{name: getattr(config, name) for name in _COPIED},
    steps=bound(advantages.steps),
    estimate=bound(_function(_ESTIMATES[config.advantage])),
    estimates_in_loss=_estimates_in_loss(config),
    policy_loss=_policy_loss(config),
    value_loss=bound(loss.value_loss),
    penalties=on_policy_config.penalties(config),
    penalty_sign=_SIGNS[config.penalties_in_rewards],
    temperature=algorithm_lib.Temperature(config.vmpo_initial_temperature, config.vmpo_speed)
    if config.policy_loss == 'vmpo'
    else None,
    passes=_passes(config),
    by_transitions=config.minibatch_of == 'transitions',
    renews_before_normalizing=config.popart_order == 'statistics_first',
    ratio_bounds=bound(algorithm_lib.ratio_bounds)(),
  )


def _function(path: str) -> Callable[..., Any]:
  module, name = path.split(':')
  return getattr(importlib.import_module(f'seed_acme.agents.on_policy.{module}'), name)


def _bound(
  config: on_policy_config.OnPolicyConfig, function: Callable[..., Any]
) -> Callable[..., Any]:
  """Binds each keyword-only parameter of `function` to the configuration field of its name."""
  parameters = inspect.signature(function).parameters.values()
  names = [x.name for x in parameters if x.kind == x.KEYWORD_ONLY]
  return functools.partial(function, **{name: getattr(config, name) for name in names})


def _policy_loss(
  config: on_policy_config.OnPolicyConfig,
) -> Callable[[algorithm_lib.Played], algorithm_lib.PolicyLoss]:
  """Returns the algorithm's policy loss, wrapped if advantages are preprocessed."""
  plain_loss = _bound(config, _function(_POLICY_LOSSES[config.policy_loss]))
  with_preprocessed = _bound(config, advantages.with_preprocessed)
  is_plain = not config.normalize_advantages and not config.advantage_offset
  if is_plain and config.keep_advantages == 'all':
    return plain_loss
  return functools.partial(with_preprocessed, plain_loss)


def _estimates_in_loss(config: on_policy_config.OnPolicyConfig) -> bool:
  """Whether the loss computes advantages and targets itself: because they are recomputed for each
  minibatch, or because a single gradient step would compute them with the same weights anyway.
  Normalised values need a forward pass before the loss.
  """
  is_one_step = config.num_epochs == on_policy_config.num_minibatches(config) == 1
  return config.recompute_advantages == 'minibatch' or (
    is_one_step and config.minibatch_of == 'unrolls' and config.values.statistics == 'none'
  )


def _passes(config: on_policy_config.OnPolicyConfig) -> agent_lib.Passes | None:
  """Returns how an update is split into epochs and minibatches; None for a single gradient step.

  Targets that are recomputed for each minibatch move with the weights. Their variance is then taken
  within a minibatch, because across minibatches the value would seem to explain movement that it
  caused itself.
  """
  if config.num_epochs == on_policy_config.num_minibatches(config) == 1:
    return None
  return agent_lib.Passes(
    num_epochs=config.num_epochs,
    num_minibatches=on_policy_config.num_minibatches(config),
    num_elements=on_policy_config.num_elements(config),
    prepares_each_epoch=config.recompute_advantages == 'epoch',
    take=functools.partial(learner.take, axis=0 if config.minibatch_of == 'transitions' else 1),
    of_first=value_metrics.OF_FIRST_PASS,
    of_last=(loss.LAST_DIVERGENCE,),
    variances={} if config.recompute_advantages == 'minibatch' else value_metrics.VARIANCES,
  )
