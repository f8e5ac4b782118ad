"""`python device_actions.py FILE`: actions of one and of two inference devices, frozen weights.

TensorFlow can divide the CPU only in a new process. The NumPy archive has `actions/DEVICES`,
`[steps, environments]`, and `unrolls/DEVICES`, all numbers in the unrolls.
"""

import dataclasses
import sys

import numpy as np
import tensorflow as tf
import tree

from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.envs import catch
from seed_acme.inference import server_statistics
from seed_acme.parallel import devices as devices_lib
from seed_acme.programs.building import build
from seed_acme.progress import counting
from tests import built
from tests.inference import rigs

NUM_STEPS = 30
NUM_ENVIRONMENTS = 3  # of each actor, so that batches of six rows and of three rows are padded
_NUM_ACTORS = 2


def play(num_devices):
  """Returns actions `[steps, environments]`, and finished unrolls as `[U, numbers]`."""
  config = dataclasses.replace(
    registry.load('catch_lstm_vtrace'),
    num_actors=_NUM_ACTORS,
    environments_per_actor=NUM_ENVIRONMENTS,
  )
  inference = tuple(f'cpu:{i}' for i in range(num_devices))
  acting = built.make_acting(config, devices_lib.Devices(('cpu:0',), inference))
  acting.published.publish(built.make_learner(config, acting).variables())
  layout = layout_lib.Layout.of(config).with_devices(0, inference)
  sink, counters = rigs.Sink(), counting.Counters()
  statistics = server_statistics.ServerStatistics(layout.num_environments)
  servers = build.make_inference_servers(
    config.environment.id, layout, acting, sink, counters, statistics
  )
  boards = [catch.Catch(NUM_ENVIRONMENTS, seed) for seed in range(_NUM_ACTORS)]
  timesteps = [board.reset() for board in boards]
  actions = []
  for number in range(NUM_STEPS):
    requests = [_request(actor, number, timestep) for actor, timestep in enumerate(timesteps)]
    replies = [None] * _NUM_ACTORS
    for index, server in enumerate(servers):
      own = [a for a in range(_NUM_ACTORS) if _device(layout, requests[a]) == index]
      for actor, reply in zip(own, server.step([requests[actor] for actor in own])):
        replies[actor] = reply
    actions.append(np.concatenate(replies))
    timesteps = [board.step(reply) for board, reply in zip(boards, replies)]
  leaves = [tree.flatten((u.initial_state, u.inputs, u.outputs)) for u in sink.unrolls]
  rows = np.concatenate([_as_rows(of_one) for of_one in leaves])
  return np.array(actions), rows[np.lexsort(rows.T)]  # two servers finish them in another order


def _as_rows(leaves):
  """Flattens leaves `[U, ...]` to `[U, numbers]`."""
  return np.concatenate([x.reshape(len(x), -1).astype(np.float64) for x in leaves], axis=1)


def _request(actor, number, timestep):
  env_ids = np.arange(NUM_ENVIRONMENTS, dtype=np.int32) + actor * NUM_ENVIRONMENTS
  return types.ActorRequest(number, env_ids, np.ones(NUM_ENVIRONMENTS, np.int64), timestep)


def _device(layout, request):
  return layout.device_of(int(request.env_ids[0]))


def main(path):
  cpu = tf.config.list_physical_devices('CPU')[0]
  tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
  found = {}
  for number in (1, 2):
    found[f'actions/{number}'], found[f'unrolls/{number}'] = play(number)
  np.savez(path, **found)


if __name__ == '__main__':
  main(*sys.argv[1:])
