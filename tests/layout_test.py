import dataclasses
import json
import pathlib
import pickle

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.programs.building import sections
from seed_acme.programs.front_end import launches


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
  """Returns a configuration with two shards on one host."""
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
  two = layout_lib.Layout.of(_config())
  for how in ('local_mp', 'auto'):
    launches.load(how).refuse(two)
  launches.load('single_process').refuse(layout_lib.Layout.of(_config(num_learner_hosts=1)))
  with pytest.raises(types.UserError, match='needs --launch=local_mp.*single_process set it to 1'):
    launches.load('single_process').refuse(two)


def test_nodes_of_their_own_are_on_this_machine():
  check = lambda **replay: launches.refuse_shards_elsewhere(
    layout_lib.Layout.of(_sharded(replay=replay))
  )
  check()
  check(num_shards=1, separate_process=True)
  with pytest.raises(types.UserError, match=r'replay.num_shards \(2\) with replay.separate_proc'):
    check(separate_process=True)


@pytest.mark.parametrize(
  'num_groups, expected',
  [
    (1, [[range(4)], [range(4, 8)], [range(8, 11)]]),
    (2, [[range(2), range(2, 4)], [range(4, 6), range(6, 8)], [range(8, 11)]]),
  ],
)
def test_the_last_actor_evaluates_and_has_one_group(num_groups, expected):
  layout = layout_lib.Layout.of(
    _config(
      num_learner_hosts=1,
      environments_per_actor=4,
      num_evaluation_environments=3,
      actor=config_lib.ActorConfig(environment_groups=num_groups),
    )
  )
  assert [list(actor.groups) for actor in layout.actors] == expected
  assert [actor.shard for actor in layout.actors] == [0, 0, None]
  assert [layout.actor_of(env_id).index for env_id in (0, 3, 4, 7, 8, 10)] == [0, 0, 1, 1, 2, 2]
  assert (layout.num_training, layout.num_environments) == (8, 11)
  assert layout.num_training_actors == 2
  assert [actor.index for actor in layout.actors_of(0)] == [0, 1]


def test_a_group_has_another_seed_after_a_restart_and_in_another_run():
  layout = layout_lib.Layout.of(_config())
  other_run = dataclasses.replace(layout, seed=layout.seed + 1)
  groups = [actor.groups[0] for actor in layout.actors]
  seeds = {
    layout_lib.group_seed(of.seed, group, n)
    for of in (layout, other_run)
    for group in groups
    for n in (0, 1)
  }
  assert len(seeds) == 8


def test_actors_are_dealt_out_over_hosts_and_then_over_their_devices():
  layout = layout_lib.Layout.of(_config(num_actors=8, environments_per_actor=2))
  assert [actor.learner for actor in layout.actors] == [0, 1] * 4
  for learner in (0, 1):
    layout = layout.with_devices(learner, ['gpu:0', 'gpu:1'])
  assert [layout.device_of(2 * i) for i in range(8)] == [0, 0, 1, 1, 0, 0, 1, 1]
  # Half of the rows of a host's device: 2 actors of 2 environments each.
  assert [device.rows for device in layout.learners[1].devices] == [2, 2]


def test_a_host_draws_and_keeps_its_share():
  config = _config('pendulum_sac', agent={'replay_capacity': 1000, 'replay_min_size': 100})
  layout = layout_lib.Layout.of(config)
  assert [learner.batch_size for learner in layout.learners] == [32, 32]
  [shard] = layout.learners[1].shards
  assert (shard.batch_size, shard.spec.capacity, shard.spec.min_size) == (32, 500, 50)
  # Half of the insertions and half of each update's batch, so the ratio is unchanged.
  assert shard.spec.ratio == config.agent.replay_spec().ratio
  queue = _config(replay={'queue_size': 64})
  assert _first_shard(queue).queue_size == 32
  small = dataclasses.replace(queue.agent, batch_size=12)
  replay = dataclasses.replace(queue.replay, unrolls_per_item=4)
  # 6 unrolls do not divide into items of 4.
  assert _first_shard(dataclasses.replace(queue, agent=small, replay=replay)).unrolls_per_item == 2
  assert _first_shard(dataclasses.replace(queue, num_learner_hosts=1)).queue_size == 64


