"""InferenceServer with a quota: all rows of an update were acted with the weights it starts from.

Handmade scenarios; `strictly_on_policy_play_test` tests properties of any run.
"""

from __future__ import annotations

import numpy as np
import pytest
import tree

from seed_acme import types
from seed_acme.inference import batching

pytestmark = pytest.mark.timeout(240)

F, L = types.FIRST, types.LAST
TOLERANCE = 1e-5


@pytest.fixture(name='acting', params=['none', 'lstm'])
def _acting(request, learning):
  return learning(request.param)


@pytest.mark.parametrize('overlap', [0, 2])
def test_a_group_that_has_given_its_unroll_is_held_and_its_unroll_is_there_at_once(
  acting, overlap, strict_rig, make_group
):
  rig, group, other = strict_rig(acting, overlap=overlap), make_group([0, 1]), make_group([2, 3])
  rig.step(group, times=3)
  assert rig.sink.unrolls == []
  previous = [group.rows[i, 1][-1][2] for i in (0, 1)]
  waiting = group.request.timestep
  assert rig.ask(group.request) is None
  assert len(rig.sink.unrolls) == 2
  for i, unroll in enumerate(rig.sink.unrolls):
    is_first = waiting.step_type[i] == F
    last = tree.map_structure(lambda x: x[-1], unroll.inputs)
    assert last.step_type == waiting.step_type[i] and last.discount == waiting.discount[i]
    assert last.reward == (0 if is_first else waiting.reward[i])
    assert last.previous_action == (0 if is_first else previous[i])
    np.testing.assert_array_equal(last.observation, waiting.observation[i])
    for leaf in tree.flatten(unroll.outputs):
      assert not np.any(leaf[-1])  # the row has no outputs yet
      assert np.any(leaf[overlap:-1]) or np.issubdtype(leaf.dtype, np.integer)
  for _ in range(3):  # asked again at each wake-up
    assert rig.ask(group.request) is None
  assert len(rig.sink.unrolls) == 2
  rig.step(other, times=3)  # continues alone
  assert rig.ask(other.request) is None
  assert len(rig.sink.unrolls) == 4


def test_new_weights_answer_the_same_request_as_the_first_row_of_the_next_unroll(
  acting, strict_rig, make_group
):
  rig, group = strict_rig(acting), make_group([0, 1])
  rig.step(group, times=3)
  assert rig.ask(group.request) is None
  held = group.request
  state = tree.map_structure(np.copy, rig.server.slots.state)
  rig.publish(1)
  rig.step(group, times=3)
  assert rig.ask(group.request) is None
  for i, (earlier, later) in enumerate(zip(rig.sink.unrolls[:2], rig.sink.unrolls[2:])):
    assert earlier.policy_version[:-1].tolist() == [0, 0, 0]
    assert later.policy_version[:-1].tolist() == [1, 1, 1]
    np.testing.assert_array_equal(later.inputs.observation[0], held.timestep.observation[i])
    tree.map_structure(
      lambda a, b: np.testing.assert_array_equal(a[-1], b[0]),  # the same row
      earlier.inputs,
      later.inputs,
    )
    row = tree.map_structure(lambda x: x[:1], later.inputs)
    entering = tree.map_structure(lambda x: x[[i]], state)  # noqa: B023
    tree.map_structure(
      lambda a, b: np.testing.assert_array_equal(a, b[0]), later.initial_state, entering
    )
    new, _ = rig.predict(1, row, entering)
    old, _ = rig.predict(0, row, entering)
    for name in ('policy_params', 'value'):
      found = getattr(later.outputs.prediction, name)[0]
      np.testing.assert_allclose(found, getattr(new, name)[0], rtol=0, atol=TOLERANCE)
      assert np.abs(found - getattr(old, name)[0]).max() > 1e-3
    assert later.outputs.action[0] == group.rows[i, 1][3][2]


def test_k_unrolls_an_update_share_their_rows_and_only_the_last_waits(
  acting, strict_rig, make_group
):
  rig, group = strict_rig(acting, unroll_length=3, unrolls_per_update=2), make_group([0, 1])
  rig.step(group, times=6)  # rows 0 ... 5; row 3 ended an unroll, and its action was chosen
  assert len(rig.sink.unrolls) == 2
  assert rig.ask(group.request) is None
  first, second = rig.sink.unrolls[0], rig.sink.unrolls[2]
  tree.map_structure(
    lambda a, b: np.testing.assert_array_equal(a[-1], b[0]),
    (first.inputs, first.outputs),
    (second.inputs, second.outputs),
  )
  assert first.outputs.prediction.value[-1] != 0 == second.outputs.prediction.value[-1]
  assert first.policy_version.tolist() == [0] * 4


