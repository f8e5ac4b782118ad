"""`python device_weights.py FOLDER`: each agent's training on one and on four logical devices.

The samples are the same; `FOLDER/CASE.npz` are the results. TensorFlow can divide the CPU only in a
new process, and one process for all cases loads it once.
Names in the archive are `DEVICES/VARIABLE` for everything in a checkpoint, `.../priorities` for all
updates and `.../metric/NAME` for the last; `0/...` is the state before the first update.
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
from seed_acme.parallel import devices as devices_lib
from tests import built

_NUM_UPDATES = 50
_NUM_LONG_UPDATES = 10  # for PPO, whose update is dozens of gradient steps
BATCH_SIZE = 10  # not a multiple of 4: the devices get 3, 3, 2 and 2 unrolls
_AVERAGE = on_policy_config.NormalizationConfig('average')
_FIELDS = {
  'catch_vtrace': {},
  'catch_lstm_vtrace': {},
  'cartpole_ppo': {
    'minibatch_size': 15,
    'normalize_advantages': True,
    'values': _AVERAGE,
    'observations': _AVERAGE,
    'value_compensation': True,
  },
  'cartpole_vmpo': {'minibatch_size': 0},
  'catch_r2d2': {},
  'pendulum_sac': {'normalize_observations': True, 'replay': 'prioritized', 'random_steps': 0},
}
CASES = tuple(_FIELDS)


def num_updates(name):
  return _NUM_LONG_UPDATES if name == 'cartpole_ppo' else _NUM_UPDATES


def make_config(name):
  config = registry.load(name)
  agent = dataclasses.replace(config.agent, unroll_length=6, batch_size=BATCH_SIZE, **_FIELDS[name])
  learner = dataclasses.replace(config.learner, xla=False)
  return dataclasses.replace(config, agent=agent, learner=learner)


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


def learn(name, num_devices):
  config = make_config(name)
  training = tuple(f'cpu:{i}' for i in range(num_devices))
  acting = built.make_acting(config, devices_lib.Devices(training, ('cpu:0',)))
  learner = built.make_learner(config, acting)
  before = learner.save()
  updates = [
    learner.step(make_sample(config, acting, i), agent_steps=i) for i in range(num_updates(name))
  ]
  found = learner.save()
  if updates[0].priorities is not None:
    found['priorities'] = np.stack([update.priorities for update in updates])
  found.update({f'metric/{key}': np.array(x) for key, x in updates[-1].metrics.items()})
  return before, found


def main(folder):
  cpu = tf.config.list_physical_devices('CPU')[0]
  tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
  for name in CASES:
    before, of_one = learn(name, 1)
    _, of_four = learn(name, 4)
    found = {'0': before, '1': of_one, '4': of_four}
    arrays = {f'{number}/{key}': x for number, of in found.items() for key, x in of.items()}
    np.savez(pathlib.Path(folder) / f'{name}.npz', **arrays)


if __name__ == '__main__':
  main(*sys.argv[1:])
