"""Reverb servers with distinguishable items."""

import types as python_types

import numpy as np
import reverb
import tensorflow as tf

SIDE, STEPS = 20, 5
SIGNATURE = {
  'image': tf.TensorSpec((STEPS, SIDE, SIDE, 4), tf.uint8, 'observation/image'),
  'reward': tf.TensorSpec((STEPS,), tf.float32, 'reward'),
}
UNIFORM, FIFO = reverb.selectors.Uniform, reverb.selectors.Fifo


def insert(address, table, number):
  """Inserts items 0 ... number - 1: reward NaN in item 1, channel 0 brighter by 10 per item."""
  writer = reverb.Client(address).trajectory_writer(num_keep_alive_refs=1)
  for i in range(number):
    image = np.zeros((STEPS, SIDE, SIDE, 4), np.uint8)
    image[..., 0] = 10 * i + np.arange(STEPS)[:, None, None]
    writer.append({'image': image, 'reward': np.full(STEPS, np.nan if i == 1 else i, np.float32)})
    writer.create_item(table, 1.0 + i, {x: writer.history[x][-1] for x in writer.history})
    writer.flush()
  writer.close()


def queue(name):
  return reverb.Table.queue(name, 4, signature=SIGNATURE)


def serve(*tables):
  server = reverb.Server(list(tables))
  return python_types.SimpleNamespace(server=server, address=f'localhost:{server.port}')


def counts(address, table):
  info = reverb.Client(address).server_info(timeout=20)[table]
  return (
    info.current_size,
    info.rate_limiter_info.insert_stats.completed,
    info.rate_limiter_info.sample_stats.completed,
  )
