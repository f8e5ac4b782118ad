"""The number format of convolutional torsos: how it is chosen, and its layers."""

import dataclasses
import os
import subprocess
import sys

from dm_env import specs
import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.networks import build
from seed_acme.networks import precision


@pytest.fixture
def processor(monkeypatch, tmp_path):
  """Simulates a processor with other flags, and whether there is a GPU."""

  def pretend(flags, gpus=()):
    path = tmp_path / 'cpuinfo'
    path.write_text(f'processor : 0\nflags\t\t: {flags}\n')
    real_open = open
    monkeypatch.setattr(
      'builtins.open',
      lambda name, *args, **kwargs: real_open(
        path if name == '/proc/cpuinfo' else name, *args, **kwargs
      ),
    )
    monkeypatch.setattr(tf.config, 'list_physical_devices', lambda kind: list(gpus))
    precision.has_fast_bfloat16.cache_clear()

  yield pretend
  precision.has_fast_bfloat16.cache_clear()


@pytest.mark.parametrize(
  'flags, gpus, expected',
  [
    ('fpu avx2 avx512f avx512_bf16', (), tf.bfloat16),
    ('fpu avx2 avx512f', (), tf.float32),
    ('fpu avx512_bf16', ('GPU:0',), tf.float32),
  ],
)
def test_auto_is_bfloat16_where_the_processor_has_it(flags, gpus, expected, processor):
  processor(flags, gpus)
  assert precision.compute_dtype('auto') == expected
  assert precision.compute_dtype('float32') == tf.float32
  assert precision.compute_dtype('bfloat16') == tf.bfloat16


@pytest.mark.slow  # in a process of its own; the other tests here run with oneDNN
def test_bfloat16_needs_no_onednn():
  code = """if True:
    import tensorflow as tf
    from seed_acme.networks import image_torsos
    torso = image_torsos.NatureCNN(5, dtype=tf.bfloat16)
    assert torso(tf.zeros([2, 40, 40, 1], tf.uint8)).shape == (2, 5)
  """
  environment = {**os.environ, 'TF_ENABLE_ONEDNN_OPTS': '0'}
  subprocess.run([sys.executable, '-c', code], env=environment, capture_output=True, check=True)


@pytest.mark.parametrize('padding', ['VALID', 'SAME'])
def test_in_float32_the_layers_are_sonnets(padding):
  x = tf.random.stateless_normal([3, 9, 8, 2], (0, 1))
  ours = precision.Convolution(5, 3, 2, padding, 'conv')
  theirs = snt.Conv2D(5, 3, 2, padding=padding, name='conv')
  ours(x), theirs(x)
  assert [v.name for v in ours.variables] == [v.name for v in theirs.variables]
  for one, other in zip(ours.variables, theirs.variables):
    one.assign(tf.random.stateless_normal(one.shape, (0, 2)))
    other.assign(one)
  np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-6)
  np.testing.assert_allclose(ours(x, 0.5), theirs(0.5 * x), rtol=1e-5, atol=1e-6)
  dense, other_dense = precision.Dense(4, 'dense'), snt.Linear(4, name='dense')
  rows = tf.reshape(x, [3, -1])
  dense(rows), other_dense(rows)
  assert [v.name for v in dense.variables] == [v.name for v in other_dense.variables]
  for one, other in zip(dense.variables, other_dense.variables):
    one.assign(tf.random.stateless_normal(one.shape, (0, 3)))
    other.assign(one)
  np.testing.assert_allclose(dense(rows), other_dense(rows), rtol=1e-5)


def test_the_gradient_of_a_bias_in_bfloat16_is_a_sum_in_float32():
  layer = precision.Convolution(3, 1, 1, 'VALID', 'conv')
  x = tf.ones([10, 20, 20, 2], tf.bfloat16)
  layer(x)
  [bias] = [v for v in layer.variables if v.name == 'conv/b:0']
  with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.cast(layer(x), tf.float32))
  gradient = tape.gradient(loss, bias)
  assert gradient.dtype == tf.float32
  np.testing.assert_allclose(gradient, [4000, 4000, 4000], rtol=0.004)  # eight bits


@pytest.mark.slow
@pytest.mark.parametrize('torso', ['nature_cnn', 'impala_shallow', 'impala_resnet'])
def test_the_configuration_chooses_it_and_both_share_checkpoints(torso):
  spec = types.EnvironmentSpec(
    specs.BoundedArray((40, 40, 1), np.uint8, 0, 255), specs.DiscreteArray(3)
  )
  config = config_lib.NetworkConfig(torso=torso, precision='float32')
  exact = build.make_actor_critic(config, spec, 3)
  short = build.make_actor_critic(dataclasses.replace(config, precision='bfloat16'), spec, 3)
  assert [(v.name, v.shape, v.dtype) for v in exact.variables] == [
    (v.name, v.shape, v.dtype) for v in short.variables
  ]
  for one, other in zip(exact.variables, short.variables):
    other.assign(one)
  inputs = build.zero_inputs(spec, 2)._replace(
    observation=np.random.default_rng(0).integers(0, 256, (2, 40, 40, 1)).astype(np.uint8)
  )
  (output, _), (other, _) = (net(inputs, net.initial_state(2)) for net in (exact, short))
  assert other.policy_params.dtype == other.value.dtype == tf.float32
  distance = np.abs(output.policy_params - other.policy_params).max()
  assert 0 < distance < 0.05
