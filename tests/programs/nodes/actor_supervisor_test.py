"""An actor's node: outlives its learner on a host of its own, and reports its worker's failures."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import pathlib
import threading
from typing import Any

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme.configs import registry
from seed_acme.envs import registry as environments
from seed_acme.envs.interpreters import interpreter
from seed_acme.inference import batching
from seed_acme.programs.building import sections
from seed_acme.programs.nodes import actor_supervisor
from seed_acme.programs.nodes import end_notice
from seed_acme.programs.nodes import lives
from seed_acme.programs.nodes import node as node_lib
from seed_acme.programs.system import processes
from seed_acme.storage import run_directory
from seed_acme.transport import joining
from tests import ports

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(300)]

_HANG_S = 60.0
_NARROW: dict[str, Any] = {'rows': 5, 'columns': 10}  # a board of as many cells as the usual one


def _config(settings: dict[str, Any]) -> config_lib.ExperimentConfig:
  base = registry.load('catch_vtrace')
  return dataclasses.replace(
    base,
    num_actors=1,
    environments_per_actor=2,
    num_evaluation_environments=0,
    environment=dataclasses.replace(base.environment, settings=settings),
    actor=dataclasses.replace(base.actor, connect_timeout_s=_HANG_S),
    transport=dataclasses.replace(base.transport, kind='grpc', host='127.0.0.1'),
  )


def _answer(settings: dict[str, Any], port: int, is_over: Callable[[set[int]], bool]) -> set[int]:
  """Answers actors as a learner does, until `is_over` of the run ids that it has seen, and returns
  these."""
  config = _config(settings)
  learner = sections.split(config).learners[0]
  batcher = batching.Batcher(2, 0.0, lambda: True, lambda request: False)
  spec = environments.environment_spec(config.environment)
  desk = end_notice.make_desk(learner, 'token', lambda env_id: batcher, spec)
  members = joining.Members(learner.shared, 0)
  server = end_notice.make_transport(learner, desk, port, members)
  server.start()
  seen: set[int] = set()
  while not is_over(seen):
    for pending in batcher.next_batch(0.1):
      seen.update(pending.request.run_ids.tolist())
      pending.answer(np.zeros(pending.request.env_ids.size, np.int32))
  batcher.close()
  server.stop()
  return seen


def _outlive(folder: pathlib.Path, settings: dict[str, Any]) -> tuple[list[set[int]], Any]:
  """Lets an actor with the narrow board act for one learner, and then for that of a run with these
  settings; returns the run ids that each has seen, and how the actor's node failed, if it did."""
  port, stop, has_ended = ports.unused(), threading.Event(), threading.Event()
  run, life = run_directory.create(folder), lives.OnOwnHost(stop, None)
  node = node_lib.Node(
    sections.split(_config(_NARROW)).actors[0],
    node_lib.Links('token', f'127.0.0.1:{port}'),
    run,
    life,
  )
  seen = []

  def answer() -> None:
    seen.append(_answer(_NARROW, port, bool))
    seen.append(_answer(settings, port, lambda ids: bool(ids) or has_ended.is_set()))
    stop.set()

  learners = threading.Thread(target=answer, daemon=True)
  learners.start()
  failure = None
  try:
    life.actor(node)
  except SystemExit:
    failure = processes.read_failure(run)
  has_ended.set()
  learners.join(_HANG_S)
  assert not learners.is_alive()
  return seen, failure


def test_the_learner_of_another_run_refuses_it_and_learns_nothing_from_it(tmp_path):
  """The specifications of the two environments are the same, so only the settings differ."""
  [first, second], failure = _outlive(tmp_path / 'run', {})
  assert first and not second
  assert failure['is_user_error'] and failure['message'] == (
    "environment.settings.columns is 10, the learner's absent; environment.settings.rows is 5, "
    "the learner's absent: start every node with the same configuration and cluster file"
  )


def test_its_learner_s_successor_gets_new_episodes_from_it(tmp_path):
  [first, second], failure = _outlive(tmp_path / 'run', _NARROW)
  assert failure is None and first and second and first.isdisjoint(second)


def test_failures_that_never_come_in_a_row_are_told_ever_more_rarely(tmp_path, monkeypatch, capfd):
  stop, num_workers = threading.Event(), 0

  def failing(*_: object) -> list[str]:
    nonlocal num_workers
    num_workers += 1
    if num_workers > 102:
      stop.set()
    return ['sh', '-c', 'exit 3']

  monkeypatch.setattr(interpreter, 'command', failing)
  monkeypatch.setattr(actor_supervisor, '_HEALTHY_S', -1.0)  # each has acted for long enough
  monkeypatch.setattr(actor_supervisor, '_POLL_S', 0.01)
  run = run_directory.create(tmp_path / 'run')
  [sections_of_actor] = sections.split(_config({})).actors
  links = node_lib.Links('token', f'127.0.0.1:{ports.unused()}')
  node = node_lib.Node(sections_of_actor, links, run, lives.OnThisMachine(stop))
  actor_supervisor.Supervisor(node).run()
  words = 'actor/0: worker failed (exit code 3), failure 1 of 3 in a row,'
  assert run.notices.read_text().splitlines() == [f'{words} {n} in all' for n in (1, 10, 100)]
  logged = capfd.readouterr().out.splitlines()
  assert logged == [f'{words} {n} in all' for n in range(1, 103)]
