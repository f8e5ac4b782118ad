"""`python divided_learner.py INDEX ADDRESS,ADDRESS FOLDER`: one of two learner hosts.

Each trains every case on its half of the samples. Then host 0 trains alone on whole samples, and
host 1 on whole samples, too, but on two logical devices. `FOLDER/INDEX.npz` are the results,
named `CASE/KIND/VARIABLE` for everything in a checkpoint, `.../priorities` for all updates and
`.../metric/NAME` for the last. KIND is `hosts`, `alone`, `devices` or `before`, which is the state
before the first update.
TensorFlow can divide the CPU and connect hosts only in a new process, and one process for all cases
loads it once.
"""

import dataclasses
import pathlib
import sys

import numpy as np
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.configs import registry
from seed_acme.learning import peers as peers_lib
from seed_acme.parallel import collectives
from seed_acme.parallel import devices as devices_lib
from tests import built

_NUM_UPDATES = 20
_NUM_LONG_UPDATES = 4  # for PPO, whose update is dozens of gradient steps
BATCH_SIZE = 10  # of one of two hosts, two devices get 3 and 2 unrolls
_NUM_DEVICES = 2
_AVERAGE = on_policy_config.NormalizationConfig('average')
_FIELDS = {
  'catch_lstm_vtrace': {},
  'cartpole_ppo': {
    'unroll_length': 6,
    'minibatch_size': 15,  # shares of 8 and 7 rows
    'normalize_advantages': True,
    'values': _AVERAGE,
    'observations': _AVERAGE,
    'value_compensation': True,
  },
  'cartpole_vmpo': {'minibatch_size': 0},
  'catch_r2d2': {'overlap': 2},
  'pendulum_sac': {'normalize_observations': True, 'replay': 'prioritized', 'random_steps': 0},
}
CASES = tuple(_FIELDS)
# With the number of each host's devices.
ON_HOSTS = {'catch_lstm_vtrace': 1, 'cartpole_ppo': 1, 'catch_r2d2': 1, 'pendulum_sac': 2}


def make_config(name):
  config = registry.load(name)
  fields = {'unroll_length': 3, 'batch_size': BATCH_SIZE, **_FIELDS.get(name, {})}
  agent = dataclasses.replace(config.agent, **fields)
  network = dataclasses.replace(config.network, mlp_sizes=(16,), core_size=16)
  learner = dataclasses.replace(config.learner, xla=False)
  return dataclasses.replace(config, agent=agent, network=network, learner=learner)


def make_sample(config, acting, seed):
  """Returns a sample whose first unrolls have no episode end, and whose last ones have many."""
  rng = np.random.default_rng(seed)
  unroll = acting.example_unroll()
  shape = (*unroll.inputs.step_type.shape, BATCH_SIZE)
  columns = lambda x: np.repeat(x[:, None], BATCH_SIZE, axis=1)
  inputs, outputs = tree.map_structure(columns, (unroll.inputs, unroll.outputs))
  normal = lambda x: rng.normal(size=x.shape).astype(x.dtype)
  step_type = np.full(shape, types.MID, np.uint8)
  for t in range(1, shape[0]):
    was_last = step_type[t - 1] == types.LAST
    ends = rng.random(BATCH_SIZE) < np.arange(BATCH_SIZE) / 12
    step_type[t] = np.where(was_last, types.FIRST, np.where(ends, types.LAST, types.MID))
  action = outputs.action
  if np.issubdtype(action.dtype, np.integer):
    action = rng.integers(0, acting.spec.action.num_values, action.shape).astype(action.dtype)
  else:
    action = np.tanh(normal(action))
  inputs = inputs._replace(
    step_type=step_type,
    reward=normal(inputs.reward) + 1,
    discount=rng.choice(np.float32([0, 1]), shape),
    observation=tree.map_structure(lambda x: 3 * normal(x) + 1, inputs.observation),
  )
  state = tree.map_structure(
    lambda x: normal(np.repeat(x[None], BATCH_SIZE, axis=0)), unroll.initial_state
  )
  probabilities = rng.uniform(0.01, 0.2, BATCH_SIZE)
  return types.Sample(
    types.Unroll(state, inputs, outputs._replace(action=action), columns(unroll.policy_version)),
    np.arange(BATCH_SIZE, dtype=np.uint64),
    probabilities,
  )


def part(sample, index, number):
  """Returns the unrolls of one host."""
  size = BATCH_SIZE // number
  own = slice(index * size, (index + 1) * size)
  unroll = sample.unroll
  state, rest = tree.map_structure(lambda x: x[own], (unroll.initial_state, sample[1:]))
  rows = tree.map_structure(lambda x: x[:, own], unroll[1:])
  return types.Sample(types.Unroll(state, *rows), *rest)


def _learn(name, num_devices=1, peers=peers_lib.ALONE):
  """Returns the state before and after training."""
  config = make_config(name)
  training = tuple(f'cpu:{i}' for i in range(num_devices))
  acting = built.make_acting(config, devices_lib.Devices(training, ('cpu:0',)))
  learner = built.make_learner(config, acting, peers)
  before, updates = learner.save(), []
  for i in range(_NUM_LONG_UPDATES if name == 'cartpole_ppo' else _NUM_UPDATES):
    sample = make_sample(config, acting, i)
    if not peers.is_alone:
      sample = part(sample, peers.index, peers.group.number)
    updates.append(learner.step(sample, agent_steps=i))
  found = learner.save()
  if updates[0].priorities is not None:
    found['priorities'] = np.stack([update.priorities for update in updates])
  found.update({f'metric/{key}': np.array(x) for key, x in updates[-1].metrics.items()})
  return before, found


def main(index, addresses, folder):
  cpu = tf.config.list_physical_devices('CPU')[0]
  logical = [tf.config.LogicalDeviceConfiguration()] * _NUM_DEVICES
  tf.config.set_logical_device_configuration(cpu, logical)
  hosts = collectives.Group(int(index), addresses.split(','), timeout_s=120.0)
  hosts.connect(60.0, lambda: False)
  found = {}
  for name, num_devices in ON_HOSTS.items():
    _, found[f'{name}/hosts'] = _learn(name, num_devices, peers_lib.LearnerHosts(hosts))
  for name in CASES:
    if hosts.is_chief:
      found[f'{name}/before'], found[f'{name}/alone'] = _learn(name)
    else:
      _, found[f'{name}/devices'] = _learn(name, _NUM_DEVICES)
  arrays = {f'{kind}/{key}': x for kind, of in found.items() for key, x in of.items()}
  np.savez(pathlib.Path(folder) / f'{index}.npz', **arrays)
  hosts.facts([0], timeout_s=400.0)  # no host ends before the other is done


if __name__ == '__main__':
  main(*sys.argv[1:])
