"""The cluster file: its contents, error messages, and its meaning on this host."""

import dataclasses
import io
import json
import socket

import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs.building import shared_settings
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.cluster import host as cluster_host
from seed_acme.programs.cluster import progress as cluster_progress

TOKEN = 'a-token-of-the-run'
GOOD = {'learner': '10.0.0.1:8000', 'actors': 2, 'token': TOKEN}


@pytest.fixture
def write(tmp_path):
  path = tmp_path / 'cluster.json'

  def write_file(value):
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    path.chmod(0o600)
    return str(path)

  return write_file


@pytest.fixture
def load(write):
  return lambda **changes: cluster_file.load(write({**GOOD, **changes}))


def test_what_it_says(load, tmp_path):
  cluster = load(listen='0.0.0.0:9000', replay='[fe80::1]:8001', actors=['a', '10.0.0.3'])
  assert (cluster.learner, cluster.listen) == ('10.0.0.1:8000', '0.0.0.0:9000')
  assert cluster.replay == '[fe80::1]:8001' and cluster.actors == ('a', '10.0.0.3')
  assert load().listen == '10.0.0.1:8000' and load().replay is None
  assert load().actors == ('', '')


def test_whom_the_fence_admits(load):
  several = {
    'learner': ['10.0.0.1:8000', 'second:8000'],
    'exchange': ['10.0.0.1:8002', '10.1.0.2:8002'],
    'replay': '[fe80::1]:8001',
    'actors': ['10.0.0.3', '10.0.0.4'],
  }
  nodes = ('10.0.0.1', 'second', '10.1.0.2', 'fe80::1')  # actors have the token
  assert load(**several).admitted() == nodes
  assert load(**several, admit=['desk', '[fe80::9]']).admitted() == (*nodes, 'desk', 'fe80::9')
  assert load().admitted() == ('10.0.0.1',)
  assert load(fence=False).admitted() is None


def test_the_token_comes_from_the_file_another_file_or_the_environment(
  write, tmp_path, monkeypatch
):
  nodes = {'learner': 'a:1', 'actors': 1}
  (tmp_path / 'secret').write_text(f'{TOKEN}\n')
  (tmp_path / 'secret').chmod(0o600)
  monkeypatch.setenv('THE_TOKEN', TOKEN)
  for source in (
    {'token': TOKEN},
    {'token_file': 'secret'},
    {'token_variable': 'THE_TOKEN'},
    {'token_file': str(tmp_path / 'secret')},
  ):
    cluster = cluster_file.load(write({**nodes, **source}))
    assert cluster.token == TOKEN and not cluster.has_open_token
    assert TOKEN not in repr(cluster)


def test_a_token_that_everybody_can_read_is_noticed(load, tmp_path):
  path = tmp_path / 'cluster.json'
  load()
  path.chmod(0o644)
  assert cluster_file.load(str(path)).has_open_token


@pytest.mark.parametrize(
  'changes, words',
  [
    ({'learner': None}, ['"learner"']),
    ({'learner': 'host'}, ['learner', "'host'", 'HOST:PORT']),
    ({'learner': 'host:99999'}, ['learner', '99999']),
    ({'learner': 8000}, ['learner', '8000']),
    ({'listen': ':8000'}, ['listen', "':8000'"]),
    ({'replay': 'a b:1'}, ['replay', "'a b:1'"]),
    ({'actors': 0}, ['actors', '0']),
    ({'actors': 2**70}, ['actors', '1 to 65535']),
    ({'actors': 65_536}, ['actors', '65536']),
    ({'actors': True}, ['actors', 'true']),
    ({'actors': []}, ['actors', '[]']),
    ({'actors': ['a', 3]}, ['actors']),
    ({'actors': None}, ['actors', 'missing']),
    ({'admit': '10.0.0.9'}, ['admit', '10.0.0.9', 'list']),
    ({'admit': ['10.0.0.9', 3]}, ['admit', 'list']),
    ({'admit': ['']}, ['admit', 'list']),
    ({'admit': ['10.0.0.9:8000']}, ['admit', '10.0.0.9:8000', 'without a port']),
    ({'admit': ['10.0.0.0/8']}, ['admit', '10.0.0.0/8', 'a host alone']),
    ({'fence': 'no'}, ['fence', 'no', 'true or false']),
    ({'fence': False, 'admit': ['10.0.0.9']}, ['admit', 'fence', 'leave one out']),
    ({'actor': 2}, ["'actor'", 'did you mean actors?']),
    ({'token': 'short'}, ['token', '16', 'openssl']),
    ({'token': 'spaces in the token'}, ['token', '16']),
    ({'token': 'a token with \u00e9 in it'}, ['token', 'ASCII']),
    ({'token': ['x']}, ['token', 'text']),
    ({'token_file': 'also'}, ['exactly one', 'token, token_file']),
  ],
)
def test_what_is_wrong_is_named(load, changes, words):
  with pytest.raises(types.UserError) as error:
    load(**changes)
  for word in ('cluster.json', *words):
    assert word in str(error.value)
  assert len(str(error.value).splitlines()) == 1
  assert 'short' not in str(error.value) and 'spaces in' not in str(error.value)


