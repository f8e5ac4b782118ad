"""Batches of equal parts from all shards."""

import queue

import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.replay.shards import samples as samples_lib


class _Prefetcher:
  """A prefetcher with given samples, which waits for them up to the time-out."""

  def __init__(self):
    self.samples = queue.Queue()
    self.is_started = self.is_stopped = False

  def start(self):
    self.is_started = True

  def next(self, timeout_s):
    try:
      return self.samples.get(timeout=timeout_s) if timeout_s else self.samples.get_nowait()
    except queue.Empty:
      return None

  def stop(self):
    self.is_stopped = True


@pytest.fixture(name='sample')
def _sample(coded_unrolls):
  """`sample(first, number)`: sampled unrolls, time-major; keys count from 10 x first."""

  def make(first, number):
    unroll = tree.map_structure(tf.constant, coded_unrolls(first, number))
    rows = lambda nest: tree.map_structure(
      lambda x: tf.transpose(x, (1, 0, *range(2, x.shape.rank))), nest
    )
    return types.Sample(
      types.Unroll(unroll.initial_state, *rows(unroll[1:])),
      keys=tf.constant(np.arange(10 * first, 10 * first + number), tf.uint64),
      probabilities=tf.fill([number], tf.constant(0.5, tf.float64)),
    )

  return make


def test_the_parts_follow_each_other_and_halve_the_probabilities(sample):
  joined = samples_lib.join([sample(0, 2), sample(2, 2)])
  expected = sample(0, 4)
  tree.map_structure(np.testing.assert_array_equal, joined.unroll, expected.unroll)
  tree.map_structure(lambda x, y: _same_kind(x, y), joined, expected)
  assert joined.keys.numpy().tolist() == [0, 1, 20, 21]
  assert joined.probabilities.numpy().tolist() == [0.25] * 4


def _same_kind(x, y):
  assert (x.dtype, x.shape) == (y.dtype, y.shape)


def test_one_shard_costs_nothing(sample):
  only = sample(0, 2)
  assert samples_lib.join([only]) is only


def test_a_part_that_has_come_waits_for_the_others(sample):
  first, second = _Prefetcher(), _Prefetcher()
  samples = samples_lib.Samples([first, second])
  samples.start()
  assert first.is_started and second.is_started
  second.samples.put(sample(1, 1))
  assert samples.next(0.01) is None
  second.samples.put(sample(3, 1))  # from the next batch
  first.samples.put(sample(0, 1))
  assert samples.next(0.01).keys.numpy().tolist() == [0, 10]
  assert samples.next(0.01) is None
  first.samples.put(sample(2, 1))
  assert samples.next(0.01).keys.numpy().tolist() == [20, 30]
  samples.stop()
  assert first.is_stopped and second.is_stopped
