"""Costs of inference in the server and in the actors, of a real small network."""

import dataclasses

import numpy as np
import pytest
import tree

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme.configs import registry
from seed_acme.programs.benchmark import actor_inference_costs
from seed_acme.transport import wire
from tests import built

pytestmark = pytest.mark.slow

_MIN_S = 0.002


def _config(**changes):
  config = registry.load('bench_catch_lstm')
  network = dataclasses.replace(config.network, mlp_sizes=(8,), core_size=4)
  return dataclasses.replace(
    config, num_actors=6, environments_per_actor=4, network=network, **changes
  )


@pytest.fixture(scope='module', name='costs')
def fixture_costs():
  return actor_inference_costs.measure(_config(), _MIN_S)


def test_bytes_are_those_of_the_wire_of_the_unrolls_and_of_the_weights(costs):
  config = _config()
  acting = built.make_acting(config)
  codec = wire.GroupCodec(acting.spec, 4)
  assert costs['central']['bytes_per_step'] == {
    'requests': codec.num_request_bytes / 4,
    'actions': len(codec.encode_actions(np.zeros(4, np.int32))) / 4,
  }
  leaves = tree.flatten(acting.example_unroll())
  padded = sum(-(-4 * np.asarray(leaf).nbytes // 8) * 8 for leaf in leaves)
  length, batch = config.agent.unroll_length, config.agent.batch_size
  assert costs['steps_per_update'] == batch * length
  variables = acting.agent.acting.make().variables
  assert costs['num_weights'] == sum(int(np.prod(v.shape)) for v in variables)
  weights = sum(-(-v.numpy().nbytes // 8) * 8 for v in variables)
  for placement, deliveries in (
    ('actor_every_update', 6 / (batch * length)),
    ('actor_every_unroll', min(6 / (batch * length), 1 / (4 * length))),
  ):
    assert costs[placement]['bytes_per_step'] == {
      'unrolls': pytest.approx(padded / (4 * length)),
      'weights': pytest.approx(deliveries * weights),
    }


def test_every_part_costs_something_and_both_ways_act_alike_in_the_actors(costs):
  assert (costs['actor_rows'], costs['server_rows']) == (
    4,
    layout_lib.Layout.of(_config()).batch_rows(0, 1)[0],
  )
  for placement in ('central', 'actor_every_update', 'actor_every_unroll'):
    assert all(cost > 0 for cost in costs[placement]['cpu_s_per_million_steps'].values())
  update, unroll = (
    costs[f'actor_every_{when}']['cpu_s_per_million_steps'] for when in ('update', 'unroll')
  )
  for part in ('inference', 'unrolls'):
    assert update[part] == unroll[part]


def test_batches_of_one_size_cost_the_same():
  config = _config(inference=config_lib.InferenceConfig(batch_size=4))
  costs = actor_inference_costs.measure(config, _MIN_S)
  found = {
    costs[placement]['cpu_s_per_million_steps']['inference']
    for placement in ('central', 'actor_every_update')
  }
  assert len(found) == 1


def test_weights_that_did_not_change_are_not_sent_again():
  agent = dataclasses.replace(_config().agent, batch_size=6400)
  replay = dataclasses.replace(_config().replay, queue_size=6400)
  costs = actor_inference_costs.measure(_config(agent=agent, replay=replay), _MIN_S)
  assert costs['actor_every_unroll'] == costs['actor_every_update']


def test_a_factor_changes_dense_layers_and_core_and_nothing_else():
  network = registry.load('atari_r2d2').network
  scaled = actor_inference_costs.scaled(network, 0.5)
  assert scaled == dataclasses.replace(
    network, mlp_sizes=(32, 32), torso_output_size=256, core_size=256, head_sizes=(256,)
  )
  assert actor_inference_costs.scaled(network, 1.0) == network
  assert actor_inference_costs.scaled(network, 1e-9).mlp_sizes == (1, 1)
