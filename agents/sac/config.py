"""Configuration of the SAC agent (Haarnoja et al. 2018a, arXiv 1801.01290; 2018b, 1812.05905)."""

from __future__ import annotations

import dataclasses
import importlib.util
from typing import Annotated, Literal

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents import memory_config
from seed_acme.checks import bounds
from seed_acme.checks import conditions
from seed_acme.checks import network_fields
from seed_acme.ops import action_checks
from seed_acme.ops import observation_checks
from seed_acme.ops import std_checks

_ADAM = config_lib.OptimizerConfig(learning_rate=3e-4, epsilon=1e-8, max_gradient_norm=0.0)
_WITH_TARGET_ENTROPY = conditions.only_without('target_entropy', None)
_WITH_HINDSIGHT = conditions.only_without('probability', 0)


@dataclasses.dataclass(frozen=True)
class HindsightConfig:
  """Hindsight experience replay (Andrychowicz et al. 2017), for goal environments.

  Their observation is a dict with `achieved_goal` and `desired_goal`, as gymnasium's `GoalEnv` has
  it. Goals are looked for within an unroll, so `agent.unroll_length` is the window.

  probability: share of the transitions whose goal becomes one that was achieved later in the
    episode; 0 = off. The paper's `future` strategy with k = 4 is 0.8.
  goal_outcome: `package.module:function` that computes what an achieved goal is worth:
    achieved_goal and desired_goal, tensors `[N, ...]` -> `seed_acme.envs.goals.GoalOutcome`.
  ends_at_goal: whether the environment ends an episode when its goal is reached. If so, discounts
    are relabelled, too.
  """

  probability: Annotated[float, bounds.SHARE] = 0.0
  goal_outcome: Annotated[str, _WITH_HINDSIGHT] = ''
  ends_at_goal: Annotated[bool, _WITH_HINDSIGHT] = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class SACConfig(memory_config.MemoryAgentConfig):
  """Defaults are those of Haarnoja et al. 2018b, table 1, where it gives them, except that alpha is
  fixed to 1: table 1 learns it, with a target entropy of -D nats for D dimensions of the action.

  discount: gamma per agent step.
  updates_per_step: gradient steps for every row inserted, enforced by the rate limiter; the row
    between two episodes counts, though it is no transition.
  transitions_per_unroll: number of transitions, chosen at random, to learn from in each unroll that
    is drawn; 0 = all.
  bootstrap: what the critics' targets bootstrap from. `action_value`: the least of the target
    critics at a fresh action (2018b); `state_value`: a separate state value with its own target
    (2018a).
  num_critics: number of action values; the least of them is used.
  target_step: share of the way that the targets move towards the learnt weights when they are
    updated; 1 copies the weights.
  target_period: learner updates from one update of the targets to the next.
  entropy_weight: alpha, the weight of the entropy in nats relative to the reward; if it is learnt,
    its initial value.
  target_entropy: nats at which the policy's entropy, summed over the action's dimensions, is held
    by learning the weight; None = the weight is fixed.
  entropy_speed: k of alpha = exp(k p), where p is learnt.
  random_steps: agent steps at the beginning of the run in which actions are uniformly random.
  max_abs_reward: rewards are clipped to this absolute value before they are scaled; 0 = off.
  reward_scale: multiplies rewards, after clipping.
  normalize_observations: scale observations to mean 0 and standard deviation 1, by running
    statistics of what is drawn from the memory.
  observation_clip: normalised observations are clipped to [-clip, clip].
  std_function: function from the network's output to a standard deviation.
  initial_std, min_std: standard deviation of an untrained policy, and its lower bound.
  max_priority_share: eta of an unroll's priority eta max_t |e_t| + (1 - eta) mean_t |e_t|.
  optimizer: optimizer of the policy.
  critic_optimizer: optimizer of the action values, and of the state value if there is one.
  entropy_optimizer: optimizer of the learnt entropy weight.
  hindsight: goal relabelling.
  """

  agent: str = 'sac'
  unroll_length: int = 1
  overlap: int = 0
  batch_size: int = 256
  replay: Literal['prioritized', 'uniform'] = 'uniform'
  replay_capacity: int = 1_000_000
  replay_min_size: int = 1_000
  priority_exponent: float = 0.6
  importance_exponent: float = 0.4
  discount: Annotated[float, bounds.SHARE] = 0.99
  updates_per_step: Annotated[float, bounds.above(0)] = 1.0
  transitions_per_unroll: Annotated[int, bounds.at_least(0)] = 0
  bootstrap: Literal['action_value', 'state_value'] = 'action_value'
  num_critics: Annotated[int, bounds.at_least(1)] = 2
  target_step: Annotated[float, bounds.Bound(0, 1, is_open_below=True)] = 0.005
  target_period: Annotated[int, bounds.at_least(1)] = 1
  entropy_weight: Annotated[float, bounds.at_least(0)] = 1.0
  target_entropy: Annotated[float | None, bounds.FINITE] = None
  entropy_speed: Annotated[float, bounds.above(0), _WITH_TARGET_ENTROPY] = 1.0
  random_steps: Annotated[int, bounds.at_least(0)] = 0
  max_abs_reward: Annotated[float, bounds.at_least(0)] = 0.0
  reward_scale: Annotated[float, bounds.above(0)] = 1.0
  normalize_observations: bool = False
  observation_clip: Annotated[
    float, bounds.above(0), conditions.only_with('normalize_observations', True)
  ] = 10.0
  std_function: Literal['softplus', 'safe_exp'] = 'safe_exp'
  initial_std: Annotated[float, bounds.above(0)] = 1.0
  min_std: Annotated[float, bounds.at_least(0)] = 1e-3
  max_priority_share: Annotated[float, bounds.SHARE, memory_config.WITH_PRIORITIES] = 0.9
  optimizer: config_lib.OptimizerConfig = _ADAM
  critic_optimizer: config_lib.OptimizerConfig = _ADAM
  entropy_optimizer: Annotated[config_lib.OptimizerConfig, _WITH_TARGET_ENTROPY] = _ADAM
  hindsight: HindsightConfig = HindsightConfig()

  def samples_per_insert(self) -> float:
    """See the base class. An unroll brings `unroll_length` new rows, so `updates_per_step` times as
    many updates are made for it, and each of them draws `batch_size` unrolls."""
    return self.updates_per_step * self.unroll_length * self.batch_size

  def check(self, experiment: config_lib.ExperimentConfig) -> None:
    """See the base class."""
    super().check(experiment)
    std_checks.check(self.initial_std, self.min_std)
    _check_transitions_per_unroll(self)
    _check_target_entropy(self)
    _check_network(self, experiment.network)
    _check_transitions(self, experiment.network)

  def notices(self, spec: types.EnvironmentSpec) -> tuple[str, ...]:
    """See the base class."""
    return observation_checks.notices(
      'agent.normalize_observations', self.normalize_observations, False, spec
    )

  def check_environment(self, spec: types.EnvironmentSpec) -> None:
    """See the base class."""
    action_checks.check(spec.action)
    if self.target_entropy is not None:
      where = f'agent.target_entropy ({self.target_entropy})'
      action_checks.check_entropy(where, self.target_entropy, spec.action)
    if not self.hindsight.probability:
      return
    wanted = ('achieved_goal', 'desired_goal')
    if not isinstance(spec.observation, dict) or not set(wanted) <= set(spec.observation):
      raise types.UserError(
        f'agent.hindsight.probability ({self.hindsight.probability}) needs a goal environment, '
        f'whose observation is a dict with {" and ".join(wanted)}: set it to 0'
      )
    achieved, desired = (spec.observation[name] for name in wanted)
    if (achieved.shape, achieved.dtype) != (desired.shape, desired.dtype):
      described = [f'{x.dtype} {list(x.shape)}' for x in (achieved, desired)]
      raise types.UserError(
        f'agent.hindsight.probability ({self.hindsight.probability}) replaces desired goals by '
        f'achieved ones, but achieved_goal is {described[0]} and desired_goal {described[1]}: '
        'make the environment give both the same shape and dtype, or set it to 0'
      )


