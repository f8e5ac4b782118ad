"""The cluster file of a run with several learner hosts."""

import dataclasses
import json

import pytest

from seed_acme import core
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs.building import sections
from seed_acme.programs.cluster import actor_node
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.cluster import membership

_GOOD = {'learner': '10.0.0.1:8000', 'actors': 2, 'token': 'a-token-of-the-run'}


@pytest.fixture
def load(tmp_path):
  path = tmp_path / 'cluster.json'

  def load_file(**changes):
    path.write_text(json.dumps({**_GOOD, **changes}))
    return cluster_file.load(str(path))

  return load_file


def test_several_learner_hosts(load):
  learners = ['10.0.0.1:8000', '10.0.0.2:8000']
  exchange = ['10.0.0.1:8002', '10.0.0.2:8002']
  cluster = load(learner=learners, exchange=exchange)
  assert (cluster.learner, cluster.learners) == (learners[0], tuple(learners))
  assert cluster.exchange == tuple(exchange)
  assert [cluster.listen_of(i) for i in (0, 1)] == learners
  open_to_all = load(learner=[learners[0], '10.0.0.2:9000'], exchange=exchange, listen='0.0.0.0:1')
  assert [open_to_all.listen_of(i) for i in (0, 1)] == ['0.0.0.0:8000', '0.0.0.0:9000']
  assert load(listen='0.0.0.0:1').listen_of(0) == '0.0.0.0:1'


@pytest.mark.parametrize(
  'changes',
  [
    {'learner': ['a:1', 'b:1']},
    {'learner': ['a:1', 'b:1'], 'exchange': ['a:2']},
    {'exchange': ['a:2']},
  ],
)
def test_learner_hosts_have_an_exchange_each(load, changes):
  with pytest.raises(types.UserError, match='"exchange" has .* one for each of several'):
    load(**changes)


def test_the_file_says_how_many_learner_hosts(load):
  several = load(learner=['a:1', 'b:1'], exchange=['a:2', 'b:2'])
  config = registry.load('catch_r2d2')
  given = cluster_file.with_cluster(config, (), several, 'learner', 1)
  assert given.num_learner_hosts == 2 and not given.checkpoint.replay
  assert (given.transport.host, given.transport.port) == ('b', 1)
  with pytest.raises(types.UserError, match='num_learner_hosts=1 contradicts .* which has 2'):
    cluster_file.with_cluster(config, ('num_learner_hosts',), several, 'learner')


@pytest.mark.parametrize(
  'changes',
  [
    {'learner': ['a:1', 'b:1'], 'exchange': ['a:1', 'b:2']},
    {'learner': ['a:1', 'a:1'], 'exchange': ['a:2', 'b:2']},
    {'learner': 'a:1', 'replay': 'a:1'},
  ],
)
def test_one_address_serves_one_purpose(load, changes):
  with pytest.raises(types.UserError, match='a:1 is given 2 times: give .* a port of its own'):
    load(**changes)


def test_an_actor_fits_its_own_learner_host_only(load):
  """Another host's copy of the file may list the learner hosts in another order, or fewer."""
  several = load(learner=['a:1', 'b:1'], exchange=['a:2', 'b:2'], actors=2)
  config = cluster_file.with_cluster(registry.load('catch_vtrace'), (), several, 'actor')
  split = sections.split(config)
  for learner in split.learners:
    fitting = [actor for actor in split.actors if actor.shared == learner.shared['actor']]
    assert fitting and {actor.place.learner for actor in fitting} == {learner.place.index}
  alone = sections.split(dataclasses.replace(config, num_learner_hosts=1))
  assert alone.actors[0].shared != split.learners[0].shared['actor']


def test_a_refusal_names_the_learner_host_that_refused(load, monkeypatch):
  class Refused:
    def join(self):
      raise core.Refused('seed is 1, the learner has 2')

  monkeypatch.setattr(membership, 'member', lambda *args: Refused())
  several = load(learner=['a:1', 'b:2'], exchange=['a:3', 'b:4'], actors=2)
  config = cluster_file.with_cluster(registry.load('catch_vtrace'), (), several, 'actor')
  with pytest.raises(types.UserError, match='the learner at b:2 refuses this node'):
    actor_node.run(sections.split(config).actors[1], several)


def test_an_environment_of_another_learner_host_has_no_device_here():
  config = dataclasses.replace(registry.load('catch_vtrace'), num_actors=2, num_learner_hosts=2)
  here = layout_lib.Layout.of(config).with_devices(0, ['cpu:0'])
  strange = next(actor for actor in here.actors if actor.learner == 1)
  with pytest.raises(ValueError, match='belongs to learner/1, not to this host'):
    here.device_of(strange.env_ids[0])
