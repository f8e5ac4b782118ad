"""The XLA program of a gradient step is compiled only once, because it depends on no data."""

import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import learner
from seed_acme.agents.on_policy import presets
from seed_acme.agents.on_policy import resolve
from seed_acme.learning import objectives

_AVERAGE = on_policy_config.NormalizationConfig('average')


def _programs(function, *cases):
  """Returns the programs that XLA compiles of a function for each case of arguments, as text.

  A value that must be known at compile time shows in it as a constant; TensorFlow then compiles
  again for every other value. The function is traced once, and depends on shapes alone in that.
  """
  arguments = cases[0]
  traced = tf.function(
    lambda *flat: tree.flatten(function(*tree.unflatten_as(arguments, flat))),
    autograph=False,
    jit_compile=True,
  )
  found = []
  for case in cases:
    tensors = [tf.convert_to_tensor(x) for x in tree.flatten(case)]
    text = traced.experimental_get_compiler_ir(*tensors)(stage='hlo')
    found.append(text.replace(_module_name(text), 'module'))
  return found


def _module_name(program):
  """Returns the module's name, which has the number of functions traced so far."""
  return re.match(r'HloModule ([\w.]+)', program)[1]


@pytest.mark.parametrize(
  'name, fields',
  [
    ('ppo', {'keep_advantages': 'top_half'}),
    pytest.param('ppo', {'keep_advantages': 'positive'}, marks=pytest.mark.slow),
    pytest.param('vtrace', {}, marks=pytest.mark.slow),
    pytest.param('vmpo', {'minibatch_of': 'transitions'}, marks=pytest.mark.slow),
    pytest.param('vmpo', {'vmpo_form': 'original'}, marks=pytest.mark.slow),
  ],
)
def test_the_compiled_gradient_step_is_the_same_for_all_data(
  name, fields, make_network, make_sample
):
  config = getattr(presets, name)(
    **{'unroll_length': 6, 'batch_size': 4, 'minibatch_size': 0, 'values': _AVERAGE, **fields}
  )
  network = make_network(config)
  learning = learner.learning_of(resolve.algorithm(config), network)
  take = resolve.algorithm(dataclasses.replace(config, num_epochs=2)).passes.take
  samples = [make_sample(network, config, seed=seed) for seed in (0, 1)]
  num_steps = {(x.unroll.inputs.step_type[:-1] != types.LAST).sum() for x in samples}
  assert len(num_steps) == 2, 'equal numbers of masked rows would show nothing'
  order = np.arange(on_policy_config.num_elements(config), dtype=np.int32)
  stepper = objectives.Stepper(learning.objectives['policy'])

  def learn(batch, indices, key, rate):
    with tf.GradientTape() as tape:
      loss = learning.losses(take(batch, indices), key, 0.5).losses['policy']
    return stepper.apply(stepper.gradients(tape, loss), rate)

  key = np.zeros(2, np.int32)
  first, second = (
    (tree.map_structure(np.array, learning.prepare(sample, key, True).batch), indices, key, rate)
    for sample, indices, rate in zip(samples, (order, order[::-1]), np.float32([1e-3, 2e-3]))
  )
  program, other = _programs(learn, first, second)
  assert program == other