def test_files_that_cannot_be_read(write, tmp_path):
  for path in (tmp_path / 'none.json', tmp_path):
    with pytest.raises(types.UserError, match=f'cannot read the cluster file {path}'):
      cluster_file.load(str(path))
  nodes = {'learner': 'a:1', 'actors': 1}
  for content, word in (
    ('{"learner": ', 'JSON'),
    ('[]', 'no object'),
    (nodes, 'has none'),
    ({**nodes, 'token_file': 'gone'}, 'gone'),
    ({**nodes, 'token_file': 'to\0ken'}, 'null byte'),
    ({**nodes, 'token_file': 300 * 'x'}, 'File name too long'),
    ({**nodes, 'token_variable': 'TO\0KEN'}, 'is not set'),
    ({**nodes, 'token_variable': 'GONE'}, 'GONE'),
  ):
    with pytest.raises(types.UserError, match=word):
      cluster_file.load(write(content))


class TestWithCluster:
  """The configuration of a node."""

  @pytest.fixture
  def base(self):
    return registry.load('catch_vtrace')

  def test_addresses_and_the_number_of_actors_are_the_files(self, base, load):
    cluster = load(actors=5, listen='0.0.0.0:9000')
    learner = cluster_file.with_cluster(base, (), cluster, 'learner')
    actor = cluster_file.with_cluster(base, (), cluster, 'actor')
    assert learner.num_actors == actor.num_actors == 5
    assert (learner.transport.host, learner.transport.port) == ('0.0.0.0', 9000)
    assert (actor.transport.host, actor.transport.port) == ('10.0.0.1', 8000)
    assert not learner.replay.separate_process and learner.checkpoint.replay

  def test_replay_elsewhere_is_not_saved_and_only_its_own_node_takes_the_port(self, base, load):
    cluster = load(replay='10.0.0.9:8001')
    made = {
      role: cluster_file.with_cluster(base, (), cluster, role)
      for role in ('learner', 'replay', 'actor')
    }
    assert all(c.replay.separate_process and not c.checkpoint.replay for c in made.values())
    assert [made[role].replay.port for role in made] == [0, 8001, 0]

  def test_nodes_wait_longer_than_processes_unless_told_how_long(self, base, load):
    wait = lambda seconds: dataclasses.replace(
      base, actor=dataclasses.replace(base.actor, connect_timeout_s=seconds)
    )
    field = 'actor.connect_timeout_s'
    for config, overridden, seconds in (
      (base, (), 600),
      (wait(5.0), (), 5),
      (wait(5.0), (field,), 5),
      (base, (field,), 60),
    ):
      node = cluster_file.with_cluster(config, overridden, load(), 'actor')
      assert node.actor.connect_timeout_s == seconds

  def test_the_number_of_actors_may_be_said_twice_if_it_is_the_same(self, base, load):
    config = dataclasses.replace(base, num_actors=3)
    cluster = load(actors=3)
    assert cluster_file.with_cluster(config, {'num_actors'}, cluster, 'actor').num_actors == 3

  @pytest.mark.parametrize(
    'change, words',
    [
      ({'num_actors': 7}, ['num_actors=7', 'has 2']),
      ({'transport.kind': 'courier'}, ['courier', 'listens', 'grpc']),
      ({'transport.port': 8000}, ['transport.host and port', '"listen"']),
      ({'replay.separate_process': True}, ['separate_process', '"replay"']),
    ],
  )
  def test_contradictions_are_refused(self, base, load, change, words):
    [(name, value)] = change.items()
    group, _, field = name.rpartition('.')
    part = {field: value}
    if group:
      part = {group: dataclasses.replace(getattr(base, group), **part)}
    with pytest.raises(types.UserError) as error:
      cluster_file.with_cluster(dataclasses.replace(base, **part), {name}, load(), 'learner')
    for word in words:
      assert word in str(error.value)

  def test_the_port_of_a_replay_node_is_given_by_the_file(self, base, load):
    cluster = load(replay='10.0.0.2:8001')
    with pytest.raises(types.UserError, match='replay.port is given by .* change "replay" there'):
      cluster_file.with_cluster(base, {'replay.port'}, cluster, 'replay')


