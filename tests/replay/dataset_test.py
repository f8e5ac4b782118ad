"""Samples from a real server: their values, their order, and the end of prefetching."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import reverb
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.replay import dataset as dataset_lib
from seed_acme.replay import tables
from seed_acme.replay import writer as writer_lib

pytestmark = pytest.mark.timeout(60)


def _insert(server, unrolls_per_item, unrolls):
  writer = writer_lib.ReplayWriter(server.address, unrolls_per_item, backlog=1000)
  writer.put(unrolls)
  while writer.has_item():
    writer.write_item()
  writer.stop()


def _assert_is_time_major(sample, unrolls):
  """Compares a sample with the inserted unrolls `[B, L, ...]`, element by element."""
  num_unrolls, num_rows = unrolls.policy_version.shape
  rows = [tree.flatten(x) for x in (sample.unroll[1:], unrolls[1:])]
  for actual, wanted in zip(*rows):
    assert actual.shape == (num_rows, num_unrolls, *wanted.shape[2:])
    assert actual.dtype == tf.as_dtype(wanted.dtype)
    actual = actual.numpy()
    for b in range(num_unrolls):
      for t in range(num_rows):
        np.testing.assert_array_equal(actual[t, b], wanted[b, t])
  for actual, wanted in zip(
    tree.flatten(sample.unroll.initial_state), tree.flatten(unrolls.initial_state)
  ):
    np.testing.assert_array_equal(actual, wanted)


def test_no_wait_for_a_sample_outlasts_its_time():
  """In Python 3.10, waiting for a SimpleQueue could exceed it, once in some ten thousand calls."""
  prefetcher = dataset_lib.Prefetcher((), on_failure=print, num_ahead=0)
  for _ in range(100_000):
    assert prefetcher.next(timeout_s=0.0) is None


@pytest.mark.parametrize('unrolls_per_item', [1, 4, 16])
def test_every_unroll_comes_once_in_order_time_major(
  serve, coded_unrolls, iterate, unrolls_per_item
):
  batch_size, num_batches = 16, 3
  number = batch_size * num_batches
  server = serve(queue_size=number, unrolls_per_item=unrolls_per_item)
  _insert(server, unrolls_per_item, coded_unrolls(0, number))
  samples = iterate(
    dataset_lib.make_samples(server.address, batch_size, unrolls_per_item, prefetch_batches=1)
  )
  keys = []
  for i in range(num_batches):
    sample = next(samples)
    assert isinstance(sample, types.Sample)
    _assert_is_time_major(sample, coded_unrolls(i * batch_size, batch_size))
    assert sample.keys.shape == sample.probabilities.shape == (batch_size,)
    assert (sample.keys.dtype, sample.probabilities.dtype) == (tf.uint64, tf.float64)
    keys.extend(sample.keys.numpy().tolist())
  # One key for each item, which all its unrolls have.
  by_item = np.reshape(np.array(keys, np.uint64), (-1, unrolls_per_item))
  assert (by_item == by_item[:, :1]).all()
  assert len(set(by_item[:, 0].tolist())) == number // unrolls_per_item


@pytest.mark.parametrize('is_memory', [False, True])
def test_unrolls_have_the_classes_of_the_example(serve, coded_unrolls, iterate, is_memory):
  """A network may look at the class of its state."""
  server = serve(queue_size=8, unrolls_per_item=2)
  _insert(server, 2, coded_unrolls(0, 4))
  example = tree.map_structure(lambda x: x[0], coded_unrolls(0, 1))
  samples = dataset_lib.make_samples(server.address, 4, 2, 1, example=example, is_memory=is_memory)
  unroll = next(iterate(samples)).unroll
  _assert_is_time_major(types.Sample(unroll, None, None), coded_unrolls(0, 4))
  assert isinstance(unroll.inputs, types.AgentInput)
  assert isinstance(unroll.outputs.prediction, types.ActorCriticOutput)


def test_shapes_are_static(serve):
  """The learner traces once, so batch size and rows have to be static."""
  server = serve(queue_size=8, unrolls_per_item=2)
  spec = dataset_lib.make_samples(server.address, 4, 2, 1, is_memory=True).element_spec
  assert all(leaf.shape.is_fully_defined() for leaf in tree.flatten(spec.unroll))


def test_unrolls_inserted_while_it_is_read_keep_their_order(serve, coded_unrolls, iterate):
  server = serve(queue_size=4, unrolls_per_item=2)
  writer = writer_lib.ReplayWriter(server.address, unrolls_per_item=2, backlog=1000)
  writer.start(on_room=lambda: None, on_failure=lambda error: None)
  writer.put(coded_unrolls(0, 40))
  samples = iterate(dataset_lib.make_samples(server.address, 4, 2, 1))
  seen = [next(samples).unroll.policy_version[0].numpy() // 100 for _ in range(10)]
  np.testing.assert_array_equal(np.concatenate(seen), np.arange(40))
  writer.stop()


@pytest.fixture
def join_prefetchers():
  """Waits for the threads of this test alone, since another test's may wait in Reverb for ever."""
  others = set(threading.enumerate())

  def join():
    for thread in set(threading.enumerate()) - others:
      if thread.name == 'prefetch':
        thread.join(timeout=60)
        assert not thread.is_alive(), 'the prefetcher does not end'

  return join


