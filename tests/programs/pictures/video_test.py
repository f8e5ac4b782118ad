"""The file of a video, which is written completely or not at all, and the size of its pictures."""

import numpy as np
import pytest

from seed_acme import types
from seed_acme.programs.pictures import video


def test_a_failure_leaves_the_old_video_alone(tmp_path):
  pytest.importorskip('imageio_ffmpeg')
  path = tmp_path / 'a.mp4'
  path.write_text('the old one')
  screen = np.zeros((20, 20, 3), np.uint8)
  writer = video.Writer(path)
  with pytest.raises(KeyboardInterrupt), writer.open(15.0):
    writer.add(screen)
    raise KeyboardInterrupt
  writer = video.Writer(path)
  with (
    pytest.raises(types.UserError, match=r'from \[20, 20, 3\] to \[10, 20, 3\]'),
    writer.open(15.0),
  ):
    writer.add(screen)
    writer.add(screen[:10])
  assert path.read_text() == 'the old one'
  assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
  'size, enlarged',
  [
    ((210, 160), (420, 320)),
    ((400, 600), (400, 600)),
    ((321, 333), (322, 334)),
    ((16, 96), (208, 1248)),
    ((1, 3000), (2, 3000)),
    ((107, 107), (322, 322)),
  ],
)
def test_pictures_are_enlarged_by_a_whole_number_to_even_sides(size, enlarged):
  screen = np.random.default_rng(1).integers(0, 256, (*size, 3), np.uint8)
  result = video.enlarge(screen)
  assert result.shape[:2] == enlarged
  factor = enlarged[0] // size[0]
  if size == (1, 3000):
    factor = 1
  np.testing.assert_array_equal(
    result[: factor * size[0] : factor, : factor * size[1] : factor], screen
  )