def test_a_restarted_actor_of_a_held_group_stays_held_and_starts_cleanly(
  acting, strict_rig, make_group
):
  rig, group = strict_rig(acting, overlap=2), make_group([0, 1])
  rig.step(group, times=3)
  assert rig.ask(group.request) is None
  group.restart()
  assert rig.ask(group.request) is None and rig.ask(group.request) is None
  assert len(rig.sink.unrolls) == 2
  rig.publish(1)
  rig.step(group, times=3)
  assert rig.ask(group.request) is None
  for i, unroll in enumerate(rig.sink.unrolls[2:]):
    assert unroll.inputs.step_type[:3].tolist() == [L, L, F]
    assert unroll.policy_version.tolist()[:-1] == [0, 0, 1, 1, 1]
    assert unroll.inputs.observation[2:5].tolist() == [row[0] for row in group.rows[i, 2]]
    for leaf in tree.flatten(unroll.initial_state):
      assert not leaf.any()


@pytest.mark.parametrize('num_rows', [2, 3])
def test_an_actor_that_restarts_before_it_has_given_its_unroll_begins_it_anew(
  acting, num_rows, strict_rig, make_group
):
  rig, group = strict_rig(acting), make_group([0, 1])
  rig.step(group, times=num_rows)
  group.restart()
  rig.step(group, times=3)
  assert rig.sink.unrolls == []
  assert rig.ask(group.request) is None
  assert [u.inputs.observation[0].tolist() for u in rig.sink.unrolls] == [
    group.rows[i, 2][0][0] for i in (0, 1)
  ]


def test_a_repeated_number_is_answered_with_the_stored_action_even_when_held(
  acting, strict_rig, make_group
):
  rig, group = strict_rig(acting), make_group([0, 1])
  rig.step(group, times=2)
  before = group.request
  actions = rig.ask(before)
  group.answered(actions)
  np.testing.assert_array_equal(rig.ask(before), actions)
  assert rig.ask(group.request) is None
  np.testing.assert_array_equal(rig.ask(before), actions)  # its stream broke before the reply
  assert rig.ask(group.request) is None
  assert len(rig.sink.unrolls) == 2
  rig.publish(1)
  rig.step(group)


def test_a_wrong_number_is_refused_even_when_held(acting, strict_rig, make_group):
  rig, group = strict_rig(acting), make_group([0, 1])
  rig.step(group, times=3)
  assert rig.ask(group.request) is None
  for number in (1, 5):
    assert isinstance(rig.ask(group.request._replace(request_number=number)), batching.Refusal)
  assert rig.ask(group.request) is None


def test_a_wrong_value_finishes_no_unroll(acting, strict_rig, make_group):
  rig, group = strict_rig(acting), make_group([0, 1])
  rig.step(group, times=3)
  timestep = group.request.timestep
  for wrong in (
    timestep._replace(reward=np.full(2, np.nan, np.float32)),
    timestep._replace(discount=np.full(2, 5, np.float32)),
    timestep._replace(step_type=np.full(2, 9, np.uint8)),
  ):
    reply = rig.ask(group.request._replace(timestep=wrong))
    assert isinstance(reply, batching.Refusal) and 'of rig: ' in reply.reason
  assert rig.sink.unrolls == []
  assert rig.ask(group.request) is None
  assert len(rig.sink.unrolls) == 2


@pytest.mark.parametrize('env_ids', [[0, 6], [-1, 0], [0, 0], [3, 4], [4, 3]])
def test_environments_that_are_refused_or_no_group_are_not_held(
  acting, env_ids, strict_rig, make_group
):
  """No request may end the inference thread, or deliver a row twice."""
  rig, group = strict_rig(acting), make_group([0, 1])
  rig.step(group, times=3)
  env_ids = np.array(env_ids, np.int32)
  wrong = group.request._replace(env_ids=env_ids, run_ids=env_ids + np.int64(1000))
  assert not rig.server.hold_back(wrong)
  assert rig.sink.unrolls == []
  assert rig.ask(group.request) is None


def test_evaluation_is_never_held(acting, strict_rig, make_group):
  rig, group, played = strict_rig(acting), make_group([0, 1]), make_group([4, 5])
  rig.step(group, times=3)
  assert rig.ask(group.request) is None
  rig.step(played, times=20)
  assert rig.ask(group.request) is None
  assert len(rig.sink.unrolls) == 2
  assert rig.server.statistics.evaluation_episodes.summary().num_episodes > 0
