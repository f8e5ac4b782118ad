"""Faults in SAC."""

from __future__ import annotations

from tests.mutations import record

MUTATIONS = (
  record.Mutation(
    name='sac_policy_loss_sign',
    file='agents/sac/loss.py',
    old='return -mean(soft_values)',
    new='return mean(soft_values)',
    tests='tests/agents/sac/loss_test.py::test_equals_a_slow_loop_from_the_papers',
    fault='the policy learns what is worst',
  ),
  record.Mutation(
    name='sac_entropy_left_out_of_targets',
    file='agents/sac/loss.py',
    old='return _least(at_fresh) - weight * _without_first(fresh.log_probs)',
    new='return _least(at_fresh)',
    tests='tests/agents/sac/loss_test.py::test_equals_a_slow_loop_from_the_papers',
    fault='critics do not count the entropy to come',
  ),
  record.Mutation(
    name='sac_log_probs_of_the_same_row',
    file='agents/sac/loss.py',
    old='- weight * _without_first(fresh.log_probs)',
    new='- weight * _without_last(fresh.log_probs)',
    tests='tests/agents/sac/loss_test.py::test_equals_a_slow_loop_from_the_papers',
    fault='the entropy of the row before is bootstrapped',
  ),
  record.Mutation(
    name='sac_learnt_critics_bootstrap',
    file='agents/sac/loss.py',
    old='targets = _targets(networks.targets, batch, fresh, weight)',
    new='targets = _targets(networks.critics, batch, fresh, weight)',
    tests='tests/agents/sac/loss_test.py::test_equals_a_slow_loop_from_the_papers',
    fault='there are no target networks',
  ),
  record.Mutation(
    name='sac_greatest_of_the_critics',
    file='agents/sac/loss.py',
    old='return tf.reduce_min(tf.stack(values), axis=0)',
    new='return tf.reduce_max(tf.stack(values), axis=0)',
    tests='tests/agents/sac/loss_test.py::test_equals_a_slow_loop_from_the_papers',
    fault='two critics overestimate more than one',
  ),
  record.Mutation(
    name='sac_entropy_target_sign',
    file='agents/sac/loss.py',
    old='networks.entropy_weight(), entropy - config.target_entropy',
    new='networks.entropy_weight(), config.target_entropy - entropy',
    tests='tests/agents/sac/learner_test.py::test_the_weight_falls_while_the_entropy_exceeds_'
    'its_target',
    fault='the weight of the entropy runs away from its target',
  ),
  record.Mutation(
    name='sac_weight_keeps_gradient',
    file='agents/sac/loss.py',
    old='weight = tf.stop_gradient(networks.entropy_weight())',
    new='weight = networks.entropy_weight()',
    tests='tests/agents/sac/gradients_test.py::test_each_loss_moves_what_its_objective_names',
    fault='the losses of policy and critics reach the weight of the entropy',
  ),
  record.Mutation(
    name='sac_errors_without_importance_weights',
    file='agents/sac/loss.py',
    old='0.5 * mean(batch.weights * tf.square(e))',
    new='0.5 * mean(tf.square(e))',
    tests='tests/agents/sac/loss_test.py::test_equals_it_with_other_settings',
    fault='prioritized replay is biased',
  ),
  record.Mutation(
    name='sac_terminated_rows_bootstrap_nan',
    file='agents/sac/loss.py',
    old='to_come = batch.discounts * transitions_lib.select(batch.discounts > 0, bootstrap)',
    new='to_come = batch.discounts * bootstrap',
    tests='tests/agents/sac/gradients_test.py::test_what_is_said_of_a_terminated_row_is_of_'
    'no_matter',
    fault='an infinite value of a terminated row spoils the critics',
  ),
  record.Mutation(
    name='sac_step_away_from_the_critics',
    file='agents/sac/learner.py',
    old='old.assign((1.0 - share) * old + share * new)',
    new='old.assign(share * old + (1.0 - share) * new)',
    tests='tests/agents/sac/learner_test.py::test_targets_go_a_share_of_the_way',
    fault='targets follow at once',
  ),
  record.Mutation(
    name='sac_targets_renewed_in_between',
    file='agents/sac/learner.py',
    old='_move(networks, tf.where(is_due, config.target_step, 0.0))',
    new='_move(networks, tf.where(is_due, 0.0, config.target_step))',
    tests='tests/agents/sac/learner_test.py::test_targets_are_renewed_after_every_target_'
    'period_th_update',
    fault='targets are renewed in all updates but those that are due',
  ),
  record.Mutation(
    name='sac_rewards_not_scaled',
    file='agents/sac/batch.py',
    old='config.reward_scale * rewards,',
    new='rewards,',
    tests='tests/agents/sac/loss_test.py::test_equals_it_with_other_settings',
    fault='the scale of rewards has no effect',
  ),
  record.Mutation(
    name='sac_weights_of_other_unrolls',
    file='agents/sac/batch.py',
    old='by_unroll = tf.reshape(tf.ones_like(mask, tf.float32), [-1, config.batch_size])\n'
    '  return tf.reshape(by_unroll * weights, mask.shape)',
    new='by_unroll = tf.reshape(tf.ones_like(mask, tf.float32), [config.batch_size, -1])\n'
    '  return tf.reshape(by_unroll * weights[:, tf.newaxis], mask.shape)',
    tests='tests/agents/sac/batch_test.py::test_importance_weights_are_those_of_the_unrolls',
    fault='a weight falls to the transitions of other unrolls',
  ),
  record.Mutation(
    name='sac_pairs_of_the_same_row',
    file='agents/sac/batch.py',
    old='lambda x: tf.stack([x[:-1], x[1:]]), inputs)',
    new='lambda x: tf.stack([x[:-1], x[:-1]]), inputs)',
    tests='tests/agents/sac/batch_test.py::test_pairs_of_all_rows_are_the_rows_in_their_order',
    fault='a transition leads to where it started',
  ),
  record.Mutation(
    name='hindsight_goal_of_this_row',
    file='agents/sac/hindsight.py',
    old='first = tf.range(1, tf.shape(starts)[0] + 1)[:, tf.newaxis]',
    new='first = tf.range(tf.shape(starts)[0])[:, tf.newaxis]',
    tests='tests/agents/sac/hindsight_test.py::test_every_transition_gets_one_goal_at_both_'
    'ends_from_later_in_its_episode',
    fault='a goal is what was reached before the action',
  ),
  record.Mutation(
    name='hindsight_goals_across_episodes',
    file='agents/sac/hindsight.py',
    old='num_rows = transitions_lib.backward_sums(mask, mask)',
    new='num_rows = transitions_lib.backward_sums(tf.ones_like(mask), tf.ones_like(mask))',
    tests='tests/agents/sac/hindsight_test.py::test_every_transition_gets_one_goal_at_both_'
    'ends_from_later_in_its_episode',
    fault='goals come from later episodes',
  ),
  record.Mutation(
    name='hindsight_reward_added',
    file='agents/sac/hindsight.py',
    old='pairs.reward[1] + (new.reward - old.reward), pairs.discount[1]',
    new='pairs.reward[1] + new.reward, pairs.discount[1]',
    tests='tests/agents/sac/hindsight_test.py::test_rewards_and_discounts_are_those_of_the_rules',
    fault='a goal that is replaced is paid for all the same',
  ),
  record.Mutation(
    name='hindsight_share_turned_round',
    file='agents/sac/hindsight.py',
    old='is_transition & (which < probability)',
    new='is_transition & (which > probability)',
    tests='tests/agents/sac/hindsight_test.py::test_the_share_of_substitutions_is_the_'
    'probability_and_goals_are_drawn_evenly',
    fault='goals are replaced with one minus the probability',
  ),
  record.Mutation(
    name='random_steps_in_evaluation',
    file='agents/sac/policy.py',
    old='action = action_distributions.where(is_evaluation, distribution.mode(params), action)',
    new='action = action_distributions.where(is_evaluation, action, action)',
    tests='tests/agents/sac/policy_test.py::test_evaluation_rows_play_the_mode_and_the_'
    'others_a_sample',
    fault='evaluation is random',
  ),
  record.Mutation(
    name='random_steps_never_over',
    file='agents/sac/policy.py',
    old='is_early = tf.convert_to_tensor(exploration.agent_steps) < config.random_steps',
    new='is_early = tf.convert_to_tensor(exploration.agent_steps) > config.random_steps',
    tests='tests/agents/sac/policy_test.py::test_random_steps_are_over_once_as_many_are_taken',
    fault='the policy acts first and chance acts for the rest of the run',
  ),
)
