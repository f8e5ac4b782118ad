"""The worker's arguments and its end by signals."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
import signal

import pytest

from seed_acme.acting import activity
from seed_acme.configs import registry
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