def _check_transitions_per_unroll(config: SACConfig) -> None:
  if config.transitions_per_unroll > config.unroll_length:
    raise types.UserError(
      f'agent.transitions_per_unroll ({config.transitions_per_unroll}) exceeds '
      f'agent.unroll_length ({config.unroll_length}): lower it, or 0 for all'
    )


def _check_target_entropy(config: SACConfig) -> None:
  if config.target_entropy is None:
    return
  if not config.entropy_weight:
    raise types.UserError(
      'agent.entropy_weight (0.0) must be > 0 where agent.target_entropy is set: the weight is '
      'learnt by factors, and 0 stays 0. A small one, such as 1e-3, will do'
    )


def _check_network(config: SACConfig, network: config_lib.NetworkConfig) -> None:
  if network.module:
    raise types.UserError(
      f'network.module ({network.module}) is one whole network, and SAC needs several, a policy '
      'and critics: give network.torso a module of your own instead'
    )
  network_fields.check_unused(network, config, ('separate_value_network',))
  _check_heads(network)
  if network.frame_stack > 1 and config.normalize_observations:
    raise types.UserError(
      f'network.frame_stack ({network.frame_stack}) stacks images, which '
      'agent.normalize_observations (True) does not normalise: set it to False'
    )
  _check_core(config, network)


