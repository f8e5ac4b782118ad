"""Faults in the transport of requests and replies between actors and the server."""

from __future__ import annotations

from tests.mutations import record

MUTATIONS = (
  record.Mutation(
    name='wire_offsets_without_padding',
    file='seed_acme/transport/array_codec.py',
    old='offset += size + padding',
    new='offset += size',
    tests='tests/transport/wire_test.py::test_round_trips',
    fault='arrays are read from the wrong place',
  ),
  record.Mutation(
    name='wire_reward_and_discount_exchanged',
    file='seed_acme/transport/wire.py',
    old=('timestep.reward,\n    timestep.discount,'),
    new=('timestep.discount,\n    timestep.reward,'),
    tests='tests/transport/wire_test.py::test_round_trips',
    fault='agents learn to get the discount',
  ),
  record.Mutation(
    name='wire_last_environment_refused',
    file='seed_acme/transport/wire.py',
    old='min(env_ids) < 0 or max(env_ids) >= max_environments:',
    new='min(env_ids) < 0 or max(env_ids) >= max_environments - 1:',
    tests='tests/transport/wire_test.py',
    fault='the last environment of a run is turned away',
  ),
  record.Mutation(
    name='membership_starts_not_counted',
    file='seed_acme/transport/joining.py',
    old='self._num_starts[node] += 1',
    new='self._num_starts[node] = 1',
    tests='tests/transport/joining_test.py::TestJoin::test_starts_are_counted_by_node_and_'
    'resumption',
    fault='two later starts of a node have the same seeds',
  ),
  record.Mutation(
    name='membership_starts_dated_by_the_own_clock_alone',
    file='seed_acme/transport/joining.py',
    old='latest = max(self._last_joined_ms, latest_joined)',
    new='latest = self._last_joined_ms',
    tests='tests/transport/joining_test.py::TestJoin::test_a_later_start_is_greater_although_the_'
    'first_learner_s_clock_was_ahead',
    fault='a learner whose clock is behind takes new actors for replaced ones',
  ),
  record.Mutation(
    name='session_groups_compared_by_size',
    file='seed_acme/transport/sessions.py',
    old='env_ids != frozenset(ours):',
    new='len(env_ids) != len(ours):',
    tests='tests/transport/sessions_test.py::test_what_is_no_group_of_the_run_opens_nothing',
    fault='a group of training and evaluation environments has no replay shard',
  ),
  record.Mutation(
    name='session_settings_not_compared',
    file='programs/nodes/end_notice.py',
    old="settings=sections.shared['actor'],",
    new='settings=None,',
    tests='tests/programs/nodes/learner_node_test.py::test_an_actor_with_another_seed_is_refused',
    fault='a run learns from the environment of another one, whose actors are left over',
  ),
  record.Mutation(
    name='unix_second_request_before_the_reply',
    file='seed_acme/transport/unix_server.py',
    old='if self._owes_reply:',
    new='if False:',
    tests='tests/transport/unix_server_test.py::TestUnix::test_who_asks_again_before_the_reply_is_cut_off',
    fault='a request is overwritten while a batch reads it',
  ),
  record.Mutation(
    name='unix_rest_of_a_reply_is_dropped',
    file='seed_acme/transport/unix_server.py',
    old='self._unsent = self._unsent[self._socket.send(self._unsent) :]',
    new='self._unsent = self._unsent[: -self._socket.send(self._unsent)]',
    tests='tests/transport/unix_server_test.py::TestUnix::test_a_reader_that_takes_nothing_keeps_nobody_waiting',
    fault='large replies arrive garbled',
  ),
  record.Mutation(
    name='unix_any_length_is_kept_room_for',
    file='seed_acme/transport/unix_protocol.py',
    old='if length > self._max_message_bytes:',
    new='if length > 1 << 62:',
    tests='tests/transport/unix_server_test.py::TestUnix::test_who_speaks_out_of_turn_is_cut_off',
    fault='a caller without the token makes the learner reserve any memory',
  ),
  record.Mutation(
    name='unix_actions_are_views_of_the_buffer',
    file='seed_acme/transport/unix_client.py',
    old='      return self._codec.decode_reply(bytes(self._read()))\n    except',
    new='      return self._codec.decode_reply(self._read())\n    except',
    tests='tests/transport/unix_server_test.py::TestUnix::test_actions_are_not_overwritten_by_later_ones',
    fault='actions that an environment keeps change later',
  ),
  record.Mutation(
    name='unix_everybody_may_connect',
    file='seed_acme/transport/unix_server.py',
    old='os.chmod(path, 0o600)',
    new='os.chmod(path, 0o666)',
    tests='tests/transport/unix_server_test.py::TestUnix::test_only_the_user_of_the_run_gets_in',
    fault='other users of the machine reach the learner',
  ),
  record.Mutation(
    name='loop_wake_of_others_is_lost',
    file='seed_acme/inference/event_loop.py',
    old='threading.get_ident() != self._waiter:',
    new='threading.get_ident() == self._waiter:',
    tests='tests/inference/event_loop_test.py',
    fault='the inference thread sleeps while requests of gRPC wait',
  ),
  record.Mutation(
    name='messages_stop_with_inference',
    file='seed_acme/inference/thread.py',
    old='while not self._is_over.is_set():',
    new='while False:',
    tests='tests/inference/server_thread_test.py::test_after_the_end_messages_go_on_until_the_thread_is_joined',
    fault='actors do not hear that the run is over',
  ),
)
