"""The arrays that count as images, and the source of each pixel of the sheet."""

from matplotlib import image
import numpy as np
import pytest

from seed_acme.replay import contact_sheet


def _array(*shape, dtype=np.uint8):
  return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@pytest.mark.parametrize(
  'shape, num_leading, wanted',
  [
    ((2, 5, 20, 24, 4), 2, lambda x: x[0, ..., 0]),  # a stack: the newest image
    ((2, 5, 20, 24, 3), 2, lambda x: x[0]),  # colour
    ((2, 5, 20, 24, 1), 2, lambda x: x[0, ..., 0]),
    ((2, 5, 4, 20, 24), 2, lambda x: x[0, :, 0]),  # channels first
    ((2, 5, 3, 20, 24), 2, lambda x: np.moveaxis(x[0], 1, -1)),
    ((2, 5, 20, 24, 16), 2, lambda x: x[0, ..., 0]),  # the longest stack
    ((2, 5, 4, 16, 16), 2, lambda x: x[0, :, 0]),  # the smallest images
    ((2, 5, 20, 24), 2, lambda x: x[0]),  # no channels
    ((5, 20, 24, 4), None, lambda x: x[..., 0]),
    ((5, 20, 24, 3), None, lambda x: x),
    ((5, 4, 20, 24), None, lambda x: x[:, 0]),
    ((5, 20, 24), None, lambda x: x),
    ((2, 50, 20, 24), None, lambda x: x[0]),
    ((20, 24, 3), None, lambda x: x[None]),  # a single image
  ],
)
def test_the_pictures_of_an_array(shape, num_leading, wanted):
  array = _array(*shape)
  np.testing.assert_array_equal(contact_sheet.image_frames(array, num_leading), wanted(array))


@pytest.mark.parametrize(
  'array, num_leading',
  [
    (_array(2, 5, 20, 24, 4, dtype=np.float32), 2),
    (_array(2, 5, 20, 15, 4), 2),  # too narrow
    (_array(2, 5, 20, 24, 30), 2),  # no axis of channels
    (_array(2, 5), 2),  # step types
    (_array(2, 5, 50), 2),
    (_array(20, 24), None),
    (_array(5, 6, 3), None),
    (_array(0, 20, 24, 3), None),
  ],
)
def test_what_holds_no_pictures(array, num_leading):
  assert contact_sheet.image_frames(array, num_leading) is None


@pytest.mark.parametrize(
  'num_frames, wanted',
  [(1, [0]), (3, [0, 1, 2]), (8, list(range(8))), (15, [0, 2, 4, 6, 8, 10, 12, 14])],
)
def test_columns_are_evenly_spaced(num_frames, wanted):
  assert contact_sheet.columns(num_frames, contact_sheet.NUM_COLUMNS) == wanted


def test_every_pixel_of_the_written_sheet(tmp_path):
  rng = np.random.default_rng(0)
  rows = [rng.integers(0, 256, (frames, 90, 100), dtype=np.uint8) for frames in (15, 2)]
  path = tmp_path / 'new' / 'sheet.png'
  contact_sheet.write(contact_sheet.compose(rows), path)
  read = np.round(image.imread(path) * 255).astype(np.uint8)
  assert read.shape == (2 * 90 + 2, 8 * 100 + 7 * 2, 4)  # with an opaque alpha channel
  wanted = np.full((*read.shape[:2], 3), 128, np.uint8)
  for j in range(8):
    wanted[:90, j * 102 : j * 102 + 100] = rows[0][2 * j][..., None]
  for j in range(2):
    wanted[92:, j * 102 : j * 102 + 100] = rows[1][j][..., None]
  np.testing.assert_array_equal(read[..., :3], wanted)
  assert (read[..., 3] == 255).all()


def test_small_pictures_are_enlarged_by_a_whole_factor_in_colour():
  frames = _array(1, 20, 16, 3)
  np.testing.assert_array_equal(
    contact_sheet.compose([frames]), np.kron(frames[0], np.ones((4, 4, 1), np.uint8))
  )
