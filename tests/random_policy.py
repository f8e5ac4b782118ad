"""A policy with random weights, for tests of the code around it."""

from __future__ import annotations

import functools
from typing import NamedTuple

from dm_env import specs as dm_specs
import numpy as np
import tensorflow as tf

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.agents.on_policy import policy as on_policy
from seed_acme.inference import policy as policy_lib
from seed_acme.networks import build
from seed_acme.ops import distributions


class Acting(NamedTuple):
  """A policy with random weights of version 3, and its parts."""

  spec: types.EnvironmentSpec
  network: core.RecurrentNetwork
  policy: policy_lib.Policy
  published: policy_lib.PublishedVariables


def make_acting(kind: str) -> Acting:
  """Makes a policy with two actions and observation `[2]`; previous action and reward are inputs.

  kind: of the core.
  """
  spec = types.EnvironmentSpec(
    observation=dm_specs.Array((2,), np.float32, name='observation'),
    action=dm_specs.DiscreteArray(2, dtype=np.int32, name='action'),
    frames_per_step=4,
  )
  network = build.make_actor_critic(
    config_lib.NetworkConfig(
      mlp_sizes=(8,), core=kind, core_size=6, previous_action_input=True, previous_reward_input=True
    ),
    spec,
    num_policy_params=2,
  )
  published = policy_lib.PublishedVariables()
  select_actions = functools.partial(
    on_policy.select_actions, distribution=distributions.Categorical(2)
  )
  policy = policy_lib.Policy(spec, agent_lib.Acting(lambda: network, select_actions, 1), published)
  random = np.random.default_rng(7)
  weights = [tf.constant(random.normal(0, 0.7, v.shape), v.dtype) for v in network.variables]
  published.publish(types.Variables(3, tuple(weights[i] for i in policy.variables_read)))
  policy.refresh()
  return Acting(spec, network, policy, published)
