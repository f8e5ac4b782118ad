"""A learner whose passes over a sample can be counted."""

import numpy as np
import sonnet as snt
import tensorflow as tf

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents import learnt_rows
from seed_acme.agents.on_policy import presets
from seed_acme.learning import learner as learner_lib

T, B = 3, 4
ELEMENTS = T * B
RATE = 0.05
CONFIG = presets.vtrace(unroll_length=T, batch_size=B)
MAX_STEPS = 64  # rows in the toy's book
MID, LAST = types.MID, types.LAST


class Toy(snt.Module):
  """Weights, and a book in which row s records the inputs of gradient step s."""

  def __init__(self):
    super().__init__(name='toy')
    self.w = tf.Variable([1.0, -2.0], name='w')
    self.line = tf.Variable(0, trainable=False, name='line')
    # [elements used, preparations, first ones among them, preparation that the data come from]
    self.book = tf.Variable(tf.zeros([MAX_STEPS, ELEMENTS + 3]), trainable=False, name='book')
    self.preparations = tf.Variable([0.0, 0.0], trainable=False, name='preparations')
    self.finished_after = tf.Variable(-1, trainable=False, name='finished_after')


def prepare(network, sample, is_first):
  """Returns transitions `[T*B, ...]`, which record the weights at the time of preparation."""
  assert type(is_first) is bool
  network.preparations.assign_add([1.0, float(is_first)])
  observation = tf.reshape(sample.unroll.inputs.observation[:-1], (ELEMENTS, 2))
  batch = {
    'x': observation,
    'index': tf.range(ELEMENTS),
    'w': tf.repeat(network.w[None], ELEMENTS, axis=0),
    'number': tf.fill([ELEMENTS], network.preparations[0]),
  }
  return agent_lib.Prepared(batch, *learnt_rows.learnt_transitions(sample.unroll, CONFIG))


def take(prepared, indices):
  return {name: tf.gather(x, indices) for name, x in prepared.items()}


def finish(network, sample):
  del sample
  network.finished_after.assign(network.line)
  return {'toy/finished_w': network.w[0]}


def loss(network, batch):
  """Returns 1/2 mean |w - x|^2, with a pull towards the weights at the time of preparation."""
  used = tf.reduce_sum(tf.one_hot(batch['index'], ELEMENTS), axis=0)
  line = tf.concat([used, network.preparations, batch['number'][:1]], axis=0)
  is_line = tf.range(MAX_STEPS)[:, None] == network.line
  network.book.assign(tf.where(is_line, line[None], network.book))
  number = tf.cast(network.line, tf.float32)
  network.line.assign_add(1)
  pulled = 0.5 * tf.reduce_mean(tf.square(network.w - batch['w']))
  loss = 0.5 * tf.reduce_mean(tf.square(network.w - batch['x'])) + pulled
  return types.LossOutput(
    {'toy': loss},
    metrics={'toy/x': tf.reduce_mean(batch['x']), 'toy/step': number, 'toy/step_max': number},
  )


def learner(
  loss=loss, seed=5, xla=False, optimizer=None, total_steps=1000, finish=finish, **passes
):
  network = Toy()
  passes = agent_lib.Passes(
    **{
      'num_epochs': 3,
      'num_minibatches': 4,
      'num_elements': ELEMENTS,
      'prepares_each_epoch': False,
      'take': take,
      **passes,
    }
  )
  config = config_lib.OptimizerConfig(**{'learning_rate': RATE, **(optimizer or {})})
  learning = agent_lib.Learning(
    variables={},
    objectives={'toy': agent_lib.Objective(network.trainable_variables, config)},
    prepare=lambda sample, key, is_first: prepare(network, sample, is_first),
    losses=lambda batch, key, progress: loss(network, batch),
    passes=passes,
    finish=lambda sample: finish(network, sample),
  )
  acting = agent_lib.Acting(lambda: network, None, 0)
  return learner_lib.Learner(
    agent_lib.Agent(acting, lambda made: learning),
    published=range(len(network.variables)),
    total_steps=total_steps,
    seed=seed,
    xla=xla,
    devices=['cpu:0'],
  )


def sample(seed=0, step_type=None, version=0):
  rng = np.random.default_rng(seed)
  shape = (T + 1, B)
  inputs = types.AgentInput(
    step_type=np.full(shape, MID, np.uint8) if step_type is None else step_type,
    reward=np.zeros(shape, np.float32),
    discount=np.ones(shape, np.float32),
    previous_action=np.zeros(shape, np.int32),
    observation=rng.normal(size=(*shape, 2)).astype(np.float32),
  )
  outputs = types.AgentOutput(np.zeros(shape, np.int32), np.zeros(shape, np.float32))
  unroll = types.Unroll((), inputs, outputs, np.full(shape, version, np.int64))
  return types.Sample(unroll, np.arange(B, dtype=np.uint64), np.ones(B))


def book(learner):
  """Returns the rows so far: (elements `[S, N]`, preparations, first ones, preparation used)."""
  now = by_name(learner.variables())
  lines = now['book'][: now['line']]
  return lines[:, :ELEMENTS], *lines[:, ELEMENTS:].T.tolist()


def epochs(learner, num_epochs=3):
  """Returns `[updates, epochs, minibatches, N]`: which elements each gradient step used."""
  elements = book(learner)[0]
  return elements.reshape(learner.num_updates, num_epochs, -1, ELEMENTS)


def values(learner):
  return [np.array(x) for x in learner.variables().values]


def by_name(variables):
  return {
    variable.name.split('/')[-1].split(':')[0]: np.array(x)
    for variable, x in zip(Toy().variables, variables.values)
  }


def assert_all_equal(actual, expected):
  assert len(actual) == len(expected)
  for a, b in zip(actual, expected):
    np.testing.assert_array_equal(a, b)
