"""InferenceServer with a quota: properties of the unrolls of any run, restarts included."""

from __future__ import annotations

import collections
import threading

import numpy as np
import pytest
import tree

from seed_acme import types
from seed_acme.inference import batching
from seed_acme.inference import thread as thread_lib
from tests.inference import blocking_request

pytestmark = pytest.mark.timeout(240)

L = types.LAST
TOLERANCE = 1e-5


@pytest.fixture(
  scope='module',
  params=[('none', 0, 3, 1), ('lstm', 2, 3, 2), ('lstm', 5, 2, 1), ('lstm', 1, 1, 2)],
  ids=lambda p: '{}-overlap{}-length{}-k{}'.format(*p),
)
def played(request, learning, strict_rig, make_group):
  """Plays updates of two groups at different speeds, with restarts: (rig, groups, updates, ...)."""
  core, overlap, unroll_length, unrolls_per_update = request.param
  rig = strict_rig(learning(core), unroll_length, overlap, unrolls_per_update)
  groups = [make_group([0, 1]), make_group([2, 3])]
  random = np.random.default_rng(3)
  updates: list[list[types.Unroll]] = []
  for i in range(20 * unroll_length * unrolls_per_update):
    for g, group in enumerate(groups):
      if random.random() < 0.3:
        continue
      if i % 17 == 8 + g:
        group.restart()
      actions = rig.ask(group.request)
      if actions is not None:
        group.answered(actions)
    done = sum(map(len, updates))
    if len(rig.sink.unrolls) - done >= unrolls_per_update * rig.num_training:
      updates.append(rig.sink.unrolls[done:])
      rig.publish(len(updates))
  assert len(updates) >= 6
  return rig, groups, updates, (overlap, unroll_length, unrolls_per_update)


@pytest.mark.slow
def test_every_update_has_as_many_unrolls_of_each_environment_all_of_one_version(played):
  _, groups, updates, (overlap, _, unrolls_per_update) = played
  env_id_of = {
    tuple(row[0]): key[0] for group in groups for key, rows in group.rows.items() for row in rows
  }
  for version, unrolls in enumerate(updates):
    env_ids = []
    for unroll in unrolls:
      assert (unroll.policy_version[overlap:-1] == version).all()
      assert (unroll.policy_version[:overlap] <= version).all()
      env_ids.append(env_id_of[tuple(unroll.inputs.observation[overlap].tolist())])
    assert collections.Counter(env_ids) == dict.fromkeys(range(4), unrolls_per_update)


def test_the_rows_are_those_that_were_played_each_transition_once(played):
  _, groups, updates, (overlap, unroll_length, _) = played
  runs = {key: rows for group in groups for key, rows in group.rows.items()}
  place = {tuple(row[0]): (key, t) for key, rows in runs.items() for t, row in enumerate(rows)}
  starts = collections.defaultdict(list)
  for unroll in sum(updates, []):
    key, first = place[tuple(unroll.inputs.observation[overlap].tolist())]
    starts[key].append(first)
    num_padding = max(0, overlap - first)
    assert (unroll.inputs.step_type[:num_padding] == L).all()
    expected = runs[key][first - overlap + num_padding : first + unroll_length]
    for t, (observation, step_type, action) in enumerate(expected, start=num_padding):
      assert unroll.inputs.observation[t].tolist() == observation
      assert unroll.inputs.step_type[t] == step_type
      assert unroll.outputs.action[t] == action
  for found in starts.values():
    assert found == list(range(0, unroll_length * len(found), unroll_length))
  assert len(runs) > 4  # some were restarts


@pytest.mark.slow
def test_replaying_an_unroll_from_its_initial_state_gives_what_it_stored(played):
  """Each row is replayed with the weights of its version; the last row has no outputs."""
  rig, _, updates, _ = played
  unrolls = sum(updates, [])
  batch = tree.map_structure(lambda *leaves: np.stack(leaves), *unrolls)
  state = batch.initial_state
  for t in range(batch.policy_version.shape[1] - 1):
    row = tree.map_structure(lambda x: x[:, t], batch.inputs)  # noqa: B023
    is_real = row.observation.any(axis=1)
    versions, entering = batch.policy_version[:, t], state
    for version in np.unique(versions).tolist():
      prediction, new_state = rig.predict(version, row, entering)
      its = versions == version
      state = tree.map_structure(
        lambda new, old, its=its: np.where(its[:, None], new, old), new_state, state
      )
      for name in ('policy_params', 'value'):
        found = getattr(batch.outputs.prediction, name)[:, t][its & is_real]
        np.testing.assert_allclose(
          getattr(prediction, name)[its & is_real], found, rtol=0, atol=TOLERANCE
        )
  assert np.ptp(batch.outputs.prediction.value[:, :-1]) > 0.1  # it is not constant


def test_steps_and_episodes_are_counted_once(played):
  rig, groups, updates, (overlap, _, _) = played
  handed_on = rig.sink.unrolls
  assert len(handed_on) >= len(sum(updates, []))
  counts = rig.counters.snapshot()
  assert counts.agent_steps == sum(
    int((unroll.inputs.step_type[overlap:-1] != L).sum()) for unroll in handed_on
  )
  assert counts.episodes == sum(
    row[1] == L for group in groups for rows in group.rows.values() for row in rows
  )


@pytest.mark.slow
def test_behind_a_batcher_and_a_thread(learning, strict_rig, make_group):
  """Two actors and a learner wait for each other without a deadlock."""
  rig = strict_rig(learning('none'), unroll_length=4)
  batcher = batching.Batcher(4, 0.005, lambda: True, rig.server.hold_back)
  rig.acting.published.watch(batcher.wake)
  failures: list[BaseException] = []
  thread = thread_lib.InferenceThread(rig.server, batcher, failures.append)

  def act(group):
    batcher.add_caller()
    while True:
      pending = blocking_request.BlockingRequest(group.request, True)
      batcher.submit(pending)
      reply = pending.wait()
      if reply is batching.STOPPED:
        return
      group.answered(reply)

  actors = [threading.Thread(target=act, args=(make_group(ids),)) for ids in ([0, 1], [2, 3])]
  new_unrolls = threading.Semaphore(0)
  put = rig.sink.put
  rig.sink.put = lambda *finished: (put(*finished), new_unrolls.release())
  thread.start()
  for actor in actors:
    actor.start()
  for update in range(10):
    assert new_unrolls.acquire(timeout=60) and new_unrolls.acquire(timeout=60)
    unrolls = rig.sink.unrolls[update * strict_rig.num_training :]
    assert len(unrolls) == strict_rig.num_training  # no more unrolls come before the next weights
    assert all((u.policy_version[:-1] == update).all() for u in unrolls)
    rig.publish(update + 1)
  thread.stop()
  thread.join()
  for actor in actors:
    actor.join()
  rig.acting.published.watch(lambda: None)
  assert failures == []