def _first_shard(config):
  return layout_lib.Layout.of(config).learners[0].shards[0]


def test_actors_are_dealt_out_over_shards():
  config = _sharded(num_actors=4, environments_per_actor=2)
  shards_of = lambda config: layout_lib.Layout.of(config).shards_of(np.arange(8)).tolist()
  assert shards_of(config) == [0, 0, 1, 1, 0, 0, 1, 1]
  hosts = dataclasses.replace(config, num_learner_hosts=2)  # actors 0 and 2 belong to host 0
  assert shards_of(hosts) == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_shard_draws_and_keeps_its_part():
  config = _sharded(agent={'batch_size': 8}, replay={'queue_size': 32, 'unrolls_per_item': 8})
  part = _first_shard(config)
  assert part.batch_size == part.unrolls_per_item == part.writer_backlog == 4
  assert part.queue_size == 16
  replay = dataclasses.replace(config.replay, unrolls_per_item=0)  # a whole batch
  assert _first_shard(dataclasses.replace(config, replay=replay)) == part
  part = _first_shard(dataclasses.replace(config, num_learner_hosts=2))
  assert (part.batch_size, part.queue_size) == (2, 8)
  memory = _sharded('catch_r2d2')
  part, whole = _first_shard(memory).spec, memory.agent.replay_spec()
  assert (part.capacity, part.min_size) == (whole.capacity // 2, whole.min_size // 2)
  assert part.ratio == whole.ratio


def test_a_host_waits_for_its_own_part_of_the_memory():
  config = _sharded('catch_r2d2')
  loops = [
    sections.split(dataclasses.replace(config, num_learner_hosts=n)).learners[0].loop
    for n in (1, 2)
  ]
  assert loops[0].min_unrolls == 2 * loops[1].min_unrolls == config.agent.replay_spec().min_size


def test_shards_have_ports_in_a_row_or_any_free_ones():
  ports = lambda config: [
    [shard.port for shard in learner.shards] for learner in layout_lib.Layout.of(config).learners
  ]
  assert ports(_sharded(replay={'port': 0})) == [[0, 0]]
  assert ports(_sharded(replay={'port': 7000})) == [[7000, 7001]]
  # Other hosts choose theirs.
  assert ports(_sharded(num_learner_hosts=2, replay={'port': 7000})) == [[7000, 7001], [0, 0]]


def test_it_travels_to_another_process_and_shows_the_whole_run():
  layout = layout_lib.Layout.of(
    _config('catch_r2d2', num_actors=4, num_evaluation_environments=2, replay={'num_shards': 2})
  )
  again = pickle.loads(pickle.dumps(layout))
  assert again == layout
  shown = str(again)
  for part in ('learner/1', 'replay/1', 'actor/3', 'actor/4', 'evaluates', 'chosen on the host'):
    assert part in shown
  assert 'gpu:0 (' in str(layout.with_devices(0, ['gpu:0']))


def test_the_command_shows_it_and_starts_nothing(capsys, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  given = ['train', '--show_layout', '--config=catch_vtrace', '--config.num_actors=3']
  assert cli.main(given) == 0
  shown = capsys.readouterr().out
  assert shown.startswith('catch_vtrace: 96 training') and 'actor/2' in shown
  assert cli.main([*given, '--json']) == 0
  assert len(json.loads(capsys.readouterr().out)['actors']) == 3
  assert not list(tmp_path.iterdir())


def test_the_command_refuses_what_the_launch_cannot_do(capsys):
  given = ['train', '--show_layout', '--config.replay.num_shards=2', '--launch=vertex_ai']
  assert cli.main([*given, '--config.replay.separate_process=True']) == 2
  assert 'needs --launch=local_mp' in capsys.readouterr().err


def test_the_docs_show_it_as_it_is_printed(capsys):
  docs = pathlib.Path(__file__).parent.parent / 'docs' / 'architecture.md'
  block = docs.read_text().partition('## The layout of a run')[2]
  typed, _, printed = block.partition('$ seed-acme ')[2].partition('\ncatch_vtrace: ')
  assert cli.main(typed.replace('\\\n', ' ').split()) == 0
  assert capsys.readouterr().out == f'catch_vtrace: {printed.partition("```")[0]}'
