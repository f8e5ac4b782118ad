"""Faults in `replay/`: contents, order and speed of writing, and counts."""

from __future__ import annotations

from tests.mutations import record

MUTATIONS = (
  record.Mutation(
    name='rest_of_unrolls_to_the_end',
    file='replay/writer.py',
    old='self._waiting.appendleft(rest)',
    new='self._waiting.append(rest)',
    tests='tests/replay/writer_test.py::test_items_hold_exactly_their_unrolls_in_the_order_'
    'they_came',
    fault='a queue does not keep the order of unrolls',
  ),
  record.Mutation(
    name='local_items_that_were_passed_stay',
    file='replay/local_items.py',
    old='self._items.pop(passed, None)',
    new='self._items.get(passed)',
    tests='tests/replay/local_items_test.py::test_items_whose_tickets_somebody_else_drew_do_not_stay',
    fault='memory grows by every item whose ticket somebody else drew',
  ),
  record.Mutation(
    name='local_items_batch_major',
    file='replay/local_items.py',
    old='[leaf.swapaxes(0, 1) for leaf in leaves]',
    new='[leaf.reshape(leaf.shape[1], -1, *leaf.shape[2:]) for leaf in leaves]',
    tests='tests/replay/local_items_test.py::test_samples_are_those_of_a_table_that_holds_the_'
    'items',
    fault='rows of one unroll come into another',
  ),
  record.Mutation(
    name='local_queue_newest_first',
    file='replay/local_queue.py',
    old='self._items.popleft()',
    new='self._items.pop()',
    tests='tests/replay/local_queue_test.py::test_samples_hold_the_unrolls_in_order_time_major',
    fault='one process learns from the newest unrolls first',
  ),
  record.Mutation(
    name='rest_of_unrolls_one_too_many',
    file='replay/writer.py',
    old='rest = tree.map_structure(lambda x: x[wanted:], unrolls)',
    new='rest = tree.map_structure(lambda x: x[wanted - 1:], unrolls)',
    tests='tests/replay/writer_test.py::test_items_hold_exactly_their_unrolls_in_the_order_'
    'they_came',
    fault='an unroll is in two items',
  ),
  record.Mutation(
    name='room_at_the_backlog',
    file='replay/writer.py',
    old='return self._num_waiting < self._backlog',
    new='return self._num_waiting <= self._backlog',
    tests='tests/replay/writer_test.py::test_room_ends_at_the_backlog_and_comes_back',
    fault='one unroll more waits than the memory is meant for',
  ),
  record.Mutation(
    name='backlog_below_an_item',
    file='replay/writer.py',
    old='self._backlog = max(backlog, unrolls_per_item)',
    new='self._backlog = backlog',
    tests='tests/replay/writer_test.py::test_a_backlog_below_one_item_leaves_room_until_the_'
    'item_is_whole',
    fault='a run with a short backlog waits for ever',
  ),
  record.Mutation(
    name='confirmed_with_those_in_flight',
    file='replay/writer.py',
    old='self.num_confirmed = self._num_written - num_in_flight * self._unrolls_per_item',
    new='self.num_confirmed = self._num_written',
    tests='tests/replay/writer_test.py::test_the_thread_writes_what_comes_and_says_so',
    fault='unrolls count as confirmed that the table has not taken',
  ),
  record.Mutation(
    name='initial_priority_not_finite',
    file='replay/writer.py',
    old='if not np.isfinite(priority):',
    new='if np.isnan(priority):',
    tests='tests/replay/memory_test.py::test_a_priority_that_is_not_finite_ends_the_writer_'
    'with_its_reason',
    fault='an infinite priority is drawn for ever',
  ),
  record.Mutation(
    name='limiter_insert_counts_itself_not',
    file='replay/rate_limit.py',
    old='return (self.inserts + number + 1) * '
    'self.samples_per_insert - self.samples <= self.max_diff',
    new='return (self.inserts + number) * self.samples_per_insert - self.samples <= self.max_diff',
    tests='tests/replay/inspection_test.py::test_a_ratio_of_which_the_double_is_not_exact',
    fault='the distance to a blocked insert is one too far',
  ),
  record.Mutation(
    name='limiter_samples_below_the_minimum',
    file='replay/rate_limit.py',
    old='spare = self.size - self.min_size_to_sample + 1',
    new='spare = self.size - self.min_size_to_sample',
    tests='tests/replay/inspection_test.py::test_samples_that_wear_items_out_are_bounded_'
    'from_both_sides',
    fault='the distance to a blocked sample is one too short',
  ),
  record.Mutation(
    name='samples_batch_major',
    file='replay/dataset.py',
    old='inputs=tree.map_structure(time_major, unroll.inputs),',
    new='inputs=unroll.inputs,',
    tests='tests/replay/dataset_test.py::test_every_unroll_comes_once_in_order_time_major',
    fault='the learner takes unrolls for rows',
  ),
  record.Mutation(
    name='keys_tiled_in_place_of_repeated',
    file='replay/dataset.py',
    old='keys=tf.repeat(items.info.key, unrolls_per_item),',
    new='keys=tf.tile(items.info.key, [unrolls_per_item]),',
    tests='tests/replay/dataset_test.py',
    fault='the keys of a sample are those of other unrolls',
  ),
  record.Mutation(
    name='prefetcher_asks_again',
    file='replay/dataset.py',
    old='      self._has_asked = True\n',
    new='',
    tests='tests/replay/dataset_test.py::test_who_asks_again_after_a_time_out_asks_for_the_'
    'same_sample',
    fault='each time-out fetches one sample more ahead',
  ),
  record.Mutation(
    name='account_forgets_what_is_under_way',
    file='replay/account.py',
    old='num_missing = handed_out - self.received() - under_way',
    new='num_missing = handed_out - self.received()',
    tests='tests/replay/account_test.py',
    fault='samples that are fetched ahead are called lost',
  ),
  record.Mutation(
    name='account_in_items',
    file='replay/account.py',
    old='return (sampled - num_dropped) * self._unrolls_per_item',
    new='return sampled - num_dropped',
    tests='tests/replay/account_test.py',
    fault='items are counted as unrolls, and losses go unseen',
  ),
  record.Mutation(
    name='queue_rounded_down',
    file='replay/tables.py',
    old='max(1, math.ceil(queue_size / unrolls_per_item))',
    new='max(1, queue_size // unrolls_per_item)',
    tests='tests/replay/tables_test.py',
    fault='a queue is shorter than configured',
  ),
  record.Mutation(
    name='memory_sampled_uniformly',
    file='replay/tables.py',
    old="if spec.kind == 'uniform':",
    new="if spec.kind != 'uniform':",
    tests='tests/replay/tables_test.py::test_a_memory_samples_by_priority_and_forgets_the_oldest',
    fault='prioritized replay is uniform, and the other way round',
  ),
  record.Mutation(
    name='memory_forgets_the_newest',
    file='replay/tables.py',
    old='    _sampler(spec),\n    reverb.selectors.Fifo(),',
    new='    _sampler(spec),\n    reverb.selectors.Lifo(),',
    tests='tests/replay/tables_test.py::test_a_memory_samples_by_priority_and_forgets_the_oldest',
    fault='a full memory never takes anything new',
  ),
  record.Mutation(
    name='limiter_of_one_batch',
    file='replay/tables.py',
    old='return 2.0 * max(batch_size, spec.ratio)',
    new='return 1.0 * max(batch_size, spec.ratio)',
    tests='tests/replay/tables_test.py',
    fault='a batch that is fetched ahead stops the actors',
  ),
  record.Mutation(
    name='table_counts_exchanged',
    file='replay/table_counts.py',
    old='limiter.insert_stats.completed, limiter.sample_stats.completed, table.current_size',
    new='limiter.sample_stats.completed, limiter.insert_stats.completed, table.current_size',
    tests='tests/replay/account_test.py',
    fault='what was inserted is reported as sampled',
  ),
  record.Mutation(
    name='shards_probabilities_of_their_own',
    file='replay/shards/samples.py',
    old='joined.probabilities / len(parts)',
    new='joined.probabilities',
    tests='tests/replay/shards/samples_test.py::test_the_parts_follow_each_other_and_halve_the_'
    'probabilities',
    fault='importance weights take each shard for the whole memory',
  ),
  record.Mutation(
    name='shards_priorities_of_another',
    file='replay/shards/memories.py',
    old='np.split(priorities, number)',
    new='np.split(priorities, number)[::-1]',
    tests='tests/replay/shards/memories_test.py::test_priorities_go_back_to_the_shard_that_each_'
    'row_is_of',
    fault='unrolls get the priorities of others',
  ),
  record.Mutation(
    name='shards_all_full_with_one',
    file='programs/building/learner_side.py',
    old='if is_training and not side.writer.has_room_for(request.env_ids):',
    new='if is_training and not all(writer.has_room() for writer in side.writer.each):',
    tests='tests/programs/replay_shards_test.py::test_a_full_shard_holds_back_its_own_actors_'
    'and_no_others',
    fault='a full shard stops the actors of the shard that the learner waits for',
  ),
  record.Mutation(
    name='memory_deleted_before_its_successor_is_on_the_disk',
    file='seed_acme/storage/checkpoint_writer.py',
    old='  local.sync_all(partial)  # Reverb does not\n',
    new='',
    tests='tests/storage/checkpoint_replay_test.py::test_a_new_memory_is_on_the_disk_before_the_'
    'old_one_is_deleted',
    fault='a power cut costs both replay memories',
  ),
  record.Mutation(
    name='memory_of_a_damaged_checkpoint_stays_there',
    file='seed_acme/storage/checkpoint.py',
    old='told += _rescued_memory(found.path, damaged)',
    new='told += _rescued_memory(found.path, [])',
    tests='tests/storage/checkpoint_replay_test.py',
    fault='a run whose newest weights are damaged resumes with an empty memory',
  ),
)
