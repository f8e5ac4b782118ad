import dataclasses

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
  ],
)
def test_what_cannot_work_is_refused(config, message):
  with pytest.raises(types.UserError, match=message):
    config_validation.validate(config)


def test_what_can_work_is_not():
  config_validation.validate(_config())
  config_validation.validate(_config('catch_r2d2'))
  config_validation.validate(_config(num_learner_hosts=1, num_actors=1))


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
