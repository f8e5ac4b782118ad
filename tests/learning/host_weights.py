"""`python host_weights.py INDEX ADDRESS,ADDRESS CASE FOLDER DEVICES`: one of several learner hosts.

Each trains on its part of the samples of `device_weights`. Host 0 also trains alone on whole
samples. `FOLDER/INDEX.npz` has the arrays of `device_weights`: `hosts/`, `alone/` and `before/`.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.learning import peers as peers_lib
from seed_acme.parallel import collectives
from seed_acme.parallel import devices as devices_lib
from tests import built
from tests.learning import device_weights


def part(sample, index, number):
  """Returns the unrolls of one host."""
  size = device_weights.BATCH_SIZE // number
  own = slice(index * size, (index + 1) * size)
  unroll = sample.unroll
  state, rest = tree.map_structure(lambda x: x[own], (unroll.initial_state, sample[1:]))
  rows = tree.map_structure(lambda x: x[:, own], unroll[1:])
  return types.Sample(types.Unroll(state, *rows), *rest)


def learn(name, num_devices, peers):
  config = device_weights.make_config(name)
  training = tuple(f'cpu:{i}' for i in range(num_devices))
  acting = built.make_acting(config, devices_lib.Devices(training, ('cpu:0',)))
  learner = built.make_learner(config, acting, peers)
  updates = []
  for i in range(device_weights.num_updates(name)):
    sample = device_weights.make_sample(config, acting, i)
    if not peers.is_alone:
      sample = part(sample, peers.index, peers.group.number)
    updates.append(learner.step(sample, agent_steps=i))
  found = learner.save()
  if updates[0].priorities is not None:
    found['priorities'] = np.stack([update.priorities for update in updates])
  found.update({f'metric/{key}': np.array(x) for key, x in updates[-1].metrics.items()})
  return found


def initial(name):
  config = device_weights.make_config(name)
  return built.make_learner(config, built.make_acting(config)).save()


def main(index, addresses, name, folder, num_devices):
  index, num_devices = int(index), int(num_devices)
  if num_devices > 1:
    cpu = tf.config.list_physical_devices('CPU')[0]
    logical = [tf.config.LogicalDeviceConfiguration()] * num_devices
    tf.config.set_logical_device_configuration(cpu, logical)
  hosts = collectives.Group(index, addresses.split(','), timeout_s=60.0)
  peers = peers_lib.LearnerHosts(hosts)
  peers.connect(60.0, lambda: False)
  found = {f'hosts/{key}': x for key, x in learn(name, num_devices, peers).items()}
  if hosts.is_chief:
    found.update({f'alone/{key}': x for key, x in learn(name, 1, peers_lib.ALONE).items()})
    found.update({f'before/{key}': x for key, x in initial(name).items()})
  np.savez(pathlib.Path(folder) / f'{index}.npz', **found)
  hosts.facts([0], timeout_s=240.0)  # no host ends before the others are done


if __name__ == '__main__':
  main(*sys.argv[1:])
