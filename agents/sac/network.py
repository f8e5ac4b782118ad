"""The networks of the SAC agent: the policy, which acts, and the critics."""

from __future__ import annotations

from collections.abc import Sequence
import functools
from typing import NamedTuple

import sonnet as snt
import tensorflow as tf
import tree

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.agents.sac import config as sac_config
from seed_acme.networks import build
from seed_acme.networks import frame_stack
from seed_acme.networks import running_statistics
from seed_acme.networks import state_functions
from seed_acme.ops import action_distributions
from seed_acme.ops import distributions
from seed_acme.ops import lagrange
from seed_acme.ops import std_functions


class PolicyOutput(NamedTuple):
  """policy_params: `[..., P]`, parameters of the action distribution."""

  policy_params: tf.Tensor


def make_distribution(
  spec: types.EnvironmentSpec, config: sac_config.SACConfig
) -> distributions.Distribution:
  """Returns the distribution of the environment's actions: tanh-Normal if they are continuous."""
  std = std_functions.make(
    config.std_function, std_at_zero=config.initial_std, min_std=config.min_std
  )
  return action_distributions.make(spec.action, continuous='tanh_normal', std=std)


def make_policy(
  spec: types.EnvironmentSpec,
  network_config: config_lib.NetworkConfig,
  distribution: distributions.Distribution,
  config: sac_config.SACConfig,
) -> core.RecurrentNetwork:
  """Makes the network that acts; `policy_of` finds the `PolicyNetwork` in it."""
  function = build.make_state_function(
    network_config,
    spec,
    distribution.num_params,
    gain=network_config.policy_head_gain,
    takes_action=False,
    name='policy',
  )
  network: core.RecurrentNetwork = PolicyNetwork(function, _make_normalizer(spec, config))
  if network_config.frame_stack > 1:
    network = frame_stack.FrameStack(network, network_config.frame_stack, spec.observation)
  network(build.zero_inputs(spec, 1), network.initial_state(1))  # so that its variables exist
  build.check_names(network.variables)
  return network


def _make_normalizer(
  spec: types.EnvironmentSpec, config: sac_config.SACConfig
) -> running_statistics.ObservationNormalizer | None:
  if not config.normalize_observations:
    return None
  return running_statistics.ObservationNormalizer(spec.observation, None, config.observation_clip)


def policy_of(network: core.RecurrentNetwork) -> PolicyNetwork:
  """Returns the policy inside the network that acts, which may be wrapped to stack images."""
  policy = network.inner if isinstance(network, frame_stack.FrameStack) else network
  assert isinstance(policy, PolicyNetwork)
  return policy


class PolicyNetwork(snt.Module):
  """Network from normalised observations to the parameters of the action distribution."""

  def __init__(
    self,
    function: state_functions.StateFunction,
    observations: running_statistics.ObservationNormalizer | None,
    name: str = 'sac',
  ):
    """observations: normaliser with running statistics; None = observations stay as they are."""
    super().__init__(name=name)
    self.function = function
    self.observations = observations

  def initial_state(self, batch_size: int | tf.Tensor) -> types.Nest:
    """See `core.RecurrentNetwork`."""
    return self.function.initial_state(batch_size)

  def __call__(
    self, inputs: types.AgentInput, state: types.Nest
  ) -> tuple[PolicyOutput, types.Nest]:
    """Runs one row; see `core.RecurrentNetwork`."""
    inputs = self.normalized(inputs)
    remembered, state = self.function.remember(inputs, state)
    return PolicyOutput(self.function(inputs.observation, remembered)), state

  def unroll(self, inputs: types.AgentInput, state: types.Nest) -> tuple[PolicyOutput, types.Nest]:
    """Runs many rows; see `core.RecurrentNetwork`."""
    inputs = self.normalized(inputs)
    remembered, state = self.function.remember_unroll(inputs, state)
    return PolicyOutput(self.function.over_rows(inputs.observation, remembered)), state

  def normalized(self, inputs: types.AgentInput) -> types.AgentInput:
    """Returns rows with normalised observations, as the policy and the critics see them."""
    if self.observations is None:
      return inputs
    return inputs._replace(observation=self.observations(inputs.observation))


class Critics(snt.Module):
  """Action values and, if asked for, a state value; either the learnt ones or their targets.

  Their inputs are observations that the policy's statistics have already normalised.
  """

  def __init__(
    self,
    spec: types.EnvironmentSpec,
    network_config: config_lib.NetworkConfig,
    num_critics: int,
    has_state_value: bool,
    name: str = 'critics',
  ):
    super().__init__(name=name)
    make = functools.partial(
      build.make_state_function, network_config, spec, 1, gain=network_config.value_head_gain
    )
    self.action_values = [make(takes_action=True, name=f'critic_{i}') for i in range(num_critics)]
    self.state_value: state_functions.StateFunction | None = None
    if has_state_value:
      self.state_value = make(takes_action=False, name='state_value')

  @property
  def functions(self) -> list[state_functions.StateFunction]:
    """All value functions, the state value last."""
    return [*self.action_values, *([] if self.state_value is None else [self.state_value])]


def make_critics(
  spec: types.EnvironmentSpec,
  network_config: config_lib.NetworkConfig,
  num_critics: int,
  has_state_value: bool,
) -> Critics:
  """Makes the critics and creates their variables."""
  critics = Critics(spec, network_config, num_critics, has_state_value)
  inputs = build.zero_inputs(spec, 1)
  if network_config.frame_stack > 1:
    inputs = inputs._replace(
      observation=tree.map_structure(
        lambda x: tf.zeros([*x.shape[:3], network_config.frame_stack], x.dtype), inputs.observation
      )
    )
  for function in critics.functions:
    remembered, _ = function.remember(inputs, function.initial_state(1))
    action = None if function is critics.state_value else inputs.previous_action
    function(inputs.observation, remembered, action)
  build.check_names(critics.variables)
  return critics


@snt.allow_empty_variables  # if the weight is fixed
class EntropyWeight(snt.Module):
  """alpha: fixed, or exp(k p) with a trainable p."""

  def __init__(self, config: sac_config.SACConfig, name: str = 'entropy_weight'):
    super().__init__(name=name)
    self._config = config
    self._parameter: tf.Variable | None = None
    if config.target_entropy is not None:
      self._parameter = tf.Variable(
        lagrange.initial_parameter(
          config.entropy_weight,
          speed=config.entropy_speed,
          weight_name='agent.entropy_weight',
          speed_name='agent.entropy_speed',
        ),
        dtype=tf.float32,
        name='parameter',
      )

  @property
  def parameters(self) -> Sequence[tf.Variable]:
    """The trainable parameter, if the weight is learnt."""
    return () if self._parameter is None else (self._parameter,)

  def __call__(self) -> tf.Tensor:
    """Returns alpha, a scalar."""
    if self._parameter is None:
      return tf.constant(self._config.entropy_weight, tf.float32)
    return lagrange.weight(self._parameter, speed=self._config.entropy_speed)
