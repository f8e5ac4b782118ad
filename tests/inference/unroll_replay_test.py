"""The key property of recurrent replay: replaying an unroll gives the outputs stored in it.

Real networks behind a real server, scripted environments out of phase, restarts within unrolls.
"""

from __future__ import annotations

import collections
from typing import NamedTuple

import numpy as np
import pytest
import tree

from seed_acme import types
from seed_acme.envs import vector
from seed_acme.inference import server as server_lib
from seed_acme.inference import server_statistics
from seed_acme.progress import counting
from tests import scripted_environments

pytestmark = pytest.mark.timeout(120)

TOLERANCE = 1e-5
EPISODE_LENGTHS = ((3, 7, 1), (1,), (12, 2), (30, 4, 9), (200,), (6, 5))


class _RandomObservations(scripted_environments.ScriptedEnvironment):
  """An environment whose observations are unique, so that rows can be recognised."""

  def __init__(self, seed: int, episode_lengths: tuple[int, ...]):
    super().__init__(seed, episode_lengths)
    self._random = np.random.default_rng(seed)

  def _reward(self) -> float:
    return float(self._random.normal())

  def _observation(self) -> np.ndarray:
    return self._random.normal(size=2).astype(np.float32)


class _Row(NamedTuple):
  """A row as the environment produced it, and the action that the server chose."""

  step_type: int
  reward: float
  observation: tuple[float, ...]
  action: int


class _Group:
  """Environments with given ids; it records every row by (env_id, run_id)."""

  def __init__(self, env_ids: list[int]):
    self.env_ids = np.array(env_ids, np.int32)
    self.rows: dict[tuple[int, int], list[_Row]] = collections.defaultdict(list)
    self._num_runs = 0
    self.restart()

  def restart(self) -> None:
    self._num_runs += 1
    self._number = 0
    self._run_ids = self.env_ids.astype(np.int64) + 1000 * self._num_runs
    self._environment = vector.VectorOfEnvironments(
      [
        _RandomObservations(100 * self._num_runs + i, EPISODE_LENGTHS[i % len(EPISODE_LENGTHS)])
        for i in self.env_ids.tolist()
      ],
      'scripted',
    )
    self._timestep = self._environment.reset()

  def request(self) -> types.ActorRequest:
    return types.ActorRequest(self._number, self.env_ids, self._run_ids, self._timestep)

  def act(self, actions: np.ndarray) -> None:
    step = self._timestep
    for i, key in enumerate(zip(self.env_ids.tolist(), self._run_ids.tolist())):
      self.rows[key].append(
        _Row(
          int(step.step_type[i]),
          float(step.reward[i]),
          tuple(step.observation[i].tolist()),
          int(actions[i]),
        )
      )
    self._timestep = self._environment.step(actions)
    self._number += 1


class _Sink:
  def __init__(self) -> None:
    self.unrolls: list[types.Unroll] = []  # one environment each

  def has_room(self) -> bool:
    return True

  def put(self, env_ids: np.ndarray, unrolls: types.Unroll) -> None:
    for k in range(unrolls.policy_version.shape[0]):
      self.unrolls.append(tree.map_structure(lambda x: np.copy(x[k]), unrolls))  # noqa: B023


class _Played(NamedTuple):
  unrolls: list[types.Unroll]
  rows: dict[tuple[int, int], list[_Row]]
  counts: counting.Counts


