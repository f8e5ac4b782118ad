"""Faults around an agent: learner, training loop, counters, checkpoints, settings."""

from __future__ import annotations

from tests.mutations import record

MUTATIONS = (
  record.Mutation(
    name='target_renewed_one_update_early',
    file='seed_acme/learning/learner.py',
    old='self._learning.after_update(num_updates + 1)',
    new='self._learning.after_update(num_updates)',
    tests='tests/agents/r2d2/target_test.py::test_the_target_is_a_copy_at_the_start_and_a'
    't_multiples_of_its_period_only',
    fault='what follows an update is told the number of the one before',
  ),
  record.Mutation(
    name='key_without_the_update',
    file='seed_acme/learning/learner.py',
    old='np.random.SeedSequence((self._seed, self.num_updates))',
    new='np.random.SeedSequence((self._seed,))',
    tests='tests/learning/objectives_test.py::test_randomness_depends_on_seed_and_update_alone',
    fault='every update draws the same random numbers',
  ),
  record.Mutation(
    name='shuffles_alike_in_every_update',
    file='seed_acme/learning/learner.py',
    old='rng = np.random.default_rng((self._seed, self.num_updates))',
    new='rng = np.random.default_rng((self._seed, 0))',
    tests='tests/learning/learner_passes_test.py::test_the_elements_are_dealt_anew_in_eac'
    'h_epoch_and_update',
    fault='minibatches of all updates are dealt alike',
  ),
  record.Mutation(
    name='published_are_the_variables_themselves',
    file='seed_acme/learning/learner.py',
    old='return types.Variables(self.num_updates, self._copy())',
    new='return types.Variables(self.num_updates, tuple(self._published))',
    tests='tests/learning/learner_checkpoints_test.py::test_published_values_do_not_change_when_'
    'further_updates_run',
    fault='inference reads weights that are being written',
  ),
  record.Mutation(
    name='policy_lag_of_masked_rows',
    file='seed_acme/learning/metrics.py',
    old='lag = tf.where(prepared.mask, lag, tf.zeros_like(lag))',
    new='lag = tf.identity(lag)',
    tests='tests/learning/learner_test.py::test_policy_lag_and_trained_steps_count_unmask'
    'ed_transitions_after_the_overlap',
    fault='padding counts as old policies',
  ),
  record.Mutation(
    name='maxima_are_averaged',
    file='seed_acme/learning/metrics.py',
    old="float(maxima[i] if name.endswith('_max') else means[i])",
    new='float(means[i])',
    tests='tests/learning/learner_passes_test.py::test_metrics_are_means_over_the_gradien'
    't_steps_and_maxima_where_they_are_called_so',
    fault='the greatest of a metric is its mean',
  ),
  record.Mutation(
    name='of_the_last_pass_is_of_all',
    file='seed_acme/learning/metrics.py',
    old='result.update({name: of_last[name] for name in passes.of_last})',
    new='',
    tests='tests/agents/on_policy/value_metrics_test.py::test_what_the_weights_learn_in_later_'
    'passes_shows_in_the_last_divergence_alone',
    fault='the divergence of the last pass is the mean of all passes',
  ),
  record.Mutation(
    name='variance_within_a_minibatch',
    file='seed_acme/learning/metrics.py',
    old='for name, mean in passes.variances.items():',
    new='for name, mean in {}.items():',
    tests='tests/learning/learner_passes_test.py::test_a_variance_is_that_of_the_whole_sample_'
    'however_it_is_dealt_out',
    fault='the smaller the minibatches, the less their targets seem to differ',
  ),
  record.Mutation(
    name='a_low_metric_is_told_of_again',
    file='seed_acme/learning/watching.py',
    old='self._num_steps[name] = -1',
    new='self._num_steps[name] = 0',
    tests='tests/learning/training_loop_test.py::test_a_metric_that_stays_low_is_told_once_in_'
    'the_run_also_if_it_is_resumed',
    fault='a run says every twentieth of its budget that the value explains nothing',
  ),
  record.Mutation(
    name='non_finite_is_not_noticed',
    file='seed_acme/learning/learner.py',
    old='bad = [name for name, value in metrics.items() if not np.isfinite(value)]',
    new='bad = [name for name, value in metrics.items() if np.isnan(value)]',
    tests='tests/learning/learner_passes_test.py::test_what_is_not_finite_in_any_gradient'
    '_step_stops_the_run',
    fault='a run goes on with infinite losses, and saves them',
  ),
  record.Mutation(
    name='restored_without_the_number_of_updates',
    file='seed_acme/learning/learner.py',
    old='    self.num_updates = num_updates\n',
    new='',
    tests='tests/agents/r2d2/target_test.py::test_a_restored_learner_has_its_target_and_k'
    'eeps_the_period',
    fault='a resumed run begins its periods and keys anew',
  ),
  record.Mutation(
    name='warm_start_takes_the_optimiser',
    file='seed_acme/learning/learner.py',
    old='    weights = self._weights()\n    new =',
    new='    weights = self._named_variables()\n    new =',
    tests='tests/learning/learner_checkpoints_test.py::test_warm_start_takes_the_weights_and_'
    'leaves_the_optimiser_new',
    fault='moments of another run move the first updates',
  ),
  record.Mutation(
    name='gradients_not_clipped',
    file='seed_acme/learning/objectives.py',
    old='      gradients, _ = tf.clip_by_global_norm(',
    new='      _, _ = tf.clip_by_global_norm(',
    tests='tests/learning/learner_test.py::test_gradients_are_scaled_down_to_the_limit_an'
    'd_reported_unscaled',
    fault='the greatest gradient norm has no effect',
  ),
  record.Mutation(
    name='schedule_never_reaches_the_optimiser',
    file='seed_acme/learning/objectives.py',
    old='    self._learning_rate.assign(learning_rate)\n',
    new='',
    tests='tests/learning/learner_test.py::test_optimizers_equal_a_slow_reference tests/l'
    'earning/learner_test.py::test_linear_schedule_runs_over_the_steps_of_the_exper'
    'iment tests/learning/learner_passes_test.py::test_the_learning_rate_follows_th'
    'e_steps_of_the_run',
    fault='the learning rate is reported as falling and stays',
  ),
  record.Mutation(
    name='published_every_update',
    file='seed_acme/learning/training_loop.py',
    old='if self._learner.num_updates % self._settings.publish_period == 0:',
    new='if self._learner.num_updates % self._settings.publish_period >= 0:',
    tests='tests/learning/training_loop_test.py::test_weights_are_published_every_publish_period',
    fault='the period of publication has no effect',
  ),
  record.Mutation(
    name='priorities_of_other_keys',
    file='seed_acme/learning/training_loop.py',
    old='self._memory.update_priorities(np.asarray(sample.keys), update.priorities)',
    new='self._memory.update_priorities(np.asarray(sample.keys)[::-1], update.priorities)',
    tests='tests/learning/training_loop_checkpoints_test.py::test_each_unroll_gets_the_priority_'
    'that_was_computed_from_it',
    fault='each unroll gets the priority of another',
  ),
  record.Mutation(
    name='resumption_not_counted',
    file='seed_acme/learning/checkpoint_manager.py',
    old='self.resumptions = saved.resumptions + 1',
    new='self.resumptions = saved.resumptions',
    tests='tests/learning/training_loop_checkpoints_test.py::test_every_resumption_is_counted_'
    'though_no_update_was_made',
    fault='environments of a resumed run repeat their episodes',
  ),
  record.Mutation(
    name='later_rows_stay_in_the_log',
    file='seed_acme/learning/checkpoint_manager.py',
    old='self._csv.truncate_after(counts.agent_steps, counts.updates)',
    new='self._csv.truncate_after(counts.agent_steps + 10**9, counts.updates + 10**9)',
    tests='tests/learning/training_loop_checkpoints_test.py::test_a_resumed_run_goes_on_from_the_'
    'checkpoint_and_cuts_later_rows',
    fault='the log of a resumed run tells of steps that were lost',
  ),
  record.Mutation(
    name='budget_needs_both',
    file='seed_acme/learning/training_loop.py',
    old='or bool(max_wall_s)',
    new='and bool(max_wall_s)',
    tests='tests/learning/training_loop_test.py::test_the_budget_of_steps_or_of_seconds',
    fault='a run without a limit of seconds never ends',
  ),
  record.Mutation(
    name='steps_per_second_since_the_start',
    file='seed_acme/learning/training_loop.py',
    old='self._logged, self._logged_at_s = counts, now\n',
    new='self._logged_at_s = now\n',
    tests='tests/learning/training_loop_test.py::test_rows_and_checkpoints_come_when_thei'
    'r_periods_have_passed tests/learning/training_loop_test.py::test_the_row_repor'
    'ts_episodes_since_the_last_and_the_window',
    fault='steps per second count the steps of the whole run in each row',
  ),
  record.Mutation(
    name='frames_counted_as_steps',
    file='seed_acme/progress/counting.py',
    old='(agent_steps, frames, updates, episodes, trained_steps)',
    new='(agent_steps, agent_steps, updates, episodes, trained_steps)',
    tests='tests/progress/counting_test.py',
    fault='frames are agent steps',
  ),
  record.Mutation(
    name='clock_not_begun_anew',
    file='seed_acme/progress/counting.py',
    old='      self._started = self._clock()\n',
    new='',
    tests='tests/progress/counting_test.py',
    fault='the time between saving and restoring counts as training',
  ),
  record.Mutation(
    name='best_is_scored_by_what_was_played_before_it',
    file='seed_acme/inference/episodes.py',
    old='2 * num_after >= len(window)',
    new='num_after >= 0',
    tests='tests/learning/best_checkpoint_test.py::test_the_score_is_of_the_weights_that_played_'
    'and_not_of_those_that_have_collapsed_since',
    fault='weights that have collapsed get the score of those before them',
  ),
  record.Mutation(
    name='evaluation_counts_episodes_from_the_beginning_of_the_run',
    file='programs/building/learner_side.py',
    old='layout.num_environments, lambda: counters.agent_steps\n',
    new='layout.num_environments\n',
    tests='tests/programs/single_process_test.py::test_evaluation_is_of_what_was_played_lately',
    fault='the evaluation return is of weights from long ago where evaluation episodes are rare',
  ),
  record.Mutation(
    name='worst_checkpoint_kept',
    file='seed_acme/learning/best_checkpoint.py',
    old='score >= self.best.evaluation_return',
    new='score <= self.best.evaluation_return',
    tests='tests/learning/best_checkpoint_test.py::test_the_best_stays_beyond_keep_with_the_'
    'score_of_the_log',
    fault='the worst checkpoint counts as the best',
  ),
  record.Mutation(
    name='best_deleted_with_the_old_ones',
    file='seed_acme/storage/checkpoint_writer.py',
    old='and checkpoint.updates_of(old) not in keep_also',
    new='and checkpoint.updates_of(old) not in ()',
    tests='tests/storage/checkpoint_test.py::test_those_that_are_asked_for_stay_beyond_the_newest',
    fault='the best checkpoint is deleted when it is old',
  ),
  record.Mutation(
    name='oldest_checkpoint_is_loaded',
    file='seed_acme/storage/checkpoint.py',
    old='for path in reversed(all_whole(folder)):',
    new='for path in all_whole(folder):',
    tests='tests/storage/checkpoint_damage_test.py::test_the_newest_whole_checkpoint_is_taken_'
    'and_those_skipped_are_named',
    fault='a resumed run goes back to its oldest checkpoint',
  ),
  record.Mutation(
    name='newest_checkpoints_deleted',
    file='seed_acme/storage/checkpoint_writer.py',
    old='for old in whole[:-keep]:',
    new='for old in whole[keep:]:',
    tests='tests/storage/checkpoint_test.py::test_the_newest_are_kept_in_the_order_of_updates',
    fault='the oldest checkpoints are kept',
  ),
  record.Mutation(
    name='checksum_not_compared',
    file='seed_acme/storage/checkpoint.py',
    old="if digest != record['sha256']:",
    new="if not record['sha256']:",
    tests='tests/storage/checkpoint_damage_test.py::test_the_file_that_is_corrupt_is_named',
    fault='a corrupt checkpoint is loaded',
  ),
  record.Mutation(
    name='checkpoint_written_in_place',
    file='seed_acme/storage/checkpoint_writer.py',
    old="_PARTIAL = '.partial'",
    new="_PARTIAL = ''",
    tests='tests/storage/checkpoint_test.py::test_a_kill_at_any_moment_leaves_a_whole_new'
    'est_checkpoint tests/storage/checkpoint_test.py::test_what_is_saved_is_loaded',
    fault='a kill leaves half a checkpoint that counts as the newest',
  ),
  record.Mutation(
    name='older_memories_stay',
    file='seed_acme/storage/checkpoint_writer.py',
    old='for old in with_replay[:-1]:',
    new='for old in with_replay[:-2]:',
    tests='tests/storage/checkpoint_replay_test.py::test_a_replay_memory_moves_in_and_older_'
    'checkpoints_lose_theirs',
    fault='two memories fill the disk',
  ),
  record.Mutation(
    name='resume_compares_nothing_below_agents',
    file='seed_acme/storage/saved_config.py',
    old='return any(parent in before and before[parent] != after.get(parent) for parent in '
    'parents)',
    new='return any(parent in before for parent in parents)',
    tests='tests/storage/saved_config_test.py::test_what_decides_learning_may_not_change',
    fault='a run is resumed with other settings of its agent',
  ),
  record.Mutation(
    name='tuples_come_back_as_lists',
    file='seed_acme/storage/saved_config.py',
    old="return tuple(_decode(item, f'{path}[{i}]') for i, item in enumerate(value))",
    new="return [_decode(item, f'{path}[{i}]') for i, item in enumerate(value)]",
    tests='tests/storage/saved_config_test.py::test_round_trip_of_tuples_none_and_infinities',
    fault='a resumed configuration differs from the one that was saved',
  ),
  record.Mutation(
    name='range_takes_nan',
    file='seed_acme/checks/bounds.py',
    old='if not (is_above and is_below):',
    new='if value < self.least or value > self.most:',
    tests='tests/checks/bounds_test.py',
    fault='NaN passes as a share',
  ),
  record.Mutation(
    name='range_above_zero_takes_zero',
    file='seed_acme/checks/bounds.py',
    old='value > self.least if self.is_open_below',
    new='value >= self.least if self.is_open_below',
    tests='tests/checks/bounds_test.py',
    fault='0 passes where a division follows',
  ),
  record.Mutation(
    name='range_takes_infinity',
    file='seed_acme/checks/bounds.py',
    old='if not (self.takes_infinity or _is_finite(value)):',
    new='if False:',
    tests='tests/checks/bounds_test.py',
    fault='an infinite cost makes the first loss infinite',
  ),
  record.Mutation(
    name='group_ids_from_zero',
    file='seed_acme/layout.py',
    old='  first = index * each\n',
    new='  first = 0\n',
    tests='tests/layout_test.py::test_the_last_actor_evaluates_and_has_one_group',
    fault='all actors claim the environments of the first',
  ),
  record.Mutation(
    name='request_number_stays',
    file='seed_acme/acting/actor.py',
    old='    self._request_number += 1\n',
    new='',
    tests='tests/acting/actor_test.py::test_requests_carry_their_number_ids_and_time_step',
    fault='the server answers every request with the first action',
  ),
  record.Mutation(
    name='begins_an_update_without_the_others',
    file='seed_acme/learning/peers.py',
    old='return Decision(not lacking and not stops,',
    new='return Decision(bool(rows[self.index, 0]) and not stops,',
    tests='tests/learning/peers_test.py::test_no_host_trains_while_one_has_no_sample',
    fault='a host begins an update in which another cannot take part',
  ),
  record.Mutation(
    name='stops_without_the_others',
    file='seed_acme/learning/peers.py',
    old='stops = bool(rows[:, 1].any())',
    new='stops = bool(rows[self.index, 1])',
    tests='tests/learning/peers_test.py::test_all_hosts_stop_when_one_is_told_to',
    fault='a host that is told to stop leaves the others waiting',
  ),
  record.Mutation(
    name='gradients_of_a_host_are_a_part',
    file='seed_acme/parallel/data_parallel.py',
    old='else tf.convert_to_tensor(dv) * hosts.number',
    new='else tf.convert_to_tensor(dv)',
    tests='tests/learning/divided_learner_test.py::test_two_hosts_learn_what_one_does',
    fault='the mean over learner hosts divides what each host has of the gradient',
  ),
  record.Mutation(
    name='states_are_sent_to_all_hosts',
    file='seed_acme/parallel/data_parallel.py',
    old='keeps = [local_rows is not None and i == state_index',
    new='keeps = [local_rows is None and i == state_index',
    tests='tests/parallel/data_parallel_test.py::test_observations_and_states_stay_on_their_host',
    fault='learner hosts send each other the frames of stacks after each call of a network',
  ),
  record.Mutation(
    name='statistics_of_the_own_observations',
    file='agents/on_policy/learner.py',
    old='algorithm.by_transitions or network.observations)',
    new='algorithm.by_transitions)',
    tests=(
      'tests/learning/exchanged_bytes_test.py::test_observations_are_sent_to_hosts_that_read_them'
    ),
    fault='each learner host has other statistics of observations',
  ),
)
