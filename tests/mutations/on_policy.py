"""Faults in the on-policy agent: its losses, its advantages, its passes and its statistics."""

from __future__ import annotations

from tests.mutations import record

MUTATIONS = (
  record.Mutation(
    name='rewards_scaled_before_they_are_clipped',
    file='agents/on_policy/advantages.py',
    old='rewards = transitions_lib.clip_rewards(result.rewards, max_abs_reward) * reward_scale',
    new='rewards = transitions_lib.clip_rewards(result.rewards * reward_scale, max_abs_reward)',
    tests='tests/agents/on_policy/advantages_test.py::test_rewards_are_clipped_then_scaled',
    fault='the bound of rewards is off by their scale',
  ),
  record.Mutation(
    name='vtrace_advantages_weighed_twice',
    file='agents/on_policy/vtrace.py',
    old='policy_rho_clip=None,',
    new='policy_rho_clip=rho_clip,',
    tests='tests/agents/on_policy/advantages_test.py::test_the_ratio_of_its_own_row_does_not_'
    'weigh_an_advantage',
    fault='the ratio weighs an advantage here and again in the policy loss',
  ),
  record.Mutation(
    name='nstep_advantage_of_the_next_value',
    file='agents/on_policy/advantages.py',
    old='targets - values[:-1]',
    new='targets - values[1:]',
    tests='tests/agents/on_policy/advantages_test.py::test_equals_a_slow_sum_over_each_'
    'episode_apart',
    fault='an n-step return is compared with the value of the next row',
  ),
  record.Mutation(
    name='log_ratio_of_behaviour_over_policy',
    file='agents/on_policy/loss.py',
    old='log_ratio = log_prob - distribution.log_prob(behaviour_params, minibatch.actions)',
    new='log_ratio = distribution.log_prob(behaviour_params, minibatch.actions) - log_prob',
    tests='tests/agents/on_policy/loss_test.py::test_equals_a_slow_loop_over_transitions',
    fault='mu/pi stands for pi/mu',
  ),
  record.Mutation(
    name='bootstrap_from_the_first_state',
    file='agents/on_policy/loss.py',
    old='bootstrap, _ = network(last, state)',
    new='bootstrap, _ = network(last, minibatch.initial_state)',
    tests='tests/agents/on_policy/vtrace_preset_test.py::test_equals_a_slow_loop_over_transitions',
    fault='the value to bootstrap from has forgotten the unroll',
  ),
  record.Mutation(
    name='value_cost_left_out',
    file='agents/on_policy/loss.py',
    old="'loss/value': algorithm.value_cost * value,",
    new="'loss/value': value,",
    tests='tests/agents/on_policy/loss_test.py::test_equals_a_slow_loop_over_transitions',
    fault='the setting of the weight of the value loss has no effect',
  ),
  record.Mutation(
    name='sampled_kl_sign',
    file='agents/on_policy/loss.py',
    old='algorithm.kl_cost * transitions_lib.masked_mean(-outputs.log_ratio, mask)',
    new='algorithm.kl_cost * transitions_lib.masked_mean(outputs.log_ratio, mask)',
    tests='tests/agents/on_policy/vtrace_preset_test.py::test_equals_a_slow_loop_over_transitions',
    fault='a cost of the divergence drives the policy away from the behaviour',
  ),
  record.Mutation(
    name='behaviour_params_not_selected',
    file='agents/on_policy/loss.py',
    old=(
      'behaviour_params = tf.stop_gradient(\n'
      '    transitions_lib.select(minibatch.mask[..., tf.newaxis], minibatch.behaviour_params)\n'
      '  )'
    ),
    new='behaviour_params = tf.stop_gradient(minibatch.behaviour_params)',
    tests='tests/agents/on_policy/properties_test.py::test_nan_in_everything_masked_changes_no_bit',
    fault='NaN of a masked row reaches the gradient',
  ),
  record.Mutation(
    name='value_clip_takes_the_lower',
    file='agents/on_policy/loss.py',
    old='result = tf.maximum(result, of_errors(',
    new='result = tf.minimum(result, of_errors(',
    tests='tests/agents/on_policy/value_loss_test.py::test_clipping_by_hand',
    fault='the optimist of two value losses is learnt',
  ),
  record.Mutation(
    name='huber_is_not_continuous',
    file='agents/on_policy/loss.py',
    old='delta * (absolute - 0.5 * delta))',
    new='delta * (absolute - delta))',
    tests='tests/agents/on_policy/value_loss_test.py::test_value_and_gradient_equal_a_slow_loop',
    fault='the Huber loss jumps at delta',
  ),
  record.Mutation(
    name='ppo_takes_the_greater',
    file='agents/on_policy/ppo.py',
    old='gain = tf.minimum(ratio * advantages,',
    new='gain = tf.maximum(ratio * advantages,',
    tests='tests/agents/on_policy/policy_losses_test.py::test_value_and_gradient_equal_a_slow_loop',
    fault='clipping bounds nothing: the optimistic bound is taken',
  ),
  record.Mutation(
    name='policy_gradient_sign',
    file='agents/on_policy/vtrace.py',
    old='PolicyLoss(-transitions_lib.masked_mean(',
    new='PolicyLoss(transitions_lib.masked_mean(',
    tests='tests/agents/on_policy/policy_losses_test.py::test_value_and_gradient_equal_a_slow_loop',
    fault='the policy learns what is worst',
  ),
  record.Mutation(
    name='policy_weights_keep_gradient',
    file='agents/on_policy/vtrace.py',
    old='weights = tf.stop_gradient(ratios * played.advantages)',
    new='weights = ratios * played.advantages',
    tests='tests/agents/on_policy/policy_losses_test.py::test_value_and_gradient_equal_a_slow_loop',
    fault='a gradient passes through the ratio that only weighs',
  ),
  record.Mutation(
    name='advantages_keep_gradient_in_the_policy_loss',
    file='agents/on_policy/loss.py',
    old='mask, advantages = played.mask, tf.stop_gradient(played.advantages)',
    new='mask, advantages = played.mask, played.advantages',
    tests='tests/agents/on_policy/policy_losses_test.py::test_no_gradient_enters_the_advantages',
    fault='the policy loss trains the values through the advantages',
  ),
  record.Mutation(
    name='ppo_reciprocal_bound_for_the_linear_one',
    file='agents/on_policy/algorithm.py',
    old="if ppo_lower_bound == 'linear' else",
    new="if ppo_lower_bound != 'linear' else",
    tests='tests/agents/on_policy/policy_losses_test.py::test_the_two_lower_bounds_of_ppo_'
    'differ_between_1_minus_epsilon_and_its_reciprocal',
    fault="the paper's bound and the original's are exchanged",
  ),
  record.Mutation(
    name='vmpo_worse_half',
    file='agents/on_policy/advantages.py',
    old="direction='DESCENDING')",
    new="direction='ASCENDING')",
    tests='tests/agents/on_policy/vmpo_test.py::test_better_half',
    fault='not the better half is learnt from',
  ),
  record.Mutation(
    name='vmpo_mean_of_all',
    file='agents/on_policy/vmpo.py',
    old='log_mean = log_sum - tf.math.log(count)',
    new='log_mean = log_sum',
    tests='tests/agents/on_policy/vmpo_test.py::test_the_example_in_the_form_of_the_paper',
    fault='the temperature settles at a divergence that depends on the size of the batch',
  ),
  record.Mutation(
    name='advantages_normalised_over_masked_rows',
    file='agents/on_policy/advantages.py',
    old='deviations -= transitions_lib.masked_mean(deviations, mask)',
    new='deviations -= tf.reduce_mean(deviations)',
    tests='tests/agents/on_policy/preprocess_test.py',
    fault='padding shifts the advantages',
  ),
  record.Mutation(
    name='offset_before_the_normalisation',
    file='agents/on_policy/advantages.py',
    old='shifted, kept = advantages + advantage_offset, mask',
    new='shifted, kept = advantages, mask',
    tests='tests/agents/on_policy/preprocess_test.py',
    fault='the offset of advantages has no effect',
  ),
  record.Mutation(
    name='temperature_with_the_speed_of_none',
    file='agents/on_policy/network.py',
    old='return lagrange.weight(self._parameters[_TEMPERATURE], speed=self._temperature.speed)',
    new='return lagrange.weight(self._parameters[_TEMPERATURE], speed=1.0)',
    tests='tests/agents/on_policy/network_test.py::test_learnt_weights_start_where_they_are_told',
    fault='the temperature starts elsewhere and moves at another speed',
  ),
  record.Mutation(
    name='fixed_penalties_are_learnt',
    file='agents/on_policy/network.py',
    old='if penalty.threshold is not None',
    new='if penalty.weight',
    tests='tests/agents/on_policy/network_test.py',
    fault='a weight that is fixed gets a variable that nothing trains',
  ),
  record.Mutation(
    name='popart_statistics_in_every_pass',
    file='agents/on_policy/learner.py',
    old='if network.values is None or not is_first:',
    new='if network.values is None:',
    tests='tests/agents/on_policy/popart_test.py::test_only_the_first_pass_changes_the_statistics',
    fault='each epoch counts its targets again',
  ),
  record.Mutation(
    name='popart_order_exchanged',
    file='agents/on_policy/learner.py',
    old='if algorithm.renews_before_normalizing:',
    new='if not algorithm.renews_before_normalizing:',
    tests='tests/agents/on_policy/popart_test.py::test_the_two_orders_differ_in_the_'
    'statistics_that_normalise',
    fault='targets are normalised by the statistics of the other order',
  ),
  record.Mutation(
    name='advantages_not_divided_by_the_spread',
    file='agents/on_policy/loss.py',
    old='estimates.advantages / network.value_std()',
    new='estimates.advantages',
    tests='tests/agents/on_policy/popart_test.py::test_the_two_orders_differ_in_the_'
    'statistics_that_normalise',
    fault='the policy learns as fast as rewards are large',
  ),
  record.Mutation(
    name='behaviour_of_the_next_row',
    file='agents/on_policy/learner.py',
    old='behaviour = types.ActorCriticOutput(*tree.map_structure(lambda x: x[:-1], '
    'outputs.prediction))',
    new='behaviour = types.ActorCriticOutput(*tree.map_structure(lambda x: x[1:], '
    'outputs.prediction))',
    tests='tests/agents/on_policy/properties_test.py::test_the_first_gradient_step_is_'
    'exactly_on_policy',
    fault='an action is weighed by the probability that it had a row later',
  ),
  record.Mutation(
    name='minibatch_along_time',
    file='agents/on_policy/resolve.py',
    old="axis=0 if config.minibatch_of == 'transitions' else 1",
    new='axis=0',
    tests='tests/agents/on_policy/learner_test.py::test_a_minibatch_has_all_leaves_of_the_'
    'same_elements',
    fault='a minibatch of unrolls is made of rows',
  ),
  record.Mutation(
    name='passes_of_one_epoch',
    file='agents/on_policy/resolve.py',
    old="prepares_each_epoch=config.recompute_advantages == 'epoch',",
    new="prepares_each_epoch=config.recompute_advantages != 'never',",
    tests='tests/agents/on_policy/learner_test.py::test_prepared_targets_change_between_'
    'epochs_only_when_asked',
    fault='advantages are computed anew where the loss does it',
  ),
  record.Mutation(
    name='mode_for_training',
    file='agents/on_policy/policy.py',
    old='tf.cast(exploration.is_evaluation, tf.bool),',
    new='tf.logical_not(exploration.is_evaluation),',
    tests='tests/agents/on_policy/policy_test.py::test_evaluation_rows_take_the_mode_and_the_'
    'others_a_sample',
    fault='training is greedy and evaluation is not',
  ),
  record.Mutation(
    name='free_deviations_for_means',
    file='agents/on_policy/network.py',
    old='params = tf.where(self.distribution.is_std, self._free_std, params)',
    new='params = tf.where(self.distribution.is_std, params, self._free_std)',
    tests='tests/agents/on_policy/free_deviations_test.py::test_free_deviations_do_not_depend_on_'
    'the_observation',
    fault='the means of actions do not depend on the observation',
  ),
  record.Mutation(
    name='values_stay_normalised_when_acting',
    file='agents/on_policy/network.py',
    old=(
      'return types.ActorCriticOutput(\n'
      '      params, value if self.values is None else self.values.value(value)\n'
      '    )'
    ),
    new='return types.ActorCriticOutput(params, value)',
    tests='tests/agents/on_policy/popart_test.py::test_with_compensation_the_predicted_'
    'values_stay_in_units_of_the_reward',
    fault='values are not in units of the reward',
  ),
)