def _check_core(config: SACConfig, network: config_lib.NetworkConfig) -> None:
  if network.core == 'none' and (network.previous_action_input or network.previous_reward_input):
    raise types.UserError(
      'network.previous_action_input and network.previous_reward_input are for a recurrent core; '
      "set them to False, or network.core to 'lstm'"
    )
  if network.core != 'none' and not config.overlap:
    raise types.UserError(
      f"network.core ('{network.core}') needs agent.overlap > 0: only the policy acts, so the "
      "critics' memory starts empty in each unroll, and these rows fill it"
    )


def _check_heads(network: config_lib.NetworkConfig) -> None:
  """Raises `types.UserError` if the action would enter a critic only in its last layer. That layer
  is linear, so the best action would be the same whatever is observed or remembered."""
  late = [
    f'{name} {value!r}'
    for name, value, is_late in (
      ('network.torso', network.torso, network.torso != 'mlp'),
      ('network.mlp_sizes', network.mlp_sizes, not network.mlp_sizes),
      ('network.frame_stack', network.frame_stack, network.frame_stack > 1),
      ('network.core', network.core, network.core != 'none'),
    )
    if is_late
  ]
  if late and not network.head_sizes:
    raise types.UserError(
      f'network.head_sizes () must name a hidden layer with {late[0]}: the action joins its '
      'features there. Set it to 256, for instance'
    )


def _check_transitions(config: SACConfig, network: config_lib.NetworkConfig) -> None:
  """Checks settings that take single transitions out of an unroll, which a core does not allow."""
  if network.core != 'none' and config.transitions_per_unroll:
    raise types.UserError(
      f'agent.transitions_per_unroll ({config.transitions_per_unroll}) takes transitions out of '
      f"their order, which network.core ('{network.core}') needs: set it to 0"
    )
  if not config.hindsight.probability:
    return
  if config.unroll_length == 1:
    raise types.UserError(
      f'agent.hindsight.probability ({config.hindsight.probability}) takes goals from later in the '
      'unroll, and with agent.unroll_length (1) that is only the one just reached: set it to 10 or '
      'more, and agent.transitions_per_unroll to 1 to learn from as many transitions as before'
    )
  if network.core != 'none':
    raise types.UserError(
      f'agent.hindsight.probability ({config.hindsight.probability}) learns from pairs of rows, '
      f"and network.core ('{network.core}') would remember nothing before them: set it to 'none'"
    )
  if not config.hindsight.goal_outcome:
    raise types.UserError(
      'agent.hindsight.goal_outcome is empty: name the function that says what a goal is worth '
      'as package.module:function, seed_acme.envs.goals:bits_equal for instance'
    )
  _check_importable(config.hindsight.goal_outcome)


def _check_importable(path: str) -> None:
  """Checks that the learner, which may lack the environment's packages, can import the function. It
  is not imported here because that loads TensorFlow."""
  module, _, name = path.partition(':')
  try:
    found = bool(name) and importlib.util.find_spec(module) is not None
  except (ImportError, ValueError):
    found = False
  if not found:
    raise types.UserError(
      f"agent.hindsight.goal_outcome ('{path}') cannot be imported where the learner runs: write "
      'package.module:function of a module that needs nothing of the environment, '
      'seed_acme.envs.goals:bits_equal for instance'
    )
