"""What learner hosts send each other in an update."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import agent as agent_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.learning import peers as peers_lib
from tests import built
from tests.learning import divided_learner

_AVERAGE = on_policy_config.NormalizationConfig('average')


class _Twins:
  """Host 0 of two; the other answers like this one. Counts the bytes that are sent."""

  index, number, is_chief = 0, 2, True

  def __init__(self):
    self.num_bytes = 0

  def joined(self, leaves, axes):
    self.num_bytes += sum(x.shape.num_elements() * x.dtype.size for x in leaves)
    return [tf.concat([x, x], axis=axis) for x, axis in zip(leaves, axes)]

  def mean(self, tensors):
    return list(tensors)

  def timed_function(self, function):
    return function


def _sent(name, **fields):
  """Returns the bytes that are sent for one update, besides gradients, and those of the host's
  observations and initial states."""
  config = divided_learner.make_config(name)
  config = dataclasses.replace(config, agent=dataclasses.replace(config.agent, **fields))
  acting, twins = built.make_acting(config), _Twins()
  learner = built.make_learner(config, acting, peers_lib.LearnerHosts(twins))
  whole = divided_learner.make_sample(config, acting, seed=1)
  own = divided_learner.part(whole, 0, 2)
  update = learner.step(own, agent_steps=0)
  assert all(np.isfinite(x) for x in update.metrics.values())
  kept = (own.unroll.inputs.observation, own.unroll.initial_state)
  return twins.num_bytes, sum(x.nbytes for x in tree.flatten(kept))


@pytest.mark.parametrize('name', ['catch_lstm_vtrace', 'catch_r2d2'])
def test_observations_stay_on_their_host_if_only_networks_read_them(name):
  sent, kept = _sent(name)
  assert 0 < sent < kept / 2


@pytest.mark.parametrize(
  ('name', 'fields'),
  [
    ('catch_lstm_vtrace', {'observations': _AVERAGE}),
    ('catch_lstm_vtrace', {'num_epochs': 2}),
    ('cartpole_vpg', {'minibatch_of': 'transitions'}),
    ('pendulum_sac', {}),
  ],
)
def test_observations_are_sent_to_hosts_that_read_them(name, fields):
  """Statistics count all of them, minibatches mix them, transitions have one axis for time and
  batch, and SAC selects some."""
  sent, kept = _sent(name, **fields)
  assert sent > kept


def test_observations_of_minibatches_cannot_stay():
  passes = agent_lib.Passes(1, 1, 1, False, lambda batch, indices: batch)
  with pytest.raises(ValueError, match='keeps_observations'):
    agent_lib.Learning({}, {}, None, None, passes, keeps_observations=True)
