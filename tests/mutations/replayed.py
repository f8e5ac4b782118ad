"""Faults in R2D2, and in code shared by agents with replay."""

from __future__ import annotations

from tests.mutations import record

MUTATIONS = (
  record.Mutation(
    name='learnt_rows_one_too_early',
    file='agents/learnt_rows.py',
    old='return tree.map_structure(lambda x: x[config.overlap :], (unroll.inputs, unroll.outputs))',
    new='return tree.map_structure(lambda x: x[config.overlap - 1 : -1], '
    '(unroll.inputs, unroll.outputs))',
    tests='tests/agents/learnt_rows_test.py',
    fault='a row of burn-in is learnt from',
  ),
  record.Mutation(
    name='burn_in_one_row_too_long',
    file='agents/learnt_rows.py',
    old='head = tree.map_structure(lambda x: x[: config.overlap], unroll.inputs)',
    new='head = tree.map_structure(lambda x: x[: config.overlap + 1], unroll.inputs)',
    tests='tests/agents/learnt_rows_test.py',
    fault='the first learnt row enters its own state',
  ),
  record.Mutation(
    name='burn_in_keeps_gradient',
    file='agents/learnt_rows.py',
    old='return tf.nest.map_structure(tf.stop_gradient, state)',
    new='return state',
    tests='tests/agents/learnt_rows_test.py::test_no_gradient_flows_through_the_burn_in',
    fault='rows that only warm a state up are trained',
  ),
  record.Mutation(
    name='trained_steps_of_the_next_rows',
    file='agents/learnt_rows.py',
    old='step_type = tf.convert_to_tensor(unroll.inputs.step_type)[config.overlap : -1]',
    new='step_type = tf.convert_to_tensor(unroll.inputs.step_type)[config.overlap + 1 :]',
    tests='tests/learning/learner_test.py::test_policy_lag_and_trained_steps_count_unmasked_'
    'transitions_after_the_overlap',
    fault='steps and lag are counted of the wrong rows',
  ),
  record.Mutation(
    name='importance_exponent_sign',
    file='agents/priorities.py',
    old='weights = tf.pow(tf.cast(probabilities, tf.float64), -exponent)',
    new='weights = tf.pow(tf.cast(probabilities, tf.float64), exponent)',
    tests='tests/agents/priorities_test.py',
    fault='what is drawn too often weighs more',
  ),
  record.Mutation(
    name='importance_weights_over_their_mean',
    file='agents/priorities.py',
    old='return tf.cast(weights / tf.reduce_max(weights), tf.float32)',
    new='return tf.cast(weights / tf.reduce_mean(weights), tf.float32)',
    tests='tests/agents/priorities_test.py',
    fault='weights exceed 1',
  ),
  record.Mutation(
    name='priority_shares_exchanged',
    file='agents/priorities.py',
    old='return max_share * tf.reduce_max(absolute, axis=0) + (1.0 - max_share) * mean',
    new='return (1.0 - max_share) * tf.reduce_max(absolute, axis=0) + max_share * mean',
    tests='tests/agents/priorities_test.py',
    fault='the mean error stands for the largest',
  ),
  record.Mutation(
    name='priority_of_signed_errors',
    file='agents/priorities.py',
    old='absolute = tf.abs(transitions_lib.select(mask, errors))',
    new='absolute = transitions_lib.select(mask, errors)',
    tests='tests/agents/priorities_test.py',
    fault='an unroll of negative errors is never drawn',
  ),
  record.Mutation(
    name='r2d2_greedy_action_of_the_target',
    file='agents/r2d2/loss.py',
    old='greedy = tf.argmax(q_values, axis=-1, output_type=tf.int32)',
    new='greedy = tf.argmax(target_q_values, axis=-1, output_type=tf.int32)',
    tests='tests/agents/r2d2/loss_test.py::test_equals_a_slow_loop_from_the_papers',
    fault='no double Q-learning: the target chooses what it values',
  ),
  record.Mutation(
    name='r2d2_online_network_bootstraps',
    file='agents/r2d2/loss.py',
    old='tf.stop_gradient(_q_values(networks.target, inputs, sample.unroll, config))',
    new='tf.stop_gradient(_q_values(networks.online, inputs, sample.unroll, config))',
    tests='tests/agents/r2d2/loss_test.py::test_equals_a_slow_loop_from_the_papers',
    fault='there is no target network',
  ),
  record.Mutation(
    name='r2d2_action_of_the_next_row',
    file='agents/r2d2/loss.py',
    old='tf.cast(actions[:-1], tf.int32), batch_dims=2)',
    new='tf.cast(actions[1:], tf.int32), batch_dims=2)',
    tests='tests/agents/r2d2/loss_test.py::test_equals_a_slow_loop_from_the_papers',
    fault='the value of an action learns the target of the one before it',
  ),
  record.Mutation(
    name='r2d2_loss_without_importance_weights',
    file='agents/r2d2/loss.py',
    old='losses = weights * 0.5 * tf.reduce_sum(tf.square(errors), axis=0)',
    new='losses = 0.5 * tf.reduce_sum(tf.square(errors), axis=0)',
    tests='tests/agents/r2d2/loss_test.py::test_equals_a_slow_loop_from_the_papers',
    fault='prioritized replay is biased',
  ),
  record.Mutation(
    name='r2d2_mean_over_time',
    file='agents/r2d2/loss.py',
    old='losses = weights * 0.5 * tf.reduce_sum(tf.square(errors), axis=0)',
    new='losses = weights * 0.5 * tf.reduce_mean(tf.square(errors), axis=0)',
    tests='tests/agents/r2d2/loss_test.py::test_equals_a_slow_loop_from_the_papers',
    fault='gradients are clipped at another size',
  ),
  record.Mutation(
    name='r2d2_initial_priorities_of_batch_major_rows',
    file='agents/r2d2/loss.py',
    old='return priorities_lib.mixed_priorities(errors, mask, max_share=config.max_priority_share)',
    new='return priorities_lib.mixed_priorities(errors, tf.ones_like(mask), '
    'max_share=config.max_priority_share)',
    tests='tests/agents/r2d2/initial_priorities_test.py',
    fault='rows that are no transitions lower the priority of new unrolls',
  ),
  record.Mutation(
    name='target_copied_a_share_too_late',
    file='agents/r2d2/learner.py',
    old='is_due = tf.equal(num_updates % period, 0)',
    new='is_due = tf.equal(num_updates % period, 1)',
    tests='tests/agents/r2d2/target_test.py::test_the_target_is_a_copy_at_the_start_and_at_'
    'multiples_of_its_period_only',
    fault='the target is renewed one update after its time',
  ),
  record.Mutation(
    name='target_copied_into_the_online_network',
    file='agents/r2d2/learner.py',
    old='target.assign(tf.where(is_due, online, target))',
    new='online.assign(tf.where(is_due, target, online))',
    tests='tests/agents/r2d2/target_test.py::test_the_target_is_a_copy_at_the_start_and_at_'
    'multiples_of_its_period_only',
    fault='what was learnt is thrown away at each period',
  ),
  record.Mutation(
    name='epsilon_ladder_without_its_foot',
    file='agents/r2d2/policy.py',
    old='tf.pow(config.epsilon_base, 1.0 + config.epsilon_exponent * exploration.place)',
    new='tf.pow(config.epsilon_base, config.epsilon_exponent * exploration.place)',
    tests='tests/agents/r2d2/policy_test.py::test_epsilons_are_the_powers_of_the_paper',
    fault='the first environment always acts at random',
  ),
  record.Mutation(
    name='epsilon_of_greedy_actions',
    file='agents/r2d2/policy.py',
    old='action = tf.where(explore < epsilons(exploration, config), random, greedy)',
    new='action = tf.where(explore > epsilons(exploration, config), random, greedy)',
    tests='tests/agents/r2d2/policy_test.py::test_the_played_action_and_the_prediction_come_out',
    fault='environments act greedily with probability epsilon',
  ),
  record.Mutation(
    name='one_uniform_for_whether_and_which',
    file='agents/r2d2/policy.py',
    old='random = tf.cast(which * num_actions, tf.int32)',
    new='random = tf.cast(explore * num_actions, tf.int32)',
    tests='tests/agents/r2d2/policy_test.py::test_whether_to_act_at_random_says_nothing_'
    'about_the_action',
    fault='only the first actions are ever explored',
  ),
)