def test_the_prefetcher_hands_on_samples_in_order_and_none_in_time(
  serve, coded_unrolls, join_prefetchers
):
  server = serve(queue_size=64, unrolls_per_item=2)
  _insert(server, 2, coded_unrolls(0, 10))
  failures = []
  prefetcher = dataset_lib.Prefetcher(
    dataset_lib.make_samples(server.address, 4, 2, 1), failures.append, num_ahead=1
  )
  prefetcher.start()
  for first in (0, 4):
    sample = prefetcher.next(timeout_s=30)
    _assert_is_time_major(sample, coded_unrolls(first, 4))
  assert prefetcher.next(timeout_s=0.05) is None  # 2 unrolls do not fill a batch
  prefetcher.stop()
  _insert(server, 2, coded_unrolls(10, 8))  # the thread wakes up and sees that it is stopped
  join_prefetchers()
  assert not failures


def test_the_prefetcher_stops_while_it_waits_for_the_trainer(
  serve, coded_unrolls, join_prefetchers
):
  server = serve(queue_size=64, unrolls_per_item=2)
  _insert(server, 2, coded_unrolls(0, 64))
  failures = []
  prefetcher = dataset_lib.Prefetcher(
    dataset_lib.make_samples(server.address, 4, 2, 1), failures.append, num_ahead=1
  )
  prefetcher.start()
  assert prefetcher.next(timeout_s=30) is not None
  prefetcher.stop()
  join_prefetchers()
  assert not failures


class _Countable:
  """An iterator of numbers from 0 that shows its position and can be paused."""

  def __init__(self):
    self.number = 0
    self.may_go_on = threading.Event()
    self.may_go_on.set()

  def __iter__(self):
    return self

  def __next__(self):
    self.may_go_on.wait()
    self.number += 1
    return self.number - 1


@pytest.mark.parametrize('num_ahead', [0, 1, 3])
def test_the_prefetcher_is_ahead_by_so_many_samples_exactly(num_ahead, join_prefetchers):
  samples = _Countable()
  prefetcher = dataset_lib.Prefetcher(samples, print, num_ahead)
  prefetcher.start()
  for number in range(5):
    _until(lambda: samples.number >= number + num_ahead)  # noqa: B023
    time.sleep(0.01)  # gives it time to fetch too much
    assert samples.number == number + num_ahead
    assert prefetcher.next(timeout_s=30) == number
  prefetcher.stop()
  join_prefetchers()


def test_who_asks_again_after_a_time_out_asks_for_the_same_sample(join_prefetchers):
  samples = _Countable()
  samples.may_go_on.clear()
  prefetcher = dataset_lib.Prefetcher(samples, print, num_ahead=0)
  prefetcher.start()
  assert [prefetcher.next(timeout_s=0.001) for _ in range(4)] == [None] * 4
  samples.may_go_on.set()
  assert prefetcher.next(timeout_s=30) == 0
  prefetcher.stop()
  join_prefetchers()
  assert samples.number == 1


def _until(is_so):
  give_up = time.monotonic() + 30
  while not is_so():
    assert time.monotonic() < give_up
    time.sleep(0.002)


@pytest.mark.parametrize('prefetch_batches, items_ahead', [(0, 1), (1, 2 + 1), (3, 6 + 1)])
def test_what_is_taken_out_of_the_table_ahead_of_the_learner(
  serve, coded_unrolls, prefetch_batches, items_ahead, join_prefetchers
):
  """Items have two unrolls, and batches two items. Reverb itself has one item in flight once the
  first sample is wanted."""
  server = serve(queue_size=64, unrolls_per_item=2)
  _insert(server, 2, coded_unrolls(0, 64))
  client = reverb.Client(server.address)

  def num_taken():
    return 32 - client.server_info()[tables.UNROLLS].current_size

  failures = []
  prefetcher = dataset_lib.Prefetcher(
    dataset_lib.make_samples(server.address, 4, 2, prefetch_batches),
    failures.append,
    prefetch_batches,
  )
  prefetcher.start()
  for number in range(3):
    wanted = 2 * number + items_ahead if number or prefetch_batches else 0
    _until(lambda: num_taken() >= wanted)  # noqa: B023
    time.sleep(0.05)  # gives it time to fetch too much
    assert num_taken() == wanted
    sample = prefetcher.next(timeout_s=30)
    _assert_is_time_major(sample, coded_unrolls(4 * number, 4))
  prefetcher.stop()
  join_prefetchers()
  assert not failures


