"""Faults in what carries requests and replies between actors and the server."""

from __future__ import annotations

from tests.mutations import record

MUTATIONS = (
  record.Mutation(
    name='wire_offsets_without_padding',
    file='seed_acme/transport/wire.py',
    old='offset += size + padding',
    new='offset += size',
    tests='tests/transport/wire_test.py::test_round_trips',
    fault='arrays are read from the wrong place',
  ),
  record.Mutation(
    name='wire_reward_and_discount_exchanged',
    file='seed_acme/transport/wire.py',
    old=('timestep.reward,\n        timestep.discount,'),
    new=('timestep.discount,\n        timestep.reward,'),
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
)
