"""Samples from Reverb: batched, time-major and prefetched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
import functools
import queue
import threading

import reverb
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.progress import waiting
from seed_acme.replay import local_items
from seed_acme.replay import server as server_lib
from seed_acme.replay import tables


def make_samples(
  server_address: str,
  batch_size: int,
  unrolls_per_item: int,
  prefetch_batches: int,
  items: local_items.LocalItems | None = None,
  on_dropped: Callable[[str], None] = print,
  example: types.Unroll | None = None,
  is_memory: bool = False,
) -> Iterable[types.Sample]:
  """Yields `types.Sample` of `batch_size` unrolls, `[L, B, ...]`.

  prefetch_batches: samples that the `Prefetcher` fetches ahead; with 0, Reverb takes items one by
  one from any server. items: the items whose tickets the table holds; None = the table holds the
  items. on_dropped: see `local_items.Samples`. example: an unroll with the classes that samples
  shall have, because Reverb's signature loses those of NamedTuples; None = they may be lost.
  is_memory: whether the table hands out an item again and again. TensorFlow then makes the batches,
  which is faster for many small items. If it meets an item of another form, it loses those of the
  same batch that came before, which a queue would not hand out again.
  """
  under_way = num_items_under_way(server_address, batch_size, unrolls_per_item, prefetch_batches)
  dataset = make_items(server_address, tables.UNROLLS, under_way)
  options = tf.data.Options()
  options.threading.private_threadpool_size = 1
  options.threading.max_intra_op_parallelism = 1
  options.deterministic = True
  # Both would take a batch out of the table ahead of time.
  options.experimental_optimization.map_parallelization = False
  options.experimental_optimization.inject_prefetch = False
  num_items = batch_size // unrolls_per_item
  if not is_memory:
    take = functools.partial(_whole, example) if items is None else items.take
    queue = dataset.with_options(options)
    return local_items.Samples(queue, take, num_items, unrolls_per_item, on_dropped)
  dataset = dataset.batch(num_items, drop_remainder=True)
  to_sample = functools.partial(
    _to_sample, batch_size=batch_size, unrolls_per_item=unrolls_per_item, example=example
  )
  # AutoGraph would convert `to_sample`, and `tree` with it, for a second at the start of each run.
  return dataset.map(tf.autograph.experimental.do_not_convert(to_sample)).with_options(options)


def _whole(example: types.Unroll | None, drawn: types.Nest) -> local_items.Parts:
  """Returns an item that the table itself holds."""
  structure = types.Unroll(*drawn) if example is None else example
  return [tree.unflatten_as(structure, [leaf.numpy() for leaf in tree.flatten(drawn)])]


def _to_sample(
  items: reverb.ReplaySample,
  *,
  batch_size: int,
  unrolls_per_item: int,
  example: types.Unroll | None,
) -> types.Sample:
  """Makes a sample of items `[I, U, L, ...]`, whose `batch_size` unrolls become `[L, B, ...]`."""
  merge = lambda x: tf.reshape(x, (batch_size, *x.shape[2:]))
  unroll = tree.map_structure(merge, types.Unroll(*items.data))
  if example is not None:
    unroll = tree.unflatten_as(example, tree.flatten(unroll))
  time_major = lambda x: tf.transpose(x, (1, 0, *range(2, x.shape.rank)))
  return types.Sample(
    unroll=types.Unroll(
      initial_state=unroll.initial_state,
      inputs=tree.map_structure(time_major, unroll.inputs),
      outputs=tree.map_structure(time_major, unroll.outputs),
      policy_version=time_major(unroll.policy_version),
    ),
    keys=tf.repeat(items.info.key, unrolls_per_item),
    probabilities=tf.repeat(items.info.probability, unrolls_per_item),
  )


def num_items_under_way(
  server_address: str, batch_size: int, unrolls_per_item: int, prefetch_batches: int
) -> int:
  """Returns how many items Reverb takes out of the table before they are asked for."""
  if server_lib.is_in_this_process(server_address) or not prefetch_batches:
    return 1
  return max(2, batch_size // unrolls_per_item)


def make_items(server_address: str, table: str, num_under_way: int) -> tf.data.Dataset:
  """Yields the items of a table one by one, and loses none.

  num_under_way: items that Reverb requests at a time from a server in another process.

  In the server's own process, Reverb waits at the table in slices of 3 s. A request for several
  items whose slice ends while it holds some of them drops these, so a queue loses them and a memory
  counts them as drawn. A request for one item ends as soon as it holds the item. Over gRPC,
  requests wait without a limit.

  There is one worker, because two on a queue would take each other's items.
  """
  num_under_way = 1 if server_lib.is_in_this_process(server_address) else num_under_way
  with waiting.on(f'the replay server at {server_address} to describe its tables'):
    return reverb.TrajectoryDataset.from_table_signature(
      server_address=server_address,
      table=table,
      num_workers_per_iterator=1,
      max_in_flight_samples_per_worker=num_under_way,
    )


class Prefetcher:
  """Fetches samples in its own thread, so that the trainer's wait for one can be interrupted.

  The trainer's thread must see signals and the end of the program; a thread inside the
  dataset's iterator sees neither.
  """

  def __init__(
    self,
    samples: Iterable[types.Sample],
    on_failure: Callable[[BaseException], None],
    num_ahead: int,
    on_dropped: Callable[[str], None] = print,
  ):
    """num_ahead: samples to fetch before they are asked for; 0 = fetch each when it is asked for.
    on_dropped: called with the reason when an item of a replay memory does not match the table's
    signature, which any client can insert. Draws of the same batch that came before it are lost."""
    # A SimpleQueue of Python 3.10 waits for ever if its timeout runs out at a bad moment.
    self._queue: queue.Queue[types.Sample] = queue.Queue()
    self._iterator: Iterator[types.Sample] = iter(samples)
    self._on_failure = on_failure
    self._on_dropped = on_dropped
    self._wanted = threading.Semaphore(num_ahead)  # samples to fetch
    self._has_asked = False  # for the sample that `next` returns
    self._stopped = threading.Event()
    self._thread = threading.Thread(target=self._run, name='prefetch', daemon=True)
    self.num_fetched = self.num_received = 0  # samples taken from the dataset, and by the trainer

  def start(self) -> None:
    self._thread.start()

  def next(self, timeout_s: float) -> types.Sample | None:
    """Returns the next sample, or None after `timeout_s`; a later call then returns the sample."""
    if not self._has_asked:
      self._has_asked = True
      self._wanted.release()
    try:
      sample = self._queue.get(timeout=timeout_s)
    except queue.Empty:
      return None
    self._has_asked = False
    self.num_received += 1
    return sample

  def _run(self) -> None:
    try:
      while True:
        self._wanted.acquire()
        if self._stopped.is_set():
          return
        sample = self._fetch()
        self.num_fetched += 1
        self._queue.put(sample)
    except BaseException as error:  # handed to the owner, who ends the node
      if not self._stopped.is_set():
        self._on_failure(error)

  def _fetch(self) -> types.Sample:
    while True:
      try:
        return next(self._iterator)
      except StopIteration:
        raise RuntimeError('the samples of the replay ended') from None
      except tf.errors.InvalidArgumentError as error:
        self._on_dropped(local_items.why_another_form(error))

  def stop(self) -> None:
    """Tells the thread to end, after a fetch in progress, and does not wait for it.

    Nothing wakes a thread that waits inside Reverb, not even the end of a server in this
    process. The thread is therefore a daemon, which ends with the process.
    """
    self._stopped.set()
    self._wanted.release()