def play(acting, unroll_length: int, overlap: int, num_rounds: int) -> _Played:
  sink, counters = _Sink(), counting.Counters()
  server = server_lib.InferenceServer(
    spec=acting.spec,
    environment_name='rig',
    policy=acting.policy,
    num_training=6,
    num_environments=6,
    unroll_length=unroll_length,
    overlap=overlap,
    batch_size=6,
    seed=1,
    sink=sink,
    counters=counters,
    quota=None,
    statistics=server_statistics.ServerStatistics(6),
  )
  groups = [_Group([0, 1]), _Group([4, 2, 3]), _Group([5])]
  for i in range(num_rounds):
    # Different speeds, so that the environments get out of phase; most batches are padded.
    acting_now = [g for g, group in enumerate(groups) if g == 0 or i % (g + 1)]
    if i % 3 == 0:
      acting_now.reverse()
    if i in (7, num_rounds // 2):
      groups[0].restart()
    if i == num_rounds // 2 + 5:
      groups[1].restart()
    replies = server.step([groups[g].request() for g in acting_now])
    for g, actions in zip(acting_now, replies):
      groups[g].act(actions)
  rows = {key: run for group in groups for key, run in group.rows.items()}
  return _Played(sink.unrolls, rows, counters.snapshot())


def num_padding(unroll: types.Unroll) -> int:
  """Returns the number of padding rows at the head: LAST and zero."""
  is_real = (unroll.inputs.observation != 0).any(axis=1)
  number = int(np.argmax(is_real))
  assert is_real[number:].all()
  assert (unroll.inputs.step_type[:number] == types.LAST).all()
  assert number == 0 or unroll.inputs.step_type[number] == types.FIRST
  return number


@pytest.fixture(
  scope='module',
  params=[('none', 5, 0), ('none', 20, 7), ('lstm', 20, 0), ('lstm', 20, 1), ('lstm', 5, 12)],
  ids=lambda p: f'{p[0]}-length{p[1]}-overlap{p[2]}',
)
def played(request, acting):
  core, unroll_length, overlap = request.param
  num_rounds = 2 * (3 * unroll_length + overlap + 20)
  record = play(acting(core), unroll_length, overlap, num_rounds)
  assert len(record.unrolls) >= 12
  return acting(core), unroll_length, overlap, record


@pytest.mark.slow
def test_replaying_an_unroll_from_its_initial_state_gives_what_it_stored(played):
  acting, _, overlap, record = played
  batch = tree.map_structure(lambda *leaves: np.stack(leaves, axis=1), *record.unrolls)
  initial_state = tree.map_structure(
    lambda *leaves: np.stack(leaves), *[u.initial_state for u in record.unrolls]
  )
  prediction, _ = acting.network.unroll(batch.inputs, initial_state)
  is_real = np.stack(
    [np.arange(u.policy_version.size) >= num_padding(u) for u in record.unrolls], axis=1
  )
  assert is_real[overlap:].all()
  stored = batch.outputs.prediction
  for name in ('policy_params', 'value'):
    found, wanted = getattr(prediction, name).numpy(), getattr(stored, name)
    np.testing.assert_allclose(found[is_real], wanted[is_real], rtol=0, atol=TOLERANCE)
    assert np.ptp(wanted[is_real]) > 0.1  # it is not constant


def test_the_rows_are_those_that_were_played_each_transition_once(played):
  _, unroll_length, overlap, record = played
  place = {
    row.observation: (key, t) for key, run in record.rows.items() for t, row in enumerate(run)
  }
  covered: dict[tuple[int, int], list[int]] = collections.defaultdict(list)
  for unroll in record.unrolls:
    assert unroll.policy_version.shape == (overlap + unroll_length + 1,)
    skipped = num_padding(unroll)
    observations = [tuple(x) for x in unroll.inputs.observation.tolist()]
    key, start = place[observations[skipped]]
    run = record.rows[key]
    previous = run[start - 1] if start else None
    for t, row in enumerate(run[start : start + len(observations) - skipped], start=skipped):
      is_first = row.step_type == types.FIRST
      assert observations[t] == row.observation  # from the same run, without a gap
      assert unroll.inputs.step_type[t] == row.step_type
      assert unroll.inputs.reward[t] == (0 if is_first else np.float32(row.reward))
      assert unroll.inputs.previous_action[t] == (0 if is_first else previous.action)
      assert unroll.outputs.action[t] == row.action
      assert unroll.policy_version[t] == 3
      previous = row
    first = start - skipped + overlap  # row of the run where the loss part begins
    covered[key].append(first)
  for key, run in record.rows.items():
    # From the first row on without gaps, up to where a restart or the end cut it off.
    num_unrolls = (len(run) - 1) // unroll_length
    assert sorted(covered[key]) == [k * unroll_length for k in range(num_unrolls)], key
    assert covered[key] == sorted(covered[key])


def test_unrolls_that_follow_each_other_share_overlap_plus_one_rows(played):
  _, _, overlap, record = played
  place = {row.observation: key for key, run in record.rows.items() for row in run}
  by_run: dict[tuple[int, int], list[types.Unroll]] = collections.defaultdict(list)
  for unroll in record.unrolls:
    by_run[place[tuple(unroll.inputs.observation[-1].tolist())]].append(unroll)
  num_pairs = 0
  for unrolls in by_run.values():
    for earlier, later in zip(unrolls, unrolls[1:]):
      for name in ('inputs', 'outputs', 'policy_version'):
        tree.map_structure(
          lambda a, b: np.testing.assert_array_equal(a[-overlap - 1 :], b[: overlap + 1]),
          getattr(earlier, name),
          getattr(later, name),
        )
      num_pairs += 1
  assert num_pairs >= 6


def test_the_steps_that_count_are_the_unmasked_transitions(played):
  acting, unroll_length, _, record = played
  expected = 0
  for run in record.rows.values():
    whole = (len(run) - 1) // unroll_length * unroll_length
    expected += sum(row.step_type != types.LAST for row in run[:whole])
  assert record.counts.agent_steps == expected
  assert record.counts.frames == expected * acting.spec.frames_per_step
  assert record.counts.episodes == sum(
    row.step_type == types.LAST for run in record.rows.values() for row in run
  )
