"""With XLA a gradient step is compiled once: the program depends on no data."""

import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import learner as learner_lib
from seed_acme import multi_pass_learner
from seed_acme import types
from seed_acme.agents.on_policy import agent
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets

_AVERAGE = on_policy_config.NormalizationConfig('average')


def _program(step, arguments):
  """What XLA is to compile for these arguments, as text.

  A value that must be known before shows in it as a constant; TensorFlow then compiles anew
  for every other value.
  """
  tensors = [tf.convert_to_tensor(x) for x in tree.flatten(arguments)]
  return step._function.experimental_get_compiler_ir(*tensors)(stage='hlo')


@pytest.mark.parametrize(
  'name, fields',
  [
    ('ppo', {}),
    ('ppo', {'keep_advantages': 'top_half'}),
    ('ppo', {'keep_advantages': 'positive'}),
    ('vpg', {'keep_advantages': 'top_half'}),
    ('vtrace', {}),
    ('awr', {}),
    ('vmpo', {}),
    ('vmpo', {'minibatch_of': 'transitions'}),
    ('vmpo', {'vmpo_form': 'original'}),
  ],
)
def test_the_compiled_gradient_step_is_the_same_for_all_data(
  name, fields, make_network, make_sample
):
  config = getattr(presets, name)(
    **{'unroll_length': 6, 'batch_size': 4, 'minibatch_size': 0, 'values': _AVERAGE, **fields}
  )
  network = make_network(config)
  subject = multi_pass_learner.MultiPassLearner(
    network,
    lambda network, batch: agent.AGENT.loss(network, batch, config),
    config,
    1000,
    agent.AGENT.passes(config),
    seed=1,
    xla=True,
  )
  samples = [make_sample(network, config, seed=seed) for seed in (0, 1)]
  num_steps = {(x.unroll.inputs.step_type[:-1] != types.LAST).sum() for x in samples}
  assert len(num_steps) == 2, 'equal numbers of masked rows would show nothing'
  order = np.arange(on_policy_config.num_elements(config), dtype=np.int32)
  first, second = (
    (subject._prepared(sample, is_first=True), indices, rate)
    for sample, indices, rate in zip(samples, (order, order[::-1]), np.float32([1e-3, 2e-3]))
  )
  step = learner_lib.compiled(subject._learn_step, first, xla=True)
  assert _program(step, first) == _program(step, second)
