"""Packing is exact for every number of planes, and takes an eighth of the bytes."""

from dm_env import specs as dm_specs
import numpy as np
import pytest

from seed_acme import types
from seed_acme.envs import packed_planes
from seed_acme.transport import wire


@pytest.mark.parametrize('count', range(1, 17))
def test_planes_come_back_as_they_were(count):
  random = np.random.default_rng(count)
  planes = (random.random((5, 7, count)) < 0.5).astype(np.uint8) * 255
  packed = packed_planes.pack(planes)
  assert packed.shape == (5, 7, 1) and packed.dtype == np.uint16
  np.testing.assert_array_equal(packed_planes.unpack(packed, count), planes)
  assert packed.max() <= packed_planes.spec(5, 7, count, 'map').maximum
  # Further planes are empty.
  wider = packed_planes.unpack(packed, 16)
  assert not wider[..., count:].any()


def test_plane_i_is_bit_i():
  planes = np.zeros((1, 16, 16), np.uint8)
  planes[0, np.arange(16), np.arange(16)] = 255
  np.testing.assert_array_equal(packed_planes.pack(planes)[0, :, 0], 1 << np.arange(16))


@pytest.mark.parametrize('count', [0, 17])
def test_other_numbers_are_refused(count):
  with pytest.raises(ValueError, match=f'{count} planes: expected 1 ... 16'):
    packed_planes.pack(np.zeros((2, 2, count)))
  with pytest.raises(ValueError, match=f'{count} planes'):
    packed_planes.spec(2, 2, count, 'map')


@pytest.mark.parametrize(
  ('spec', 'count'),
  [
    *((packed_planes.spec(4, 4, count, 'map'), count) for count in (1, 4, 16)),
    (dm_specs.BoundedArray((4, 4, 1), np.uint8, 0, 255), 0),
    (dm_specs.BoundedArray((84, 84, 1), np.uint16, 0, 5000, 'depth'), 0),  # in millimetres
    (dm_specs.BoundedArray((4, 4, 1), np.uint16, 0, 1), 0),
    (dm_specs.Array((4, 4, 1), np.uint16), 0),  # without bounds: numbers
    (dm_specs.BoundedArray((4, 4, 3), np.uint16, 0, 1), 0),
    (dm_specs.BoundedArray((4,), np.uint16, 0, 1), 0),
  ],
)
def test_packed_observations_are_told_from_others(spec, count):
  assert packed_planes.num_planes(spec) == count


def test_an_eighth_of_the_bytes_on_the_wire():
  action = dm_specs.DiscreteArray(19)
  plain = dm_specs.BoundedArray((72, 96, 16), np.uint8, 0, 255)
  packed = packed_planes.spec(72, 96, 16, 'map')
  sizes = [
    wire.GroupCodec(types.EnvironmentSpec(spec, action), 8).max_message_bytes()
    for spec in (plain, packed)
  ]
  assert sizes[0] / sizes[1] == pytest.approx(8.0, rel=0.01)
