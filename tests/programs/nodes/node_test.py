"""A node's spec, the node in its process, and the answers of its life."""

import dataclasses
import functools
import math
import pathlib
import pickle
import threading

import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.nodes import container_node
from seed_acme.programs.nodes import lives
from seed_acme.programs.nodes import node as node_lib
from seed_acme.storage import run_directory

_FOLDER = run_directory.RunDirectory(pathlib.Path('run'))


@dataclasses.dataclass
class _Later:
  """An address that is known only in the node's process."""

  port: int

  def resolve(self):
    return f'host:{self.port}'


@pytest.fixture(name='sections', scope='module')
def _sections():
  config = dataclasses.replace(
    registry.load('catch_r2d2'), num_evaluation_environments=2, record_every=5
  )
  return sections_lib.split(config)


def _parts(value):
  """Yields the value and everything nested in it."""
  yield value
  inner = ()
  if dataclasses.is_dataclass(value):
    inner = [getattr(value, field.name) for field in dataclasses.fields(value)]
  elif isinstance(value, dict):
    inner = value.values()
  elif isinstance(value, tuple):
    inner = value
  for part in inner:
    yield from _parts(part)


def test_no_node_is_sent_the_whole_configuration(sections):
  for its in (*sections.learners, *sections.replays, *sections.actors):
    assert not any(isinstance(part, config_lib.ExperimentConfig) for part in _parts(its))


def test_an_actor_is_sent_no_agent_and_only_the_one_that_evaluates_films(sections):
  for actor in sections.actors:
    assert b'seed_acme.agents' not in pickle.dumps(actor)
  assert [actor.record_every for actor in sections.actors] == [0] * (len(sections.actors) - 1) + [5]


def test_a_node_finds_the_others_in_its_process(sections):
  links = node_lib.Links('token', _Later(1), (_Later(2),), (_Later(3), _Later(4)))
  life = functools.partial(lives.OnOwnHost, admitted=('10.0.0.1',))
  spec = node_lib.NodeSpec(sections.learners[0], links, _FOLDER, life)
  stop = threading.Event()
  node = pickle.loads(pickle.dumps(spec)).node(stop)
  assert node.links == node_lib.Links('token', 'host:1', ('host:2',), ('host:3', 'host:4'))
  assert node.links.port == 1 and node.name == 'learner/0'
  assert node.sections == sections.learners[0]
  assert node.life.stop is stop and node.life.admitted == ('10.0.0.1',)


@pytest.fixture(name='learner')
def _learner(sections):
  def make(life):
    links = node_lib.Links('token', 'host:1')
    return node_lib.Node(sections.learners[0], links, _FOLDER, life)

  return make


def test_beside_each_other_the_launcher_sees_to_the_others(sections, learner):
  life = lives.OnThisMachine(threading.Event())
  actor = sections.actors[-1]
  node = node_lib.Node(actor, node_lib.Links('token', 'host:1'), _FOLDER, life)
  assert life.admitted == () and math.isinf(life.patience(7.0).first_s)
  assert life.learner_of(node) == f'unix:{pathlib.Path("run").absolute()}/inference.sock'
  assert life.filming(actor) == actor
  with pytest.raises(types.MissingPackage):
    life.greeting(learner(life), types.MissingPackage('no gym'))
  life.tell_absent(lambda stop: pytest.fail('the launcher ends them'))
  life.check_stop()


@pytest.mark.parametrize(
  'make, admitted',
  [
    (functools.partial(lives.OnOwnHost, admitted=('10.0.0.1',)), ('10.0.0.1',)),
    (container_node.InContainer, None),
  ],
)
def test_on_its_own_host_a_node_sees_to_the_others_itself(sections, capsys, make, admitted):
  life, told = make(threading.Event()), []
  actor = sections.actors[-1]
  node = node_lib.Node(actor, node_lib.Links('token', 'host:1'), _FOLDER, life)
  assert life.admitted == admitted and life.patience(7.0).first_s == 7.0
  assert life.learner_of(node) == 'host:1'
  assert life.serve_beside(None, None, None, 1) == []
  assert life.filming(actor) == dataclasses.replace(actor, record_every=0)
  assert 'nothing is filmed (record_every=5)' in capsys.readouterr().out
  life.tell_absent(told.append)
  assert told == [life.stop]
  with pytest.raises(types.OtherNodeFailed, match='another learner host was stopped'):
    life.check_stop()
  life.stop.set()
  life.check_stop()


@pytest.mark.parametrize(
  ('changes', 'has_to_agree'),
  [
    ({'total_steps': 7}, True),
    ({'max_wall_s': 7.0}, True),
    ({'seed': 7}, True),
    ({'checkpoint': config_lib.CheckpointConfig(keep=7)}, False),
    ({'initial_checkpoint': 'runs/latest'}, False),  # the chief's may be given as another path
  ],
)
def test_learner_hosts_agree_on_the_end_of_the_run_and_on_what_is_learnt(changes, has_to_agree):
  """Learning rates are computed on each host, from its own number of steps."""
  config = registry.load('catch_vtrace')
  other = dataclasses.replace(config, **changes)
  [one], [two] = (sections_lib.split(each).learners for each in (config, other))
  assert (one.loop.common != two.loop.common) == has_to_agree
