import dataclasses

import numpy as np
import pytest

from seed_acme import config_validation
from seed_acme import learner_hosts
from seed_acme import sizes
from seed_acme import types
from seed_acme.configs import registry


def _config(name='catch_vtrace', replay=None, agent=None, **fields):
  config = registry.load(name)
  return dataclasses.replace(
    config,
    replay=dataclasses.replace(config.replay, **{'num_shards': 2, **(replay or {})}),
    agent=dataclasses.replace(config.agent, **(agent or {})),
    **{'num_actors': 4, **fields},
  )


@pytest.mark.parametrize(
  ('config', 'message'),
  [
    (_config(replay={'num_shards': 0}), r'replay.num_shards \(0\) must be >= 1'),
    (
      _config(num_actors=3),
      r'num_actors \(3\) is not a multiple of replay.num_shards \(2\), which have equal shares',
    ),
    (
      _config(agent={'batch_size': 15}, replay={'unrolls_per_item': 1}),
      r'agent.batch_size \(15\) is not a multiple of replay.num_shards \(2\)',
    ),
    (_config(replay={'queue_size': 33}), r'replay.queue_size \(33\) is not a multiple'),
    (
      _config('catch_r2d2', agent={'replay_min_size': 101}),
      r'agent.replay_min_size \(101\) is not a multiple',
    ),
    (
      _config(num_learner_hosts=2, replay={'num_shards': 4}),
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
  config_validation.validate(_config(num_learner_hosts=2))
  config_validation.validate(_config(num_actors=3, replay={'num_shards': 1}))


def test_nodes_of_their_own_are_on_this_machine():
  learner_hosts.check_shards_beside(_config())
  learner_hosts.check_shards_beside(_config(replay={'num_shards': 1, 'separate_process': True}))
  with pytest.raises(types.UserError, match=r'replay.num_shards \(2\) with replay.separate_proc'):
    learner_hosts.check_shards_beside(_config(replay={'separate_process': True}))


def test_actors_are_dealt_out_over_shards():
  config = _config(num_actors=4, environments_per_actor=2)
  assert sizes.replay_shard(config, np.arange(8)).tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
  hosts = dataclasses.replace(config, num_learner_hosts=2)  # actors 0 and 2 are those of host 0
  assert sizes.replay_shard(hosts, np.arange(8)).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_shard_draws_and_keeps_its_part():
  config = _config(agent={'batch_size': 8}, replay={'queue_size': 32, 'unrolls_per_item': 8})
  part = sizes.shard(config)
  assert part.agent.batch_size == part.replay.unrolls_per_item == 4
  assert part.replay.queue_size == 16
  part = sizes.shard(dataclasses.replace(config, num_learner_hosts=2))
  assert (part.agent.batch_size, part.replay.queue_size) == (2, 8)
  memory = _config('catch_r2d2')
  part = sizes.shard(memory).agent.replay_spec()
  whole = memory.agent.replay_spec()
  assert (part.capacity, part.min_size) == (whole.capacity // 2, whole.min_size // 2)
  assert part.ratio == whole.ratio


def test_shards_have_ports_in_a_row_or_any_free_ones():
  assert sizes.replay_port(_config(replay={'port': 0}), 1) == 0
  assert [sizes.replay_port(_config(replay={'port': 7000}), i) for i in range(2)] == [7000, 7001]
