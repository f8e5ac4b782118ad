"""A Reverb server that counts calls."""

import threading

import numpy as np
import reverb
import tensorflow as tf

from seed_acme.replay import inspection

FIFO, UNIFORM = reverb.selectors.Fifo, reverb.selectors.Uniform
limiters = reverb.rate_limiters
SIGNATURE = {'x': tf.TensorSpec((2,), tf.float32), 'y': [tf.TensorSpec((), tf.int32)]}
MANY = 60  # calls after which a side counts as never blocking


class Served:
  """A server with one table, a writer for it, and its inspection."""

  def __init__(self, table):
    self.server = reverb.Server([table] if isinstance(table, reverb.Table) else table)
    self.address = f'localhost:{self.server.port}'
    self.inspected = inspection.Server(self.address, timeout_s=60)  # long enough for a busy machine
    self._client = reverb.Client(self.address)
    self._writers = []

  def table(self, name='t'):
    return self.inspected.snapshot().tables[name]

  def insert(self, number, name='t', priority=1.0):
    """Inserts items one by one; returns how many were admitted before one had to wait.

    The result depends on the server's state, not on time: either the count rises, or its worker
    reports a waiting insert.
    """
    writer = self._client.trajectory_writer(num_keep_alive_refs=1)
    self._writers.append(writer)
    pause = threading.Event()
    for i in range(number):
      before = self.table(name)
      assert before.inserts_waited_s == 0
      writer.append({'x': np.full(2, i, np.float32), 'y': [np.int32(i)]})
      writer.create_item(
        name, priority, {'x': writer.history['x'][-1], 'y': [writer.history['y'][0][-1]]}
      )
      writer.flush(block_until_num_items=1)
      while True:
        now = self.table(name)
        if now.limiter.inserts > before.limiter.inserts:
          break
        if now.inserts_waited_s > 0:
          return i
        pause.wait(0.005)
    return number

  def sample(self, number, name='t'):
    """Samples until a sample is refused; returns how many came."""
    shapes = {'x': tf.TensorShape((2,)), 'y': (tf.TensorShape(()),)}
    dataset = reverb.TrajectoryDataset(
      self.address,
      name,
      dtypes={'x': tf.float32, 'y': (tf.int32,)},
      shapes=shapes,
      max_in_flight_samples_per_worker=1,
      num_workers_per_iterator=1,
      rate_limiter_timeout_ms=100,
      max_samples=number,
    )
    return sum(1 for _ in dataset)

  def stop(self):
    for name in self.inspected.snapshot().tables:
      self._client.reset(name)  # admits a waiting insert, which this call would otherwise wait for
    for writer in self._writers:
      writer.close()
    self.server.stop()


def table(limiter, max_size=30, sampler=UNIFORM, times=0, name='t', signature=SIGNATURE):
  return reverb.Table(
    name, sampler(), FIFO(), max_size, limiter, max_times_sampled=times, signature=signature
  )