class TestHost:
  """The checks that depend on the host."""

  def test_an_address_of_this_host_is_fine(self, load):
    for listen in ('127.0.0.1:0', 'localhost:0', '0.0.0.0:0'):
      # Port 0 is not meant for cluster files, but it is always free.
      cluster_host.check_listens(dataclasses.replace(load(), listen=listen))

  def test_ipv6_is_listened_to_beside_ipv4_only(self, load):
    with pytest.raises(types.UserError, match=r'\[::1\] alone.*"0.0.0.0:8000"'):
      cluster_host.check_listens(load(learner='[::1]:8000'))

  def test_an_address_of_another_host_is_refused_with_the_way_out(self, load):
    with pytest.raises(types.UserError, match=r'203.0.113.7 is no address of this host.*"listen"'):
      cluster_host.check_listens(load(learner='203.0.113.7:8000'))

  def test_a_name_that_only_this_host_takes_for_itself_is_refused(self, load, monkeypatch):
    monkeypatch.setattr(
      socket,
      'getaddrinfo',
      lambda *_, **__: [(socket.AF_INET, socket.SOCK_STREAM, 6, '', ('127.0.1.1', 0))],
    )
    with pytest.raises(types.UserError, match='means 127.0.1.1 on this host.*"listen"'):
      cluster_host.check_listens(load(learner='gpu-host:8000'))

  def test_a_name_that_nobody_knows_is_refused(self, load):
    with pytest.raises(types.UserError, match='nowhere.invalid is unknown here'):
      cluster_host.check_listens(load(learner='nowhere.invalid:8000'))

  def test_a_port_in_use_is_refused(self, load):
    with socket.create_server(('127.0.0.1', 0)) as taken:
      port = taken.getsockname()[1]
      with pytest.raises(types.UserError, match=f'127.0.0.1:{port} .Address already in use'):
        cluster_host.check_listens(load(learner=f'127.0.0.1:{port}'))

  def test_a_port_of_the_replay_node_or_of_the_exchange_in_use_is_named(self, load):
    with socket.create_server(('127.0.0.1', 0)) as taken:
      port = taken.getsockname()[1]
      with pytest.raises(types.UserError, match=f'port {port} of "replay" .Address already in use'):
        cluster_host.check_port(load(), 'replay', f'127.0.0.1:{port}')
      several = load(
        learner=['127.0.0.1:8000', '127.0.0.1:8010'],
        exchange=[f'127.0.0.1:{port}', '127.0.0.1:8011'],
      )
      with pytest.raises(types.UserError, match=f'port {port} of "exchange" .Address already'):
        cluster_host.check_listens(several, 0)

  def test_the_actor_of_this_host_is_found_by_name_or_address(self, load):
    for own in ('127.0.0.1', socket.gethostname().upper()):
      assert cluster_host.own_index(load(actors=['elsewhere', own, 'there']), 3) == 1
    assert cluster_host.own_index(load(actors=1), 1) == 0

  @pytest.mark.parametrize(
    'actors, words',
    [
      (3, 'Give --index, 0 ... 2'),
      (['127.0.0.1', 'elsewhere', '127.0.0.1'], 'actors 0, 2 .* each with its --index'),
      (['elsewhere', 'there', 'nowhere'], 'none of the hosts .* --index'),
    ],
  )
  def test_an_actor_that_is_not_told_by_its_host_needs_an_index(self, load, actors, words):
    with pytest.raises(types.UserError, match=words):
      cluster_host.own_index(load(actors=actors), 3)


def test_settings_that_nodes_share():
  config = registry.load('catch_r2d2')
  actor, replay = shared_settings.of('actor', config), shared_settings.of('replay', config)
  assert {'seed', 'environment.id', 'num_actors', 'actor.environment_groups'} <= set(actor)
  assert {'agent.replay_capacity', 'network.core_size', 'environment.id'} <= set(replay)
  assert not any('optimizer' in name or 'connect_timeout' in name for name in {**actor, **replay})
  assert not any(name.startswith('agent') for name in actor)
  assert shared_settings.by_kind(config) == {'actor': actor, 'replay': replay}


def test_the_progress_says_which_actors_come_and_go():
  now, out = [100.0], io.StringIO()
  progress = cluster_progress.ClusterProgress(out, clock=lambda: now[0])

  def show(*connected, status='running'):
    progress.update(
      {
        'status': status,
        'agent_steps': 1,
        'total_steps': 2,
        'actors': [{'is_connected': c, 'rows': 0} for c in connected],
      }
    )

  show(False, False)
  show(True, False)
  show(True, True)
  show(True, False)
  now[0] += 31
  show(True, True)
  show(False, False, status='finished')
  lines = [line for line in out.getvalue().splitlines() if 'steps' not in line]
  assert lines == [
    'actor/0 connected (1 of 2 connected)',
    'actor/1 connected (2 of 2 connected)',
    'actor/1 lost (1 of 2 connected)',
    'actor/1 connected again, after 31 s (2 of 2 connected)',
  ]
