"""Faults in `seed_acme/inference`: batches, and the server's data by environment."""

from __future__ import annotations

from tests.mutations import record

MUTATIONS = (
  record.Mutation(
    name='values_of_actors_are_trusted',
    file='seed_acme/inference/server.py',
    old='return self._check.fault(timestep, has_ended)',
    new='return None',
    tests='tests/inference/server_test.py::test_wrong_values_are_refused_in_the_words_of_the_actor',
    fault='an actor of a stranger makes the weights NaN',
  ),
  record.Mutation(
    name='wrong_values_finish_unrolls',
    file='seed_acme/inference/turns.py',
    old='if is_end and not self._is_right(request):',
    new='if False:',
    tests='tests/inference/strictly_on_policy_test.py::test_a_wrong_value_finishes_no_unroll',
    fault='a wrong row is learnt from before it is refused',
  ),
  record.Mutation(
    name='batch_of_requests_for_rows',
    file='seed_acme/inference/batching.py',
    old='num_rows = sum(p.request.env_ids.size for p in found)',
    new='num_rows = len(found)',
    tests='tests/inference/batching_test.py::test_the_limit_counts_rows',
    fault='a batch of groups waits for the time-out though it is full',
  ),
  record.Mutation(
    name='batch_larger_than_its_size',
    file='seed_acme/inference/batching.py',
    old='if batch and num_rows + size > self._batch_size:',
    new='if batch and num_rows > self._batch_size:',
    tests='tests/inference/batching_test.py::test_the_limit_counts_rows',
    fault='a batch takes one request too many',
  ),
  record.Mutation(
    name='evaluation_held_back_with_training',
    file='seed_acme/inference/batching.py',
    old='return (p for p in self._pending if not p.is_training)',
    new='return iter(())',
    tests='tests/inference/batching_test.py::test_training_is_held_back_while_evaluation_passes',
    fault='evaluation stands still while replay is full',
  ),
  record.Mutation(
    name='time_out_of_the_newest',
    file='seed_acme/inference/batching.py',
    old='ready_in = oldest.arrived_s + self._timeout_s - now',
    new='ready_in = now + self._timeout_s - now',
    tests='tests/inference/batching_holds_test.py::test_one_that_is_not_held_waits_no_longer_'
    'than_the_time_out tests/inference/batching_test.py::test_one_row_of_eight_runs_'
    'after_the_time_out',
    fault='the time-out begins anew whenever somebody looks',
  ),
  record.Mutation(
    name='padded_size_below_the_rows',
    file='seed_acme/inference/batching.py',
    old='while size < num_rows:',
    new='while size * 2 < num_rows:',
    tests='tests/inference/batching_test.py::test_padded_size',
    fault='rows do not fit into their batch',
  ),
  record.Mutation(
    name='repeated_environments_are_let_in',
    file='seed_acme/inference/batching.py',
    old='is_taken[request.env_ids] = True',
    new='pass',
    tests='tests/inference/batching_test.py::test_a_repeated_environment_is_refused_to_the_'
    'later_caller_alone',
    fault='two actors of one environment write the same slot in one batch',
  ),
  record.Mutation(
    name='slots_known_by_run_alone',
    file='seed_acme/inference/slots.py',
    old='return ~self.is_known[env_ids] | (self.run_ids[env_ids] != run_ids)',
    new='return self.run_ids[env_ids] != run_ids',
    tests='tests/inference/slots_test.py',
    fault='an environment of run 0 is never reset',
  ),
  record.Mutation(
    name='slots_reset_keeps_state',
    file='seed_acme/inference/slots.py',
    old=(
      'tree.map_structure(\n'
      '      lambda slot, initial: slot.__setitem__(env_ids, '
      'initial), self.state, self._initial_state\n'
      '    )'
    ),
    new='pass',
    tests='tests/inference/slots_test.py',
    fault='a restarted actor goes on with the memory of its old episode',
  ),
  record.Mutation(
    name='slots_reset_keeps_row_numbers',
    file='seed_acme/inference/slots.py',
    old='self.row_numbers[env_ids] = 0',
    new='self.row_numbers[env_ids] += 0',
    tests='tests/inference/slots_test.py',
    fault='a run does not act the same from its beginning',
  ),
  record.Mutation(
    name='noise_key_without_the_run',
    file='seed_acme/inference/noise.py',
    old='return _mix(key ^ run_ids.astype(np.uint64))',
    new='return _mix(key)',
    tests='tests/inference/noise_test.py::test_the_same_key_gives_the_same_numbers_and_any_'
    'other_key_others',
    fault='a restarted actor is given the random numbers of its last run',
  ),
  record.Mutation(
    name='noise_counters_overlap',
    file='seed_acme/inference/noise.py',
    old='counters = row_numbers[:, None] * np.uint64(num_uniforms) + np.arange(',
    new='counters = row_numbers[:, None] + np.arange(',
    tests='tests/inference/noise_test.py::test_no_number_of_a_stream_is_used_twice',
    fault='neighbouring rows share random numbers',
  ),
  record.Mutation(
    name='unroll_shares_one_row_too_few',
    file='seed_acme/inference/unrolls.py',
    old='shared = self.overlap + 1',
    new='shared = self.overlap',
    tests='tests/inference/unrolls_test.py::test_scenario',
    fault='the transition between two unrolls is never learnt',
  ),
  record.Mutation(
    name='unroll_number_shift',
    file='seed_acme/inference/unrolls.py',
    old='np.divmod(self._row_number[env_ids] + self.overlap, self._unroll_length)',
    new='np.divmod(self._row_number[env_ids], self._unroll_length)',
    tests='tests/inference/unrolls_test.py::test_scenario',
    fault='with burn-in an unroll starts from the state of another row',
  ),
  record.Mutation(
    name='kept_states_one_too_few',
    file='seed_acme/inference/unrolls.py',
    old='self._num_kept = overlap // unroll_length + 2',
    new='self._num_kept = overlap // unroll_length + 1',
    tests='tests/inference/unrolls_test.py::test_scenario tests/inference/unrolls_'
    'test.py::test_any_schedule_agrees_with_the_definition',
    fault='the state of the next unroll overwrites that of the one under way',
  ),
  record.Mutation(
    name='unroll_padding_typed_first',
    file='seed_acme/inference/unrolls.py',
    old='step_type[: self.overlap, env_ids] = types.LAST',
    new='step_type[: self.overlap, env_ids] = types.FIRST',
    tests='tests/inference/unrolls_test.py::test_scenario',
    fault='padding counts as transitions',
  ),
  record.Mutation(
    name='finished_unrolls_share_the_buffers',
    file='seed_acme/inference/unrolls.py',
    old="return np.take(buffer, env_ids, axis=1, out=taken, mode='clip')",
    new='return buffer[:, env_ids[0] : env_ids[-1] + 1]',
    tests='tests/inference/unrolls_test.py::test_a_finished_unroll_is_not_changed_by_what_'
    'follows tests/replay/local_queue_test.py::test_unrolls_of_inference_become_tensors_'
    'without_a_copy',
    fault='the next rows overwrite unrolls that wait for the learner',
  ),
  record.Mutation(
    name='unroll_steps_of_all_rows',
    file='seed_acme/inference/unrolls.py',
    old='unrolls.inputs.step_type[:, overlap:-1] != types.LAST',
    new='unrolls.inputs.step_type[:, overlap:] != types.LAST',
    tests='tests/inference/unrolls_test.py::test_num_steps_counts_unmasked_transitions_of_'
    'the_loss_part',
    fault='steps are counted twice where unrolls meet',
  ),
  record.Mutation(
    name='rewind_keeps_the_row_number',
    file='seed_acme/inference/unrolls.py',
    old='self._index[env_ids] -= 1\n    self._row_number[env_ids] -= 1',
    new='self._index[env_ids] -= 1',
    tests='tests/inference/unrolls_test.py::test_a_row_that_comes_again_with_its_state_'
    'leaves_no_trace_of_the_rewinding',
    fault='strictly on-policy unrolls start from the state of another row',
  ),
  record.Mutation(
    name='entering_state_after_the_row',
    file='seed_acme/inference/server.py',
    old='exploration.is_evaluation, inputs, rows.timestep.score, outputs, state',
    new='exploration.is_evaluation, inputs, rows.timestep.score, outputs, new_state',
    tests='tests/inference/unroll_replay_test.py::test_replaying_an_unroll_from_its_initial_'
    'state_gives_what_it_stored',
    fault='an unroll starts from the state that leaves its first row',
  ),
  record.Mutation(
    name='previous_action_leaks_into_first',
    file='seed_acme/inference/rows.py',
    old='      x[is_first] = 0\n      return x',
    new='      return x',
    tests='tests/inference/server_test.py::test_previous_action_and_reward_are_zero_at_first',
    fault='the action sampled at LAST enters the next episode',
  ),
  record.Mutation(
    name='reset_of_unrolls_left_out',
    file='seed_acme/inference/recorder.py',
    old='self._unrolls.reset(env_ids[env_ids < self._num_training])',
    new='pass',
    tests='tests/inference/server_test.py::test_a_new_run_resets_that_environment_alone',
    fault='an unroll joins the rows of two runs of an actor',
  ),
  record.Mutation(
    name='reset_of_all_environments',
    file='seed_acme/inference/server.py',
    old='      env_ids = rows.env_ids[is_new]\n'
    '      self.slots.reset(env_ids, rows.run_ids[is_new])',
    new='      env_ids = rows.env_ids\n      self.slots.reset(env_ids, rows.run_ids)',
    tests='tests/inference/server_test.py::test_a_new_run_resets_that_environment_alone',
    fault='one restarted actor makes all the others of its batch forget',
  ),
  record.Mutation(
    name='version_of_the_newest_weights',
    file='seed_acme/inference/server.py',
    old='      self._policy.refresh()\n      version = self._policy.version',
    new='      version = self._policy.version\n      self._policy.refresh()',
    tests='tests/inference/server_thread_test.py::test_weights_are_swapped_between_batches_with_'
    'their_version',
    fault='rows are stored with the version before the one that acted',
  ),
  record.Mutation(
    name='repeated_request_is_stepped',
    file='seed_acme/inference/server.py',
    old='if not is_new.any() and (stored == number).all():',
    new='if not is_new.any() and (stored == number + 1).all():',
    tests='tests/inference/server_test.py::test_a_repeated_number_gets_the_stored_actions_'
    'and_nothing_is_stepped',
    fault='a request that is sent again after a lost reply is refused',
  ),
  record.Mutation(
    name='epsilon_place_of_n',
    file='seed_acme/inference/rows.py',
    old=(
      'self._place = np.minimum(np.arange(num_environments) / '
      'max(1, num_training - 1), 1).astype(\n'
      '      np.float32\n'
      '    )'
    ),
    new='self._place = np.minimum(np.arange(num_environments) / '
    'num_training, 1).astype(np.float32)',
    tests='tests/inference/server_statistics_test.py::test_epsilon_goes_from_the_first_training_'
    'environment_to_the_last',
    fault='the last environment never reaches the lowest epsilon: N for N - 1',
  ),
  record.Mutation(
    name='evaluation_one_environment_late',
    file='seed_acme/inference/rows.py',
    old='is_evaluation=ids >= self._num_training,',
    new='is_evaluation=ids > self._num_training,',
    tests='tests/inference/server_statistics_test.py::test_evaluation_is_greedy_and_reaches_'
    'neither_sink_nor_counters',
    fault='the first evaluation environment explores and is learnt from',
  ),
  record.Mutation(
    name='frames_without_action_repeat',
    file='seed_acme/inference/recorder.py',
    old='frames=num_steps * self._frames_per_step)',
    new='frames=num_steps)',
    tests='tests/inference/server_statistics_test.py::test_statistics_and_steps_agree_with_a_'
    'slow_reference',
    fault='frames are counted as steps',
  ),
  record.Mutation(
    name='score_of_first_rows_counts',
    file='seed_acme/inference/recorder.py',
    old='score = np.where(step_type == types.FIRST, np.float32(0), acted.score)',
    new='score = acted.score',
    tests='tests/inference/server_statistics_test.py::test_statistics_and_steps_agree_with_a_'
    'slow_reference',
    fault="what an environment says at its reset is somebody's return",
  ),
  record.Mutation(
    name='held_row_is_not_rewound',
    file='seed_acme/inference/turns.py',
    old='    self._unrolls.rewind(request.env_ids)\n',
    new='',
    tests='tests/inference/strictly_on_policy_test.py::test_new_weights_answer_the_same_'
    'request_as_the_first_row_of_the_next_unroll',
    fault='the row between two updates is there twice',
  ),
  record.Mutation(
    name='episode_length_counts_first',
    file='seed_acme/inference/episodes.py',
    old='self._length[env_ids] += step_type != types.FIRST',
    new='self._length[env_ids] += 1',
    tests='tests/inference/episodes_test.py',
    fault='episodes are a step longer than they were',
  ),
  record.Mutation(
    name='quota_of_one_more',
    file='seed_acme/inference/unroll_quota.py',
    old='return bool((self._num_given[env_ids] >= self._unrolls_per_update).any())',
    new='return bool((self._num_given[env_ids] > self._unrolls_per_update).any())',
    tests='tests/inference/unroll_quota_test.py',
    fault='an update gets an unroll of old weights',
  ),
  record.Mutation(
    name='quota_never_renewed',
    file='seed_acme/inference/unroll_quota.py',
    old='      self._num_given[:] = 0\n',
    new='',
    tests='tests/inference/unroll_quota_test.py',
    fault='a strictly on-policy run stops after its first update',
  ),
)
