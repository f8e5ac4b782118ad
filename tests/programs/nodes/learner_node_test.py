"""The main function of a learner's node."""

import contextlib
import threading
import types as python_types

import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs.nodes import learner_node
from seed_acme.programs.system import processes
from seed_acme.storage import run_directory
from seed_acme.transport import patience


def test_another_host_that_is_lost_while_they_connect_was_only_met(tmp_path, monkeypatch):
  """Such a start is repeated without counting: the other one was about to end."""

  def connect(*_):
    raise types.OtherNodeFailed('learner/1 has died')

  for module, name in (
    (learner_node.descriptors, 'prepare'),
    (learner_node.processes, 'configure_tensorflow'),
    (learner_node.devices, 'configure'),
  ):
    monkeypatch.setattr(module, name, lambda *_: None)
  peers = python_types.SimpleNamespace(connect=connect)
  monkeypatch.setattr(learner_node.peers_lib, 'make', lambda *_: peers)
  config = registry.load('catch_vtrace')
  folder = run_directory.RunDirectory(tmp_path)
  node = python_types.SimpleNamespace(
    name='learner/0',
    sections=python_types.SimpleNamespace(
      learner=config.learner, actor=config.actor, place=python_types.SimpleNamespace(index=0)
    ),
    links=python_types.SimpleNamespace(exchange=('here:1', 'there:1'), replay=()),
    folder=folder,
    life=python_types.SimpleNamespace(
      admitted=(),
      stop=threading.Event(),
      patience=patience.on_other_hosts,
      ended_at_once=lambda _: contextlib.nullcontext(),
    ),
  )
  with pytest.raises(SystemExit):
    learner_node.run(node)
  failure = processes.read_failure(folder)
  assert failure is not None and processes.is_of_another_that_was_met(failure)
