"""Policies shared by the tests of inference: tracing one takes longer than most tests."""
from __future__ import annotations

from collections.abc import Callable
import functools
from typing import NamedTuple

from dm_env import specs as dm_specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.agents.vtrace import policy as vtrace_policy
from seed_acme.inference import policy as policy_lib
from seed_acme.networks import build


class Acting(NamedTuple):
  """A policy with random weights of version 3, and what it was made of."""
  spec: types.EnvironmentSpec
  network: core.RecurrentNetwork
  policy: policy_lib.Policy
  published: policy_lib.PublishedVariables


def make_acting(kind: str) -> Acting:
  """kind: of the core. Two actions, observation `[2]`; previous action and reward are inputs."""
  spec = types.EnvironmentSpec(
      observation=dm_specs.Array((2,), np.float32, name='observation'),
      action=dm_specs.DiscreteArray(2, dtype=np.int32, name='action'), frames_per_step=4)
  network = build.make_actor_critic(
      config_lib.NetworkConfig(
          mlp_sizes=(8,), core=kind, core_size=6, previous_action_input=True,
          previous_reward_input=True), spec, num_policy_params=2)
  published = policy_lib.PublishedVariables()
  select_actions = functools.partial(vtrace_policy.select_actions, spec, config=None)
  policy = policy_lib.Policy(spec, network, select_actions, 1, published)
  random = np.random.default_rng(7)
  published.publish(types.Variables(3, tuple(
      tf.constant(random.normal(0, 0.7, v.shape), v.dtype) for v in network.variables)))
  policy.refresh()
  return Acting(spec, network, policy, published)


@pytest.fixture(scope='session')
def acting() -> Callable[[str], Acting]:
  """`acting('lstm')`, the same one for all tests. Do not publish other weights to it."""
  return functools.cache(make_acting)


@pytest.fixture(scope='session')
def new_acting() -> Callable[[str], Acting]:
  """`new_acting('none')`, one of the test's own."""
  return make_acting
