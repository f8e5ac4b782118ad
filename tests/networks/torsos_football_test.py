"""Football's network: planes unpacked in it, sizes, initial weights, and that it is trained."""

import dataclasses

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.envs import packed_planes
from seed_acme.networks import build
from seed_acme.networks import image_torsos
from seed_acme.networks import requirements
from seed_acme.networks import torsos
from seed_acme.programs import single_process
from seed_acme.storage import run_directory

_PACKED = types.EnvironmentSpec(packed_planes.spec(72, 96, 16, 'mini_map'), specs.DiscreteArray(19))


@pytest.mark.parametrize('count', range(1, 17))
def test_planes_are_unpacked_exactly(count):
  planes = np.random.default_rng(count).integers(0, 2, (3, 5, 4, count)).astype(np.uint8) * 255
  unpacked = torsos.unpack_planes(tf.constant(packed_planes.pack(planes)), count)
  assert unpacked.dtype == tf.float32
  np.testing.assert_array_equal(unpacked, torsos.as_float(tf.constant(planes)))


def test_football_resnet_has_the_sizes_of_the_paper():
  torso = image_torsos.FootballResNet(256)
  features = torso(tf.zeros([2, 72, 96, 16]))
  assert features.shape == (2, 256)
  kernels = [v.shape for v in torso.variables if v.name.endswith('w:0')]
  stacks = [(16, 16), (16, 32), (32, 32), (32, 32)]
  expected = []
  for inside, outside in stacks:
    expected += [(3, 3, inside, outside)] + [(3, 3, outside, outside)] * 4
  assert sorted(map(tuple, kernels)) == sorted([*expected, (5 * 6 * 32, 256)])


@pytest.mark.slow
def test_the_whole_network_starts_with_lecuns_variance():
  tf.random.set_seed(1)
  config = registry.load('football_scoring').network
  network = build.make_actor_critic(config, _PACKED, 19)
  weights = {v.name: v.numpy() for v in network.trainable_variables if v.name.endswith('/w:0')}
  assert len(weights) == 4 * 5 + 1 + 2  # stacks, dense, heads
  for name, weight in weights.items():
    std = (1 / np.prod(weight.shape[:-1])) ** 0.5
    assert weight.std() == pytest.approx(std, rel=2 / weight.size**0.5), name
    # truncated at two deviations of the untruncated distribution
    assert np.abs(weight).max() < 2.3 * std, name


@pytest.mark.slow
@pytest.mark.parametrize('torso', ['football_resnet', 'impala_resnet', 'nature_cnn', 'mlp'])
def test_a_network_sees_packed_planes_as_it_sees_plain_ones(torso):
  planes = np.random.default_rng(1).integers(0, 2, (2, 72, 96, 16)).astype(np.uint8) * 255
  plain = dataclasses.replace(
    _PACKED, observation=specs.BoundedArray((72, 96, 16), np.uint8, 0, 255)
  )
  outputs = []
  for spec, observation in ((plain, planes), (_PACKED, packed_planes.pack(planes))):
    tf.random.set_seed(1)
    config = config_lib.NetworkConfig(torso=torso, mlp_sizes=(16,), precision='float32')
    network = build.make_actor_critic(config, spec, 19)
    inputs = build.zero_inputs(spec, 2)._replace(observation=tf.constant(observation))
    outputs.append(network(inputs, network.initial_state(2))[0])
  np.testing.assert_allclose(outputs[0].policy_params, outputs[1].policy_params, atol=1e-5)
  np.testing.assert_allclose(outputs[0].value, outputs[1].value, atol=1e-5)


def test_packed_planes_are_stacked_by_the_environment_only():
  with pytest.raises(types.UserError, match='frame_stack .4. cannot stack packed planes'):
    requirements.check(config_lib.NetworkConfig(torso='nature_cnn', frame_stack=4), _PACKED)


@pytest.mark.slow
def test_footballs_configuration_takes_training_steps_on_packed_planes(tmp_path):
  config = registry.load('football_scoring')
  config = dataclasses.replace(
    config,
    num_actors=1,
    environments_per_actor=2,
    environment=config_lib.EnvironmentConfig('tests.networks.packed_environment:make'),
    agent=dataclasses.replace(config.agent, unroll_length=3, batch_size=2),
    replay=config_lib.ReplayConfig(queue_size=4),
    inference=config_lib.InferenceConfig(batch_size=2),
    actor=config_lib.ActorConfig(),
  )
  program = single_process.SingleProcess(config, run_directory.create(tmp_path))
  while program.counters.snapshot().updates < 2:
    program.step()
  program.close()
