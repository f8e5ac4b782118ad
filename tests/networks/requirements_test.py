"""Predictions about a network that need no TensorFlow, compared with the network."""

from dm_env import specs
import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.networks import build
from seed_acme.networks import requirements


def _spec(*shape):
  return types.EnvironmentSpec(specs.BoundedArray(shape, np.uint8, 0, 255), specs.DiscreteArray(3))


def test_the_names_are_those_that_can_be_built():
  assert set(requirements.TORSOS) == set(build._TORSOS)
  assert set(requirements.CORES) == set(build._CORES)


@pytest.mark.parametrize('shape', [(84, 84, 1), (42, 40, 1), (44, 42), (11, 11, 1)])
def test_a_torso_for_one_size_of_images_takes_no_other(shape):
  config = config_lib.NetworkConfig(torso='rllib_42', torso_output_size=4)
  requirements.check(config, _spec(42, 42, 1))
  build.make_actor_critic(config, _spec(42, 42), 3)
  with pytest.raises(types.UserError, match='needs an image of 42 x 42, but .* image_size 42'):
    requirements.check(config, _spec(*shape))


@pytest.mark.parametrize(
  'torso, least', [('nature_cnn', 36), ('impala_shallow', 20), ('impala_resnet', 1)]
)
def test_the_smallest_image_is_one_that_the_torso_takes(torso, least):
  config = config_lib.NetworkConfig(torso=torso, torso_output_size=4)
  assert requirements.smallest_image(torso) == least
  build.make_actor_critic(config, _spec(least, least, 1), 3)
  if least > 1:
    with pytest.raises(types.UserError, match=f'{least} x {least} or more'):
      requirements.check(config, _spec(least, least - 1, 1))


def test_a_picture_with_its_channels_first_is_told_from_a_small_one():
  config = config_lib.NetworkConfig(torso='nature_cnn')
  with pytest.raises(types.UserError, match=r'return \[height, width, channels\]'):
    requirements.check(config, _spec(3, 50, 70))


def test_a_notice_tells_that_xla_slows_convolutions():
  picture = types.EnvironmentSpec(
    specs.BoundedArray((50, 70, 3), np.uint8, 0, 255), specs.DiscreteArray(3)
  )
  config = config_lib.NetworkConfig(torso='auto')
  [notice] = requirements.notices(config, picture, xla=True)
  assert 'set learner.xla=False' in notice
  assert requirements.notices(config, picture) == ()
  numbers = types.EnvironmentSpec(specs.Array((4,), np.float32), specs.DiscreteArray(3))
  assert requirements.notices(config, numbers, xla=True) == ()
