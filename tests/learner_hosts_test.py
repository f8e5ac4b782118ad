import dataclasses

import numpy as np
import pytest

from seed_acme import config_validation
from seed_acme import learner_hosts
from seed_acme import sizes
from seed_acme import types
from seed_acme.configs import registry


def _config(name='catch_vtrace', replay=None, agent=None, inference=None, learner=None, **fields):
  config = registry.load(name)
  replace = dataclasses.replace
  return replace(
    config,
    replay=replace(config.replay, **(replay or {})),
    agent=replace(config.agent, **(agent or {})),
    inference=replace(config.inference, **(inference or {})),
    learner=replace(config.learner, **{'xla': False, **(learner or {})}),
    **{'num_learner_hosts': 2, 'num_actors': 2, **fields},
  )


def _sharded(name='catch_vtrace', replay=None, **fields):
  """Two shards of one host."""
  replay = {'num_shards': 2, **(replay or {})}
  return _config(name, replay, **{'num_learner_hosts': 1, 'num_actors': 4, **fields})


@pytest.mark.parametrize(
  ('config', 'message'),
  [
    (_config(num_actors=1), r'num_learner_hosts \(2\) is more than num_actors \(1\)'),
    (_config(num_learner_hosts=0), r'num_learner_hosts \(0\) must be >= 1'),
    (
      _config(agent={'batch_size': 15}, replay={'unrolls_per_item': 1}),
      r'agent.batch_size \(15\) is not a multiple of num_learner_hosts \(2\)',
    ),
    (_config(replay={'queue_size': 33}), r'replay.queue_size \(33\) is not a multiple'),
    (_config(learner={'xla': True}), r'learner.xla \(True\) compiles for one device'),
    (_config(replay={'separate_process': True}), 'each host serves its own replay'),
    (_config(learner={'host_timeout_s': 0.0}), r'learner.host_timeout_s \(0.0\) must be > 0'),
    (
      _config('catch_r2d2', agent={'replay_capacity': 10_001}),
      r'agent.replay_capacity \(10001\) is not a multiple',
    ),
    (
      _config(
        num_actors=3,
        environments_per_actor=4,
        inference={'strictly_on_policy': True},
        agent={'batch_size': 24},
      ),
      r'num_actors \(3\) is not a multiple of num_learner_hosts \(2\), as inference.strictly',
    ),
    (
      _config(learner={'inference_devices': 'cpu:0,cpu:1'}),
      r'more than the actors of a learner host \(1\)',
    ),
    (_sharded(replay={'num_shards': 0}), r'replay.num_shards \(0\) must be >= 1'),
    (
      _sharded(num_actors=3),
      r'num_actors \(3\) is not a multiple of replay.num_shards \(2\), which have equal shares',
    ),
    (
      _sharded(agent={'batch_size': 15}, replay={'unrolls_per_item': 1}),
      r'agent.batch_size \(15\) is not a multiple of replay.num_shards \(2\)',
    ),
    (_sharded(replay={'queue_size': 33}), r'replay.queue_size \(33\) is not a multiple'),
    (
      _sharded('catch_r2d2', agent={'replay_min_size': 101}),
      r'agent.replay_min_size \(101\) is not a multiple',
    ),
    (
      _sharded(num_learner_hosts=2, replay={'num_shards': 4}),
      r'num_actors \(4\) is not a multiple of replay.num_shards \(4\) x num_learner_hosts \(2\)',
    ),
  ],
)
def test_what_cannot_work_is_refused(config, message):
  with pytest.raises(types.UserError, match=message):
    config_validation.validate(config)


def test_what_can_work_is_not():
  config_validation.validate(_config())
  config_validation.validate(_config('catch_r2d2'))
  config_validation.validate(_config(num_learner_hosts=1, num_actors=1))
  config_validation.validate(_sharded())
  config_validation.validate(_sharded('catch_r2d2'))
  config_validation.validate(_sharded(num_learner_hosts=2))
  config_validation.validate(_sharded(num_actors=3, replay={'num_shards': 1}))


