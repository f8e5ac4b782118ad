"""Running mean and standard deviation, and normalised observations."""

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme.networks import running_statistics


def _batches(number=20, shape=(3,), seed=0):
  """Returns (rows, mask) of unequal sizes, with NaN in masked rows; some are all masked."""
  rng = np.random.default_rng(seed)
  result = []
  for i in range(number):
    size = int(rng.integers(1, 12))
    rows = rng.normal(5.0 * (i - 8), 1.0 + i, (size, *shape))
    mask = rng.random(size) < (0.0 if i in (0, 7) else 0.7)
    rows[~mask] = np.nan
    result.append((rows.astype(np.float32), mask))
  return result


def _statistics(shape=(3,), decay=None):
  return running_statistics.RunningStatistics(shape, decay, 'statistics')


def _assert_close(statistics, mean, std, rtol=1e-5):
  np.testing.assert_allclose(statistics.mean(), mean, rtol=rtol, atol=1e-6)
  np.testing.assert_allclose(statistics.std(), std, rtol=rtol)


@pytest.mark.parametrize('shape', [(), (3,), (2, 2)])
def test_the_average_is_over_all_unmasked_rows_there_were(shape):
  statistics, seen = _statistics(shape), np.zeros((0, *shape))
  for rows, mask in _batches(shape=shape):
    statistics.update(tf.constant(rows), tf.constant(mask))
    seen = np.concatenate([seen, rows[mask].astype(np.float64)])
    if len(seen) > 1:
      _assert_close(statistics, seen.mean(axis=0), seen.std(axis=0))
  assert len(seen) > 50


@pytest.mark.parametrize('decay', [0.01, 0.3, 1.0])
def test_forgetting_equals_a_slow_loop_over_weighted_moments(decay):
  """Batch i of n has the weight beta (1 - beta)^(n - i), divided by the sum of all weights."""
  statistics, moments = _statistics(decay=decay), []
  for rows, mask in _batches():
    statistics.update(tf.constant(rows), tf.constant(mask))
    if mask.any():
      kept = rows[mask].astype(np.float64)
      moments.append((kept.mean(axis=0), kept.var(axis=0)))
    if len(moments) > 1:
      weights = (1 - decay) ** np.arange(len(moments))[::-1].astype(np.float64)
      weighted = lambda x: np.tensordot(weights / weights.sum(), x, 1)  # noqa: B023
      means, variances = (np.stack(x) for x in zip(*moments))
      variance = weighted(variances + (means - weighted(means)) ** 2)
      _assert_close(statistics, weighted(means), np.maximum(1e-6, np.sqrt(variance)))


@pytest.mark.parametrize('decay', [None, 0.1])
def test_before_the_first_update_nothing_is_changed_by_it(decay):
  statistics = _statistics(decay=decay)
  for _ in range(2):
    np.testing.assert_array_equal(statistics.mean(), np.zeros(3))
    np.testing.assert_array_equal(statistics.std(), np.ones(3))
    statistics.update(tf.fill([4, 3], np.nan), tf.fill([4], False))  # all masked: no update


@pytest.mark.parametrize('decay', [None, 0.1])
def test_the_first_batch_is_not_mixed_with_the_zeros_before_it(decay):
  statistics = _statistics(decay=decay)
  rows = np.float32([[1, 2, 3], [3, 2, 7]])
  statistics.update(tf.constant(rows), tf.fill([2], True))
  _assert_close(statistics, [2, 2, 5], [1, 1e-6, 2])


def test_the_standard_deviation_stays_within_its_bounds():
  statistics = _statistics()
  statistics.update(tf.constant([[4.0, -3e9, 1.0], [4.0, 3e9, 2.0]]), tf.fill([2], True))
  np.testing.assert_allclose(statistics.std(), [1e-6, 3e9, 0.5], rtol=1e-6)


def test_the_mean_still_moves_after_1e8_rows():
  """One batch of 1,000 rows changes it by 3e-6, less than half of float32's spacing at 100, so a
  mean in float32 would not change."""
  statistics = _statistics(())
  start = {'statistics/mean:0': 100.0, 'statistics/variance:0': 1.0, 'statistics/weight:0': 1e8}
  for variable in statistics.variables:
    variable.assign(start[variable.name])
  in_float32 = np.float32(100)
  update = tf.function(
    lambda: statistics.update(tf.fill([1000], 100.3), tf.fill([1000], True)), autograph=False
  )
  for i in range(500):
    update()
    in_float32 += np.float32(1000 / (1e8 + 1000 * (i + 1))) * (np.float32(100.3) - in_float32)
  share = 5e5 / (1e8 + 5e5)
  assert in_float32 == 100
  np.testing.assert_allclose(statistics.mean() - 100.0, 0.3 * share, rtol=1e-2)


