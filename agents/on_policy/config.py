"""Configuration of the on-policy agent: every choice of a policy-gradient method, as data.

The choices are those of Andrychowicz et al. 2021, "What Matters In On-Policy Reinforcement
Learning?". `presets` combines them into the algorithms people know.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Literal

import tree

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.checks import conditions
from seed_acme.ops import action_checks
from seed_acme.ops import observation_checks
from seed_acme.ops import std_checks

PENALTIES = ('entropy', 'kl_to_behaviour', 'kl_from_behaviour', 'kl_from_reference')
_WITH_VTRACE = conditions.only_with('advantage', 'vtrace')
_WITH_PPO = conditions.only_with('policy_loss', 'ppo')
_WITH_AWR = conditions.only_with('policy_loss', 'awr')
_WITH_VMPO = conditions.only_with('policy_loss', 'vmpo')
_WITH_POPART = conditions.only_without('values.statistics', 'none')


@dataclasses.dataclass(frozen=True)
class PenaltyConfig:
  """Penalty on one quantity x, with a fixed or a learnt weight.

  weight: the loss contains weight * mean(x). With a threshold, the learnt weight's initial value,
    which must be > 0.
  threshold: hold mean(x) <= threshold by learning the weight; None = the weight is fixed.
  speed: k of weight = exp(k p), where p is learnt.
  """

  weight: Annotated[float, bounds.at_least(0)] = 0.0
  threshold: Annotated[float | None, bounds.FINITE] = None
  speed: Annotated[float, bounds.above(0), conditions.only_without('threshold', None)] = 1.0


def is_active(penalty: PenaltyConfig) -> bool:
  """Whether the loss has this term at all."""
  return penalty.weight != 0 or penalty.threshold is not None


@dataclasses.dataclass(frozen=True)
class NormalizationConfig:
  """Running mean and standard deviation of the observations or of the value targets.

  statistics: `average` = over all data so far; `ema` = exponential moving average; `none` = off.
  decay: weight of the newest batch in `ema`.
  """

  statistics: Literal['none', 'average', 'ema'] = 'none'
  decay: Annotated[
    float, bounds.Bound(0, 1, is_open_below=True), conditions.only_with('statistics', 'ema')
  ] = 0.01


@dataclasses.dataclass(frozen=True, kw_only=True)
class OnPolicyConfig(config_lib.AgentConfig):
  """Configuration with one field per design choice.

  The defaults are the loss of PPO in a single gradient step; `presets.ppo` adds the passes and
  minibatches that make it PPO.

  batch_size: unrolls in one update. Weights reach inference once an update, after all epochs.
  num_epochs: passes over the batch in one update.
  minibatch_of: what a minibatch consists of. Transitions need a network without a core.
  minibatch_size: unrolls or transitions in a gradient step; 0 = the whole batch.
  recompute_advantages: whether advantages are recomputed with the current weights, before each
    epoch or minibatch.
  discount: gamma per agent step.
  lambda_: trace decay of `gae` and `vtrace`.
  advantage: advantage estimator.
  advantage_form: form of the `vtrace` advantage. `paper` is r + gamma v_{t+1} - V_t, whatever
    lambda is; `gae` multiplies the correction v_{t+1} - V_{t+1} by lambda, as GAE does.
  num_bootstrap_steps: n of `nstep`.
  rho_clip: upper bound of the importance weight in the value target of `vtrace`; inf = none.
  c_clip: upper bound of the weights that propagate errors backwards in `vtrace`; inf = none.
  normalize_advantages: scale advantages to mean 0 and standard deviation 1 within a minibatch.
  advantage_offset: added to the advantages after normalisation.
  keep_advantages: steps that the policy loss learns from, by their advantage.
  keep_form: `shifted` keeps steps whose advantage is positive after the offset is added, and takes
    the mean over these; `original` tests the sign before, and takes the mean over all steps.
  policy_loss: policy-gradient loss; its settings follow.
  ppo_epsilon: how far `ppo` lets the ratio of probabilities move from 1.
  ppo_lower_bound: `linear` clips the ratio to [1 - epsilon, 1 + epsilon], `reciprocal`, the
    original, to [1/(1 + epsilon), ...].
  policy_rho_clip: upper bound of the importance weight in the policy loss of `vtrace`; inf = none.
  awr_beta: temperature of the `awr` weights exp(advantage / beta).
  awr_max_weight: upper bound of the `awr` weights; inf = none.
  vmpo_epsilon: bound on the KL divergence for which `vmpo` learns its temperature.
  vmpo_initial_temperature: initial value of the `vmpo` temperature.
  vmpo_speed: k of temperature = exp(k p), where p is learnt.
  vmpo_form: `paper`, or `original` for the weights, scale and temperature loss of SEED RL.
  value_loss: loss of the value's error e; `mse` is e^2/2, `huber` the same up to huber_delta.
  huber_delta: error at which `huber` becomes linear.
  value_clip: how far a value may change before PPO's value clipping; normalised units, 0 = off.
  value_cost: weight of the value loss.
  kl_cost: weight of KL(behaviour || policy), estimated from the action that was played.
  entropy: penalty on x = -H(policy).
  kl_to_behaviour: penalty on x = KL(policy || behaviour).
  kl_from_behaviour: penalty on x = KL(behaviour || policy).
  kl_from_reference: penalty on x = KL(reference || policy), where all reference parameters are 0.
  penalties_in_rewards: `subtracted` takes weight * x of each step from its reward instead of adding
    it to the loss; `added` has the sign of the original SEED RL.
  max_abs_reward: rewards are clipped to this absolute value before they are scaled; 0 = off.
  reward_scale: multiplies rewards, after clipping.
  observations: running statistics that normalise observations.
  observation_clip: normalised observations are clipped to [-clip, clip]; inf = no bound.
  values: running statistics that normalise value targets (van Hasselt et al. 2016, PopArt).
  value_compensation: predicted values are preserved when the statistics change, once they exist.
  popart_order: statistics are updated before targets are normalised (paper), or after (original).
  action_distribution: distribution of continuous actions. `deterministic_tanh` has no density to
    learn from.
  std_function: function from the network's output to a standard deviation.
  initial_std: standard deviation of an untrained policy.
  min_std: lower bound of the standard deviation.
  state_independent_std: learn one standard deviation for all observations.
  """

  agent: str = 'on_policy'
  unroll_length: int = 16
  overlap: int = 0
  batch_size: int = 128
  optimizer: config_lib.OptimizerConfig = config_lib.OptimizerConfig(max_gradient_norm=0.5)
  num_epochs: Annotated[int, bounds.at_least(1)] = 1
  minibatch_of: Literal['transitions', 'unrolls'] = 'unrolls'
  minibatch_size: Annotated[int, bounds.at_least(0)] = 0
  recompute_advantages: Literal['never', 'epoch', 'minibatch'] = 'never'
  discount: Annotated[float, bounds.SHARE] = 0.99
  lambda_: Annotated[float, bounds.SHARE, conditions.only_with('advantage', 'gae', 'vtrace')] = 0.95
  advantage: Literal['gae', 'vtrace', 'nstep'] = 'gae'
  advantage_form: Annotated[Literal['gae', 'paper'], _WITH_VTRACE] = 'gae'
  num_bootstrap_steps: Annotated[
    int, bounds.at_least(1), conditions.only_with('advantage', 'nstep')
  ] = 5
  rho_clip: Annotated[float, bounds.above(0, takes_infinity=True), _WITH_VTRACE] = 1.0
  c_clip: Annotated[float, bounds.above(0, takes_infinity=True), _WITH_VTRACE] = 1.0
  normalize_advantages: bool = False
  advantage_offset: Annotated[float, bounds.FINITE] = 0.0
  keep_advantages: Literal['all', 'positive', 'top_half'] = 'all'
  keep_form: Annotated[
    Literal['shifted', 'original'], conditions.only_without('keep_advantages', 'all')
  ] = 'shifted'
  policy_loss: Literal[
    'ppo', 'vpg', 'vtrace', 'awr', 'vmpo', 'repeat_positive', 'behaviour_cloning'
  ] = 'ppo'
  ppo_epsilon: Annotated[float, bounds.above(0), _WITH_PPO] = 0.2
  ppo_lower_bound: Annotated[Literal['linear', 'reciprocal'], _WITH_PPO] = 'linear'
  policy_rho_clip: Annotated[
    float, bounds.above(0, takes_infinity=True), conditions.only_with('policy_loss', 'vtrace')
  ] = 1.0
  awr_beta: Annotated[float, bounds.above(0), _WITH_AWR] = 1.0
  awr_max_weight: Annotated[float, bounds.above(0, takes_infinity=True), _WITH_AWR] = 20.0
  vmpo_epsilon: Annotated[float, bounds.above(0), _WITH_VMPO] = 0.01
  vmpo_initial_temperature: Annotated[float, bounds.above(0), _WITH_VMPO] = 1.0
  vmpo_speed: Annotated[float, bounds.above(0), _WITH_VMPO] = 10.0
  vmpo_form: Annotated[Literal['paper', 'original'], _WITH_VMPO] = 'paper'
  value_loss: Literal['mse', 'huber'] = 'mse'
  huber_delta: Annotated[float, bounds.above(0), conditions.only_with('value_loss', 'huber')] = 1.0
  value_clip: Annotated[float, bounds.at_least(0)] = 0.0
  value_cost: Annotated[float, bounds.at_least(0)] = 2.0
  kl_cost: Annotated[float, bounds.at_least(0)] = 0.0
  entropy: PenaltyConfig = PenaltyConfig()
  kl_to_behaviour: PenaltyConfig = PenaltyConfig()
  kl_from_behaviour: PenaltyConfig = PenaltyConfig()
  kl_from_reference: PenaltyConfig = PenaltyConfig()
  penalties_in_rewards: Literal['none', 'subtracted', 'added'] = 'none'
  max_abs_reward: Annotated[float, bounds.at_least(0)] = 0.0
  reward_scale: Annotated[float, bounds.above(0)] = 1.0
  observations: NormalizationConfig = NormalizationConfig()
  observation_clip: Annotated[
    float,
    bounds.above(0, takes_infinity=True),
    conditions.only_without('observations.statistics', 'none'),
  ] = 10.0
  values: NormalizationConfig = NormalizationConfig()
  value_compensation: Annotated[bool, _WITH_POPART] = True
  popart_order: Annotated[Literal['statistics_first', 'targets_first'], _WITH_POPART] = (
    'statistics_first'
  )
  action_distribution: Literal['tanh_normal', 'clipped_normal', 'deterministic_tanh'] = (
    'tanh_normal'
  )
  std_function: Literal['softplus', 'safe_exp'] = 'softplus'
  initial_std: Annotated[float, bounds.above(0)] = 1.0
  min_std: Annotated[float, bounds.at_least(0)] = 1e-3
  state_independent_std: bool = False

  def with_batch_size(self, batch_size: int) -> OnPolicyConfig:
    """See `AgentConfig`. Minibatches divide the batch, so they may become smaller."""
    other = dataclasses.replace(self, batch_size=batch_size)
    size = math.gcd(self.minibatch_size, num_elements(other))  # gcd(0, n) = n: 0 is all
    return dataclasses.replace(other, minibatch_size=size)

  def check(self, experiment: config_lib.ExperimentConfig) -> None:
    """See the base class."""
    _check_passes(self)
    std_checks.check(self.initial_std, self.min_std)
    _check_penalties(self, experiment.inference.strictly_on_policy)
    _check_combinations(self)
    _check_hosts(self, experiment.num_learner_hosts)
    _check_memory(self, experiment.network)

  def check_environment(self, spec: types.EnvironmentSpec) -> None:
    """See the base class."""
    action_checks.check(spec.action)
    threshold = self.entropy.threshold
    has_float = any(not action_checks.is_integer(leaf) for leaf in tree.flatten(spec.action))
    # The entropy of a clipped Normal is that of the Normal, which has no upper bound.
    if threshold is not None and not (has_float and self.action_distribution == 'clipped_normal'):
      where = f'agent.entropy.threshold ({threshold})'
      action_checks.check_entropy(where, -threshold, spec.action)

  def notices(self, spec: types.EnvironmentSpec) -> tuple[str, ...]:
    """See the base class."""
    return observation_checks.notices(
      'agent.observations.statistics', self.observations.statistics, 'none', spec
    )


def penalties(config: OnPolicyConfig) -> dict[str, PenaltyConfig]:
  """Returns the active penalties by name."""
  every = {name: getattr(config, name) for name in PENALTIES}
  return {name: penalty for name, penalty in every.items() if is_active(penalty)}


def num_elements(config: OnPolicyConfig) -> int:
  """Unrolls or transitions in one update."""
  if config.minibatch_of == 'unrolls':
    return config.batch_size
  return config.batch_size * config.unroll_length


def minibatch_size(config: OnPolicyConfig) -> int:
  """Unrolls or transitions in one gradient step."""
  return config.minibatch_size or num_elements(config)


def num_minibatches(config: OnPolicyConfig) -> int:
  """Gradient steps in one epoch."""
  return num_elements(config) // minibatch_size(config)


def _check_passes(config: OnPolicyConfig) -> None:
  elements, size = num_elements(config), minibatch_size(config)
  if elements % size:
    raise types.UserError(
      f'agent.minibatch_size ({size}) does not divide the {elements} {config.minibatch_of} '
      'of an update: change it, agent.batch_size or agent.unroll_length'
    )
  if config.recompute_advantages == 'minibatch' and config.minibatch_of == 'transitions':
    raise types.UserError(
      "agent.recompute_advantages ('minibatch') needs whole unrolls: set agent.minibatch_of "
      "'unrolls', or recompute each 'epoch'"
    )


def _check_penalty(name: str, penalty: PenaltyConfig) -> None:
  if penalty.threshold is not None:
    if name != 'entropy':  # a threshold of -entropy may well be negative
      bounds.at_least(0).check(f'agent.{name}.threshold', penalty.threshold)
    if not penalty.weight:
      raise types.UserError(
        f'agent.{name}.weight ({penalty.weight}) must be > 0 with agent.{name}.threshold: it '
        'is what adjustment starts from, by factors. A small one, such as 1e-5, will do'
      )


def _check_penalties(config: OnPolicyConfig, is_strictly_on_policy: bool) -> None:
  for name in PENALTIES:
    _check_penalty(name, getattr(config, name))
  of_behaviour = [name for name in penalties(config) if name.endswith('_behaviour')]
  if config.penalties_in_rewards == 'none' or not of_behaviour or not is_strictly_on_policy:
    return
  num_steps = config.num_epochs * num_minibatches(config)
  num_estimates = {'never': 1, 'epoch': config.num_epochs, 'minibatch': num_steps}
  if num_estimates[config.recompute_advantages] == 1:
    raise types.UserError(
      f"agent.penalties_in_rewards ('{config.penalties_in_rewards}') with agent."
      f'{of_behaviour[0]} and inference.strictly_on_policy needs rewards that are computed anew '
      'after the policy has left the behaviour: before, the divergence is 0. Set '
      "agent.recompute_advantages 'epoch' or 'minibatch', and more than one pass"
    )


def _check_combinations(config: OnPolicyConfig) -> None:
  if config.action_distribution == 'deterministic_tanh':
    raise types.UserError(
      "agent.action_distribution ('deterministic_tanh') has no log-probabilities, and every "
      "agent.policy_loss needs them: choose 'tanh_normal' or 'clipped_normal'"
    )
  if config.policy_loss == 'vmpo' and config.keep_advantages != 'all':
    raise types.UserError(
      f"agent.keep_advantages ('{config.keep_advantages}') must be 'all' with "
      "agent.policy_loss 'vmpo', which takes the better half by itself"
    )
  if config.popart_order != 'statistics_first' and config.recompute_advantages == 'minibatch':
    raise types.UserError(
      f"agent.popart_order ('{config.popart_order}') has no effect with agent."
      "recompute_advantages 'minibatch', as each minibatch normalises its targets when the "
      "statistics are new: leave it 'statistics_first', or recompute them 'never' or per 'epoch'"
    )


def _check_hosts(config: OnPolicyConfig, num_hosts: int) -> None:
  if minibatch_size(config) < num_hosts:
    raise types.UserError(
      f'agent.minibatch_size ({config.minibatch_size}) is less than num_learner_hosts '
      f'({num_hosts}), each of which takes a share of a minibatch: raise it, or lower the hosts'
    )


def _check_memory(config: OnPolicyConfig, network: config_lib.NetworkConfig) -> None:
  # A user's own network is checked when it is made.
  if not network.module and (network.core != 'none' or network.frame_stack > 1):
    check_takes_memory(config, network)


def check_takes_memory(config: OnPolicyConfig, network: config_lib.NetworkConfig) -> None:
  """Raises `types.UserError` if the configuration cannot train a network that has a state."""
  if config.minibatch_of == 'transitions':
    raise types.UserError(
      "agent.minibatch_of ('transitions') needs a network without memory, and this one "
      f"(network.core '{network.core}', network.frame_stack {network.frame_stack}) has a state "
      "that runs along an unroll: choose 'unrolls'"
    )
