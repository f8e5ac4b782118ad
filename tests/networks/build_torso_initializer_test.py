"""`network.torso_initializer`: which layers it initialises, and combinations that are refused."""

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import choices
from seed_acme.networks import build
from seed_acme.networks import requirements

_SPEC = types.EnvironmentSpec(
  observation=specs.Array((42, 42, 1), np.uint8), action=specs.DiscreteArray(3)
)


def _make(**settings):
  return build.make_actor_critic(config_lib.NetworkConfig(**settings), _SPEC, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
  'torso', ['nature_cnn', 'impala_shallow', 'rllib_42', 'impala_resnet', 'football_resnet']
)
def test_an_orthogonal_torso_keeps_lengths_times_the_root_of_two_in_every_layer(torso):
  """This holds for rows of a wide layer and columns of a tall one. Core and heads are unchanged."""
  networks = []
  for kind in ('default', 'orthogonal'):
    tf.random.set_seed(1)
    networks.append(_make(torso=torso, torso_output_size=24, core='lstm', torso_initializer=kind))
  plain, orthogonal = ({v.name: v.numpy() for v in network.variables} for network in networks)
  assert plain.keys() == orthogonal.keys()
  drawn = [name for name in plain if name.startswith(torso) and name.endswith('/w:0')]
  numbers = {'nature_cnn': 4, 'impala_shallow': 3, 'rllib_42': 3, 'impala_resnet': 16}
  assert len(drawn) == numbers.get(torso, 21)
  for name in drawn:
    weights = orthogonal[name].reshape(-1, orthogonal[name].shape[-1])
    gains = np.linalg.svd(weights, compute_uv=False)
    np.testing.assert_allclose(gains, 2.0**0.5, rtol=1e-4, err_msg=name)
    others = np.linalg.svd(plain[name].reshape(weights.shape), compute_uv=False)
    assert others.max() / others.min() > 1.05, name
  for name in plain.keys() - set(drawn):
    assert orthogonal[name].std() == pytest.approx(plain[name].std(), rel=0.1, abs=1e-6), name


def test_only_the_image_s_layers_of_a_torso_with_words_are_orthogonal():
  spec = types.EnvironmentSpec(
    observation={'image': _SPEC.observation, 'instruction': choices.ChoicesArray([9, 9])},
    action=_SPEC.action,
  )
  config = config_lib.NetworkConfig(
    torso='impala_resnet_instruction', torso_output_size=24, torso_initializer='orthogonal'
  )
  network = build.make_actor_critic(config, spec, 3)
  gains = {
    v.name: np.linalg.svd(v.numpy().reshape(-1, v.shape[-1]), compute_uv=False)
    for v in network.variables
    if len(v.shape) > 1 and v.shape[-1] > 1
  }
  is_orthogonal = {name: np.ptp(values) < 1e-3 for name, values in gains.items()}
  assert {name for name, holds in is_orthogonal.items() if holds} == {
    name for name in gains if 'impala_resnet' in name or name.endswith('lstm/w_h:0')
  }


@pytest.mark.parametrize(
  'settings, named',
  [
    ({}, "with network.torso 'mlp'"),
    ({'torso': 'mine:Torso'}, "with network.torso ('mine:Torso')"),
    ({'module': 'mine:network'}, "with network.module ('mine:network')"),
  ],
)
def test_orthogonal_torsos_are_refused_where_nothing_would_be_drawn_so(settings, named):
  with pytest.raises(types.UserError) as error:
    _make(torso_initializer='orthogonal', **settings)
  message = str(error.value)
  assert message.startswith("network.torso_initializer ('orthogonal') has no effect")
  assert named in message and 'choose a torso that it is for (nature_cnn' in message
  with pytest.raises(types.UserError, match='has no effect'):  # before anything is started
    requirements.check(config_lib.NetworkConfig(torso_initializer='orthogonal', **settings), _SPEC)