def test_a_large_mean_does_not_eat_the_variance():
  """Sums of squares would lose it: 1e6^2 leaves no digits in float32 for a variance of 1."""
  rng, statistics = np.random.default_rng(0), _statistics(())
  rows = (1e6 + rng.normal(0, 3, (50, 20))).astype(np.float32)
  for batch in rows:
    statistics.update(tf.constant(batch), tf.fill([20], True))
  np.testing.assert_allclose(statistics.std(), rows.astype(np.float64).std(), rtol=1e-5)


@pytest.mark.parametrize('last_layer', [False, True])
@pytest.mark.parametrize('compensates', [False, True])
def test_only_an_appended_layer_is_trainable_and_names_are_unique(compensates, last_layer):
  layer = (tf.Variable([[2.0]]), tf.Variable([1.0])) if last_layer else None
  observations = running_statistics.ObservationNormalizer(
    {'a': specs.Array((2,), np.float32), 'b': specs.Array((), np.float64)}, None, 5.0
  )
  values = running_statistics.ValueNormalizer(0.1, compensates, True, layer)
  assert not any(v.trainable for v in observations.variables)
  trainable = ['values/scale:0', 'values/shift:0'] if compensates and not last_layer else []
  assert [v.name for v in values.variables if v.trainable] == trainable
  assert [v.name for v in values.trainable_variables] == trainable
  for module, count in ((observations, 6), (values, 5 + len(trainable))):
    names = [v.name for v in module.variables]
    assert len(set(names)) == len(names) == count


_NESTED = {
  'speed': specs.Array((2,), np.float64),
  'image': specs.Array((4, 4), np.uint8),
  'pair': (specs.Array((), np.float32), specs.Array((), np.int32)),
}


def _observations(rng, *shape):
  return {
    'speed': rng.normal([3.0, -5.0], [2.0, 0.1], (*shape, 2)),
    'image': rng.integers(0, 256, (*shape, 4, 4)).astype(np.uint8),
    'pair': (
      rng.normal(100.0, 50.0, shape).astype(np.float32),
      rng.integers(0, 9, shape).astype(np.int32),
    ),
  }


def test_floats_are_normalised_integers_pass_and_the_nest_is_kept():
  rng = np.random.default_rng(0)
  normalizer = running_statistics.ObservationNormalizer(_NESTED, None, clip=2.0)
  observation, mask = _observations(rng, 5, 3), rng.random((5, 3)) < 0.6
  observation['speed'][~mask] = np.nan
  normalizer.update(tf.nest.map_structure(tf.constant, observation), tf.constant(mask))
  other = _observations(rng, 7)
  result = normalizer(tf.nest.map_structure(tf.constant, other))
  tf.nest.assert_same_structure(result, other)
  for actual, raw, seen in (
    (result['speed'], other['speed'], observation['speed'][mask]),
    (result['pair'][0], other['pair'][0], observation['pair'][0][mask]),
  ):
    expected = (raw - seen.mean(axis=0)) / seen.std(axis=0)
    assert actual.dtype == tf.float32
    np.testing.assert_allclose(actual, np.clip(expected, -2, 2), rtol=1e-3, atol=1e-3)
    assert (np.abs(expected) > 2).any() and (np.abs(expected) < 2).any()
  np.testing.assert_array_equal(result['image'], other['image'])
  np.testing.assert_array_equal(result['pair'][1], other['pair'][1])
  assert result['image'].dtype == tf.uint8


def test_an_observation_of_integers_alone_has_no_statistics():
  normalizer = running_statistics.ObservationNormalizer(specs.Array((2,), np.uint8), None, 5.0)
  observation = tf.constant([[[3, 200]]], tf.uint8)
  normalizer.update(observation, tf.constant([[True]]))
  np.testing.assert_array_equal(normalizer(observation), observation)
  assert normalizer.variables == ()


def test_a_fresh_normaliser_only_clips():
  normalizer = running_statistics.ObservationNormalizer(specs.Array((2,), np.float32), None, 10.0)
  np.testing.assert_array_equal(normalizer(tf.constant([[0.5, -30.0]])), np.float32([[0.5, -10.0]]))


@pytest.mark.parametrize(
  'dtype, mean, std', [(np.float64, 1.7e9, 3.0), (np.float32, 1e9, 1e8), (np.float32, -2e12, 1e12)]
)
def test_large_offsets_and_spreads_are_normalised(dtype, mean, std):
  """Seconds since 1970 in float64, for example, all round to one number in float32."""
  x = np.random.default_rng(0).normal(mean, std, (2000, 2)).astype(dtype)
  normalizer = running_statistics.ObservationNormalizer(specs.Array((2,), dtype), None, 10.0)
  normalizer.update(tf.constant(x[np.newaxis]), tf.fill([1, 2000], True))
  said = normalizer(tf.constant(x)).numpy()
  np.testing.assert_allclose(said.mean(axis=0), 0, atol=1e-3)
  np.testing.assert_allclose(said.std(axis=0), 1, rtol=1e-3)
