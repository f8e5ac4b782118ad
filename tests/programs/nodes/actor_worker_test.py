"""What a worker tells the server of itself."""

from __future__ import annotations

import dataclasses
import json
import pathlib

from seed_acme.acting import activity
from seed_acme.configs import registry
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
    registry.load('catch_vtrace'),
    0,
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
  spec = actor_worker.WorkerSpec(
    config=config,
    run_dir=run_directory.RunDirectory(pathlib.Path('/runs/x'), 'gs://bucket/x'),
    index=3,
    start=wire.Start(5, 6),
    address='host:1',
    token='secret',
    is_beside_learner=True,
    report_fd=7,
    activity_fd=8,
  )
  text = spec.dumps()
  assert 'seed_acme.agents' not in text
  told = actor_worker.WorkerSpec.loads(text)
  assert told.config.actor.python == ''  # it is there already
  assert dataclasses.replace(told, config=config) == spec
  for name in ('environment', 'seed', 'num_actors', 'environments_per_actor', 'transport'):
    assert getattr(told.config, name) == getattr(config, name)
  json.loads(text)
