"""Faults in `seed_acme/networks`: memory, stacks, statistics."""

from __future__ import annotations

from tests.mutations import record

MUTATIONS = (
  record.Mutation(
    name='bound_of_bytes_is_not_looked_at',
    file='seed_acme/ops/byte_scale.py',
    old="_bound(leaf) if byte_scale == 'bound' else float(byte_scale)",
    new='BYTE',
    tests='tests/ops/byte_scale_test.py::test_the_mlp_sees_each_array_by_its_own_bound',
    fault='bytes of 0 and 1 are too small to learn from',
  ),
  record.Mutation(
    name='bias_taught_in_bfloat16',
    file='seed_acme/networks/precision.py',
    old='return tf.nn.bias_add(y, self._b) if x.dtype == tf.float32 else _add_bias(y, self._b)',
    new='return tf.nn.bias_add(y, tf.cast(self._b, x.dtype))',
    tests='tests/networks/precision_test.py::test_the_gradient_of_a_bias_in_bfloat16_is_a_sum_in_'
    'float32',
    fault='the gradient of a bias stays at 256 however large the batch',
  ),
  record.Mutation(
    name='bytes_not_scaled',
    file='seed_acme/networks/image_torsos.py',
    old='scale = 1.0 / divisor if image.dtype == tf.uint8 else 1.0',
    new='scale = 1.0',
    tests='tests/networks/image_torsos_test.py::test_bytes_are_taken_exactly_and_scaled',
    fault='pixels enter the network 255 times too large',
  ),
  record.Mutation(
    name='memory_survives_first',
    file='seed_acme/networks/cores.py',
    old=(
      'return tf.nest.map_structure(\n'
      '    lambda s: tf.raw_ops.Select(condition=is_first, x=tf.zeros_like(s), y=s), state\n'
      '  )'
    ),
    new='return tf.nest.map_structure(lambda s: s, state)',
    tests='tests/networks/cores_test.py::test_a_first_row_forgets_all_before_it_even_nan',
    fault='an episode remembers the one before',
  ),
  record.Mutation(
    name='memory_reset_by_product',
    file='seed_acme/networks/cores.py',
    old='lambda s: tf.raw_ops.Select(condition=is_first, x=tf.zeros_like(s), y=s), state',
    new='lambda s: s * (1.0 - tf.cast(is_first, s.dtype))[:, tf.newaxis], state',
    tests='tests/networks/cores_test.py::test_a_first_row_forgets_all_before_it_even_nan',
    fault='NaN of one episode spoils the next: 0 times NaN',
  ),
  record.Mutation(
    name='gru_gates_exchanged',
    file='seed_acme/networks/cores.py',
    old='z, r = tf.split(tf.sigmoid(x_zr + h_zr), 2, axis=-1)',
    new='r, z = tf.split(tf.sigmoid(x_zr + h_zr), 2, axis=-1)',
    tests='tests/networks/cores_test.py::test_gru_equals_its_equations',
    fault='update and reset gate are exchanged',
  ),
  record.Mutation(
    name='lstm_gradient_through_first',
    file='seed_acme/networks/lstm.py',
    old='    d_hidden, d_cell = cores.reset_state(step.is_first, (d_hidden, d_cell))\n',
    new='',
    tests='tests/networks/cores_test.py::test_lstm_gradients_equal_automatic_differentiation',
    fault='gradients flow into the episode before',
  ),
  record.Mutation(
    name='lstm_backward_in_time_order',
    file='seed_acme/networks/lstm.py',
    old='tf.stack(d_projected[::-1])',
    new='tf.stack(d_projected)',
    tests='tests/networks/cores_test.py::test_lstm_gradients_equal_automatic_differentiation',
    fault='gradients of rows come out in the reverse order of time',
  ),
  record.Mutation(
    name='lstm_forget_bias_at_another_gate',
    file='seed_acme/networks/lstm.py',
    old='tf.zeros([2 * size]), tf.ones([size]), tf.zeros([size])], axis=0)',
    new='tf.zeros([size]), tf.ones([size]), tf.zeros([2 * size])], axis=0)',
    tests='tests/networks/cores_test.py',
    fault='memory does not last before training teaches it to',
  ),
  record.Mutation(
    name='stack_of_oldest_first',
    file='seed_acme/networks/frame_stack.py',
    old='return tf.stack(numbers)',
    new='return tf.stack(numbers[::-1])',
    tests='tests/networks/frame_stack_test.py::test_an_episode_by_hand',
    fault='channels are in the reverse order of time',
  ),
  record.Mutation(
    name='stack_across_first',
    file='seed_acme/networks/frame_stack.py',
    old='is_older = tf.logical_or(is_older, first_by_time[start + 1 : start + 1 + rows])',
    new='is_older = tf.logical_or(is_older, first_by_time[start : start + rows])',
    tests='tests/networks/frame_stack_test.py::test_an_episode_by_hand',
    fault='the first stack of an episode holds an image of the one before',
  ),
  record.Mutation(
    name='popart_bias_without_the_old_mean',
    file='seed_acme/networks/running_statistics.py',
    old='b.assign(tf.where(is_wanted, (mean - new_mean + std * b) / new_std, b))',
    new='b.assign(tf.where(is_wanted, (new_mean - mean + std * b) / new_std, b))',
    tests='tests/networks/value_normalizer_test.py::test_the_last_layer_changes_as_in_the_paper',
    fault='PopArt moves values instead of preserving them',
  ),
  record.Mutation(
    name='popart_after_the_statistics',
    file='seed_acme/networks/running_statistics.py',
    old='_preserve_outputs(*self._last_layer, old, new, preserves)',
    new='_preserve_outputs(*self._last_layer, new, old, preserves)',
    tests='tests/networks/value_normalizer_test.py::test_the_last_layer_changes_as_in_the_paper',
    fault='old and new statistics are exchanged',
  ),
  record.Mutation(
    name='statistics_of_masked_rows',
    file='seed_acme/networks/running_statistics.py',
    old='count = tf.reduce_sum(tf.cast(mask, tf.float64))',
    new='count = tf.cast(tf.size(mask), tf.float64)',
    tests='tests/networks/running_statistics_test.py::test_the_average_is_over_all_unmasked_'
    'rows_there_were',
    fault='padding pulls the mean to 0',
  ),
  record.Mutation(
    name='statistics_without_the_shift_of_means',
    file='seed_acme/networks/running_statistics.py',
    old=(
      'new_variance = (\n'
      '      (1.0 - share) * self._variance + share * variance + '
      'share * (1.0 - share) * tf.square(change)\n'
      '    )'
    ),
    new='new_variance = (1.0 - share) * self._variance + share * '
    'variance + 0.0 * tf.square(change)',
    tests='tests/networks/running_statistics_test.py::test_the_average_is_over_all_unmasked_'
    'rows_there_were',
    fault='the spread between batches is not counted',
  ),
  record.Mutation(
    name='observations_not_clipped_from_below',
    file='seed_acme/networks/running_statistics.py',
    old='statistics.deviation(x) / statistics.std(), -self._clip, self._clip',
    new='statistics.deviation(x) / statistics.std(), -1e30, self._clip',
    tests='tests/networks/running_statistics_test.py',
    fault='a sensor that fails downwards dominates the network',
  ),
  record.Mutation(
    name='image_one_pixel_too_small',
    file='seed_acme/networks/requirements.py',
    old='least = (least - 1) * stride + size',
    new='least = (least - 1) * stride + size - 1',
    tests='tests/networks/requirements_test.py',
    fault='a run starts whose images the torso cannot take',
  ),
  record.Mutation(
    name='colour_images_are_stacked',
    file='seed_acme/networks/requirements.py',
    old='(len(shapes[0]) == 3 and shapes[0][2] == 1)):',
    new='(len(shapes[0]) == 3)):',
    tests='tests/networks/frame_stack_test.py::test_what_is_not_one_grey_image_is_refused',
    fault='of colour images the stack has too many numbers',
  ),
)
