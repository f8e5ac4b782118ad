"""What a worker tells the server of itself."""

from __future__ import annotations

from seed_acme.acting import activity
from seed_acme.configs import registry
from seed_acme.programs.nodes import actor_worker
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
