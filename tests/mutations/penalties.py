"""Faults in the penalties of on-policy agents."""

from __future__ import annotations

from tests.mutations import record

MUTATIONS = (
  record.Mutation(
    name='penalties_added_to_rewards',
    file='agents/on_policy/resolve.py',
    old="_SIGNS = {'none': 0.0, 'subtracted': -1.0, 'added': 1.0}",
    new="_SIGNS = {'none': 0.0, 'subtracted': 1.0, 'added': -1.0}",
    tests='tests/agents/on_policy/advantages_test.py::test_penalties_enter_rewards_with_their_sign',
    fault='what is to be avoided is paid for',
  ),
  record.Mutation(
    name='entropy_penalty_sign',
    file='agents/on_policy/penalties.py',
    old="'entropy': lambda: -distribution.entropy(params),",
    new="'entropy': lambda: distribution.entropy(params),",
    tests='tests/agents/on_policy/penalties_test.py::test_each_quantity_equals_its_definition',
    fault='the entropy bonus makes the policy greedy',
  ),
  record.Mutation(
    name='penalty_kl_of_the_other_way',
    file='agents/on_policy/penalties.py',
    old="'kl_to_behaviour': lambda: distribution.kl(params, behaviour_params),",
    new="'kl_to_behaviour': lambda: distribution.kl(behaviour_params, params),",
    tests='tests/agents/on_policy/penalties_test.py::test_each_quantity_equals_its_definition',
    fault='the two divergences are the same one',
  ),
  record.Mutation(
    name='learnt_penalty_falls_while_violated',
    file='agents/on_policy/penalties.py',
    old='lagrange.adjustment_loss(weight, mean(penalty.threshold - x))',
    new='lagrange.adjustment_loss(weight, mean(x - penalty.threshold))',
    tests='tests/agents/on_policy/penalties_test.py::test_a_learnt_weight_rises_while_'
    'violated_and_falls_while_not',
    fault='a learnt weight gives way where it should press',
  ),
  record.Mutation(
    name='penalty_weight_keeps_gradient',
    file='agents/on_policy/penalties.py',
    old='loss += tf.stop_gradient(weight) * mean(x)',
    new='loss += weight * mean(x)',
    tests='tests/agents/on_policy/penalties_test.py',
    fault='a learnt weight falls to lower the loss',
  ),
)