def test_only_processes_can_be_hosts():
  for how in ('local_mp', 'auto'):
    learner_hosts.check_launch(_config(), how)
  learner_hosts.check_launch(_config(num_learner_hosts=1), 'single_process')
  with pytest.raises(types.UserError, match='needs --launch=local_mp.*with local_mt set it to 1'):
    learner_hosts.check_launch(_config(), 'local_mt')


def test_actors_are_dealt_out_over_hosts_and_then_over_their_devices():
  config = _config(num_actors=8, environments_per_actor=2)
  assert [sizes.learner_host(config, i) for i in range(8)] == [0, 1] * 4
  devices = [sizes.inference_device(config, 2 * i, 2) for i in range(8)]
  assert devices == [0, 0, 1, 1, 0, 0, 1, 1]
  # Half of the rows that a device of a host has: 2 actors of 2 environments each.
  assert [sizes.inference_batch_size_on(config, device, 2, host=1) for device in (0, 1)] == [2, 2]


def test_a_host_draws_and_keeps_its_share():
  config = _config('pendulum_sac', agent={'replay_capacity': 1000, 'replay_min_size': 100})
  share = sizes.share(config).agent
  assert (share.batch_size, share.replay_capacity, share.replay_min_size) == (32, 500, 50)
  # Half of the insertions, and half of each update's batch: as many draws for each insertion.
  assert share.replay_spec().ratio == config.agent.replay_spec().ratio
  queue = _config(replay={'queue_size': 64})
  assert sizes.share(queue).replay.queue_size == 32
  small = dataclasses.replace(queue.agent, batch_size=12)
  replay = dataclasses.replace(queue.replay, unrolls_per_item=4)
  items = sizes.share(dataclasses.replace(queue, agent=small, replay=replay)).replay
  assert items.unrolls_per_item == 2  # 6 unrolls are no whole items of 4
  assert sizes.share(dataclasses.replace(queue, num_learner_hosts=1)).replay.queue_size == 64


def test_nodes_of_their_own_are_on_this_machine():
  learner_hosts.check_shards_beside(_sharded())
  learner_hosts.check_shards_beside(_sharded(replay={'num_shards': 1, 'separate_process': True}))
  with pytest.raises(types.UserError, match=r'replay.num_shards \(2\) with replay.separate_proc'):
    learner_hosts.check_shards_beside(_sharded(replay={'separate_process': True}))


def test_actors_are_dealt_out_over_shards():
  config = _sharded(num_actors=4, environments_per_actor=2)
  assert sizes.replay_shard(config, np.arange(8)).tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
  hosts = dataclasses.replace(config, num_learner_hosts=2)  # actors 0 and 2 are those of host 0
  assert sizes.replay_shard(hosts, np.arange(8)).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_shard_draws_and_keeps_its_part():
  config = _sharded(agent={'batch_size': 8}, replay={'queue_size': 32, 'unrolls_per_item': 8})
  part = sizes.shard(config)
  assert part.agent.batch_size == part.replay.unrolls_per_item == 4
  assert part.replay.queue_size == 16
  part = sizes.shard(dataclasses.replace(config, num_learner_hosts=2))
  assert (part.agent.batch_size, part.replay.queue_size) == (2, 8)
  memory = _sharded('catch_r2d2')
  part = sizes.shard(memory).agent.replay_spec()
  whole = memory.agent.replay_spec()
  assert (part.capacity, part.min_size) == (whole.capacity // 2, whole.min_size // 2)
  assert part.ratio == whole.ratio


def test_shards_have_ports_in_a_row_or_any_free_ones():
  assert sizes.replay_port(_sharded(replay={'port': 0}), 1) == 0
  assert [sizes.replay_port(_sharded(replay={'port': 7000}), i) for i in range(2)] == [7000, 7001]
