"""The worker's arguments and its end by signals."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import signal

import pytest

from seed_acme import core
from seed_acme import types
from seed_acme.acting import activity
from seed_acme.configs import registry
from seed_acme.envs import checked
from seed_acme.programs.building import sections
from seed_acme.programs.nodes import actor_worker
from seed_acme.storage import run_directory
from seed_acme.transport import patience
from seed_acme.transport import transports
from seed_acme.transport import wire


def test_a_worker_greets_with_its_start(monkeypatch):
  starts = []
  monkeypatch.setattr(transports, 'connect', lambda *arguments: starts.append(arguments[-1]))
  start = wire.Start(joined=7, number=3)
  actor_worker.make_remote_actor(
    sections.split(registry.load('catch_vtrace')).actors[0],
    start,
    'nowhere',
    'token',
    patience.on_other_hosts(0.0),
    activity.Activity(),
  )
  assert starts and set(starts) == {start}


def test_a_greeting_that_the_learner_refuses_is_wrong_input(monkeypatch):
  def refuse(*_):
    raise core.Refused('the environments differ')

  monkeypatch.setattr(transports, 'connect', refuse)
  with pytest.raises(types.UserError, match='the environments differ'):
    actor_worker.make_remote_actor(
      sections.split(registry.load('catch_vtrace')).actors[0],
      wire.Start(),
      'nowhere',
      'token',
      patience.on_other_hosts(0.0),
      activity.Activity(),
    )


def test_what_a_worker_is_told_is_plain_text_and_names_no_agent_of_the_users():
  config = dataclasses.replace(
    registry.load('catch_vtrace'),
    actor=dataclasses.replace(registry.load('catch_vtrace').actor, python='/other/python'),
  )
  of_actor = sections.split(config).actors[1]
  spec = actor_worker.WorkerSpec(
    sections=of_actor,
    run_dir=run_directory.RunDirectory(pathlib.Path('/runs/x'), 'gs://bucket/x'),
    start=wire.Start(5, 6),
    address='host:1',
    token='secret',
    first_wait_s=math.inf,
    report_fd=7,
    activity_fd=8,
  )
  text = spec.dumps()
  assert 'seed_acme.agents' not in text
  told = actor_worker.WorkerSpec.loads(text)
  assert told.sections.actor.python == ''  # the worker already runs under it
  actor = dataclasses.replace(told.sections.actor, python='/other/python')
  with_python = dataclasses.replace(told.sections, actor=actor)
  assert dataclasses.replace(told, sections=with_python) == spec
  json.loads(text)


@pytest.fixture
def handlers():
  """Puts the handlers of signals back, which a worker replaces."""
  before = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
  yield
  for number, handler in before:
    signal.signal(number, handler)


@pytest.mark.parametrize('is_lost', [False, True])
def test_environments_of_a_worker_that_never_connects_are_closed(
  monkeypatch, tmp_path, handlers, is_lost
):
  """They are closed after the end was reported, as those of an actor that was completed."""
  closed = []
  monkeypatch.setattr(checked.CheckedEnvironment, 'close', lambda its: closed.append(its))

  def connect(*_):
    if is_lost:
      raise core.ServerLost('nobody answers')
    os.kill(os.getpid(), signal.SIGTERM)

  monkeypatch.setattr(transports, 'connect', connect)
  spec = actor_worker.WorkerSpec(
    sections=sections.split(registry.load('catch_vtrace')).actors[0],
    run_dir=run_directory.RunDirectory(tmp_path),
    start=wire.Start(),
    address='nowhere',
    token='token',
    first_wait_s=0.0,
    report_fd=-1,
    activity_fd=-1,
  )
  closing = contextlib.ExitStack()
  with pytest.raises(core.ServerLost) if is_lost else contextlib.nullcontext():
    assert actor_worker.run(spec, activity.Activity(), closing)  # it was SIGTERM
  assert closed == []
  closing.close()
  assert len(closed) == 1


@pytest.mark.parametrize('is_over', [False, True])
def test_sigterm_that_comes_while_the_worker_ends_is_an_end_by_sigterm(monkeypatch, is_over):
  """SIGTERM may come twice, to a process group and from the supervisor, or just as the run ends."""
  set_handler = signal.signal
  before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]

  def send_first(number, handler):
    if number == signal.SIGTERM and handler == signal.SIG_IGN:
      monkeypatch.setattr(signal, 'signal', set_handler)
      os.kill(os.getpid(), signal.SIGTERM)
    return set_handler(number, handler)

  def act(*_):
    monkeypatch.setattr(signal, 'signal', send_first)
    if not is_over:
      os.kill(os.getpid(), signal.SIGTERM)

  monkeypatch.setattr(actor_worker, '_act', act)
  try:
    assert actor_worker.run(None, None, None)
  finally:
    for number, handler in zip((signal.SIGTERM, signal.SIGINT), before):
      set_handler(number, handler)