_WAITING_FOR_DATA = """
import numpy as np
from seed_acme import core
from seed_acme import types
from seed_acme.replay import dataset, server

rows = np.zeros(3, np.float32)
example = types.Unroll((), types.AgentInput(*[rows] * 5), types.AgentOutput(rows, rows),
                       np.zeros(3, np.int64))
replay = server.ReplayServer(core.ReplaySpec(), 4, 8, 2, example, port=0)
prefetcher = dataset.Prefetcher(dataset.make_samples(replay.address, 4, 2, 1), print, num_ahead=1)
prefetcher.start()
assert prefetcher.next(timeout_s=0.5) is None
prefetcher.stop()
replay.stop()
print('over')
"""


@pytest.mark.slow
@pytest.mark.timeout(300)  # starts a process beside other slow tests
def test_a_prefetcher_that_waits_for_data_does_not_hold_up_the_process():
  result = subprocess.run(
    [sys.executable, '-c', _WAITING_FOR_DATA], capture_output=True, text=True, check=False
  )
  assert (result.returncode, result.stdout) == (0, 'over\n'), result.stderr


def test_a_dataset_that_ends_is_a_failure(join_prefetchers):
  failures = []
  prefetcher = dataset_lib.Prefetcher(tf.data.Dataset.range(2), failures.append, num_ahead=5)
  prefetcher.start()
  join_prefetchers()
  assert [prefetcher.next(1).numpy(), prefetcher.next(1).numpy()] == [0, 1]
  assert len(failures) == 1
  assert 'ended' in str(failures[0])


def test_an_item_of_another_form_costs_a_queue_no_other_one(monkeypatch, coded_unrolls):
  data = tree.map_structure(lambda x: x.reshape(4, 2, *x.shape[1:]), coded_unrolls(0, 8))
  numbers = np.arange(4, dtype=np.uint64)
  info = reverb.SampleInfo(*[numbers.astype(float)] * len(reverb.SampleInfo._fields))
  info = info._replace(key=numbers)

  def fail_at_1(sample):
    is_ours = tf.debugging.assert_none_equal(
      sample.info.key, np.uint64(1), message='Received incompatible tensor. More of it'
    )
    with tf.control_dependencies([is_ours]):
      return tree.map_structure(tf.identity, sample)

  drawn = tf.data.Dataset.from_tensor_slices(reverb.ReplaySample(info, data)).map(fail_at_1)
  monkeypatch.setattr(dataset_lib, 'make_items', lambda *_: drawn)
  dropped = []
  prefetcher = dataset_lib.Prefetcher(
    dataset_lib.make_samples('localhost:1', 4, 2, 1, on_dropped=dropped.append), print, 0, print
  )
  prefetcher.start()
  sample = prefetcher.next(timeout_s=30)
  prefetcher.stop()
  np.testing.assert_array_equal(sample.unroll.policy_version[0] // 100, [0, 1, 4, 5])
  np.testing.assert_array_equal(sample.keys, [0, 0, 2, 2])
  assert len(dropped) == 1 and 'incompatible tensor' in dropped[0]


_STRANGER = """
import sys, numpy as np, reverb, tree
client = reverb.Client(sys.argv[1])
signature = client.server_info(20)[sys.argv[2]].signature
row = tree.map_structure(lambda x: np.zeros(x.shape, x.dtype.as_numpy_dtype), signature)
client.insert(row, {sys.argv[2]: 1.0})  # with one more axis, which is time to it
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_item_of_another_shape_is_dropped_and_no_other_one_is_lost(
  serve, coded_unrolls, join_prefetchers
):
  server = serve(queue_size=64, unrolls_per_item=2)
  _insert(server, 2, coded_unrolls(0, 2))
  # From another process, because in this one Reverb compares the shapes itself.
  arguments = [sys.executable, '-c', _STRANGER, server.address, tables.UNROLLS]
  subprocess.run(arguments, check=True)
  _insert(server, 2, coded_unrolls(2, 6))
  failures, dropped = [], []
  prefetcher = dataset_lib.Prefetcher(
    dataset_lib.make_samples(server.address, 4, 2, 1, on_dropped=dropped.append),
    failures.append,
    1,
    dropped.append,
  )
  prefetcher.start()
  for first in (0, 4):
    sample = prefetcher.next(30)
    found = sample.unroll.policy_version[0].numpy() // 100
    np.testing.assert_array_equal(found, np.arange(first, first + 4))
  assert not failures and len(dropped) == 1 and 'incompatible tensor' in dropped[0]
  prefetcher.stop()


def test_a_dataset_that_fails_hands_the_error_on(join_prefetchers):

  def fail(x):
    with tf.control_dependencies([tf.debugging.assert_less(x, np.int64(1))]):
      return tf.identity(x)

  failures = []
  prefetcher = dataset_lib.Prefetcher(
    tf.data.Dataset.range(tf.constant(5, tf.int64)).map(fail), failures.append, num_ahead=5
  )
  prefetcher.start()
  join_prefetchers()
  assert prefetcher.next(1).numpy() == 0
  assert len(failures) == 1
  assert isinstance(failures[0], tf.errors.InvalidArgumentError)
