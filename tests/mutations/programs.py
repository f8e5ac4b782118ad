"""Faults in `programs/`: the reports of a run."""

from __future__ import annotations

from tests.mutations import record

MUTATIONS = (
  record.Mutation(
    name='cpu_time_without_the_kernel',
    file='programs/system/cpu_account.py',
    old='self._seconds[key] = times.user + times.system',
    new='self._seconds[key] = times.user',
    tests='tests/programs/system/cpu_account_test.py',
    fault='what the kernel does for a run costs nothing',
  ),
  record.Mutation(
    name='cpu_time_of_the_last_of_a_kind',
    file='programs/system/cpu_account.py',
    old='total[self._kinds[key]] = total.get(self._kinds[key], 0.0) + seconds',
    new='total[self._kinds[key]] = seconds',
    tests='tests/programs/system/cpu_account_test.py',
    fault='of many actors one is counted',
  ),
  record.Mutation(
    name='cpu_time_of_children_alone',
    file='programs/system/cpu_account.py',
    old='found = [self._root, *self._root.children(recursive=True)]',
    new='found = [self._root, *self._root.children()]',
    tests='tests/programs/system/cpu_account_test.py',
    fault='processes that nodes start are not counted',
  ),
  record.Mutation(
    name='cpu_record_forgets_earlier_starts',
    file='programs/front_end/cpu_record.py',
    old='kind: self._before.get(kind, 0.0) + seconds.get(kind, 0.0) for kind in kinds',
    new='kind: seconds.get(kind, 0.0) for kind in kinds',
    tests='tests/programs/front_end/cpu_record_test.py',
    fault='a resumed run is told cheaper than it was',
  ),
  record.Mutation(
    name='summary_rate_of_frames',
    file='programs/front_end/summary.py',
    old="steps, wall_s = status.get('agent_steps', 0), status.get('wall_s', 0.0)",
    new="steps, wall_s = status.get('frames', 0), status.get('wall_s', 0.0)",
    tests='tests/programs/front_end/summary_test.py',
    fault='steps per second are frames per second',
  ),
  record.Mutation(
    name='old_status_is_shown',
    file='programs/front_end/summary.py',
    old="if status.get('time_s') == earlier_s:",
    new='if not status:',
    tests='tests/programs/front_end/summary_test.py',
    fault='a start shows the progress of the one before',
  ),
  record.Mutation(
    name='replay_bytes_of_one_action',
    file='programs/front_end/replay_size.py',
    old=(
      'observation\n'
      '    + 2 * _spec_bytes(spec.action)\n'
      '    + _ROW_BYTES\n'
      '    + _num_predicted(spec.action) * _FLOAT_BYTES'
    ),
    new='observation + _spec_bytes(spec.action) + _ROW_BYTES + '
    '_num_predicted(spec.action) * _FLOAT_BYTES',
    tests='tests/programs/front_end/replay_size_test.py::test_a_number_is_kept_for_each_choice',
    fault='a memory is told smaller than it becomes',
  ),
  record.Mutation(
    name='container_without_reclaimable_pages',
    file='programs/front_end/replay_size.py',
    old='return max(0, min(available, limit - used + int(figures[_RECLAIMABLE])))',
    new='return max(0, min(available, limit - used))',
    tests='tests/programs/front_end/replay_size_test.py::test_in_a_container_what_it_has_left',
    fault='a container is warned that has room',
  ),
  record.Mutation(
    name='every_actor_films',
    file='programs/building/sections.py',
    old='record_every=config.record_every if place.shard is None else 0,',
    new='record_every=config.record_every,',
    tests='tests/programs/nodes/node_test.py',
    fault='actors that train film their episodes, too',
  ),
  record.Mutation(
    name='patience_without_end_on_other_hosts',
    file='programs/nodes/lives.py',
    old='return patience_lib.on_other_hosts(timeout_s)',
    new='return patience_lib.beside_learner(timeout_s)',
    tests='tests/programs/nodes/node_test.py',
    fault='an actor waits for ever for a learner on another host that has died',
  ),
)
