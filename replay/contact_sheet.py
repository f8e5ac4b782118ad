"""Image observations of sampled items as one picture: rows are items, columns time steps."""

from __future__ import annotations

from collections.abc import Sequence
import pathlib

import numpy as np

from seed_acme.libraries import matplotlib_loading

_MIN_SIDE = 16  # pixels; smaller uint8 arrays are not taken for images
_MAX_CHANNELS = 16  # longer axes are not taken for channels
_FEW_CHANNELS = (1, 3, 4)  # numbers of channels before height and width, if the axes are not known
NUM_COLUMNS = 8  # at most
_GAP = 2  # pixels between pictures
_GREY = 128
_GOOD_SIDE = 84  # small pictures are enlarged, by a whole factor, to about this many pixels


def image_frames(array: np.ndarray, num_leading: int | None) -> np.ndarray | None:
  """Returns one leaf's pictures over time, `[T, H, W]` grey or `[T, H, W, 3]`; None if it has none.

  num_leading: axes before those of the observation, of which time is the last (2 in our tables:
  unrolls and rows); None = not known. Only the first of several unrolls is taken and, of a stack of
  pictures, channel 0, the newest.
  """
  if array.dtype != np.uint8 or not array.size:
    return None
  rank = _picture_rank(array.shape) if num_leading is None else array.ndim - num_leading
  if rank not in (2, 3) or array.ndim < rank:
    return None
  frames = _over_time(array, rank)
  if rank == 3 and not _ends_in_channels(array.shape):
    frames = np.moveaxis(frames, 1, -1)
  if rank == 3 and not _ends_in_channels(frames.shape):
    return None
  if rank == 3 and frames.shape[-1] != 3:
    frames = frames[..., 0]
  return frames if min(frames.shape[1:3]) >= _MIN_SIDE else None


def _over_time(array: np.ndarray, rank: int) -> np.ndarray:
  """Returns the last `rank` axes after the time axis, and the first entry of all axes before it."""
  if array.ndim == rank:
    return array[None]
  return array.reshape((-1, *array.shape[array.ndim - rank - 1 :]))[0]


def _ends_in_channels(shape: tuple[int, ...]) -> bool:
  return shape[-1] <= _MAX_CHANNELS and min(shape[-3:-1]) >= _MIN_SIDE


def _picture_rank(shape: tuple[int, ...]) -> int:
  """Returns how many of the last axes make one picture, judging by their sizes; 0 = no picture."""
  if len(shape) < 3:
    return 0
  if _ends_in_channels(shape):
    return 3
  if min(shape[-2:]) < _MIN_SIDE:
    return 0
  return 3 if len(shape) > 3 and shape[-3] in _FEW_CHANNELS else 2


def compose(rows: Sequence[np.ndarray]) -> np.ndarray:
  """Composes one RGB picture `[H, W, 3]` of the items' frames (`image_frames`), all of one size.

  Columns are evenly spaced from the first frame to the last; shorter items leave grey cells.
  """
  num_columns = min(NUM_COLUMNS, max(len(frames) for frames in rows))
  height, width = (max(frames.shape[axis] for frames in rows) for axis in (1, 2))
  factor = max(1, _GOOD_SIDE // max(height, width))
  height, width = height * factor, width * factor
  sheet = np.full(
    ((height + _GAP) * len(rows) - _GAP, (width + _GAP) * num_columns - _GAP, 3), _GREY, np.uint8
  )
  for i, frames in enumerate(rows):
    for j, t in enumerate(columns(len(frames), num_columns)):
      picture = np.repeat(np.repeat(frames[t], factor, axis=0), factor, axis=1)
      top, left = i * (height + _GAP), j * (width + _GAP)
      sheet[top : top + picture.shape[0], left : left + picture.shape[1]] = (
        picture if picture.ndim == 3 else picture[..., None]
      )
  return sheet


def columns(num_frames: int, num_columns: int) -> list[int]:
  """Returns evenly spaced indices into the frames, including the first and the last."""
  number = min(num_frames, num_columns)
  return np.linspace(0, num_frames - 1, number).round().astype(int).tolist()


def write(sheet: np.ndarray, path: pathlib.Path) -> None:
  """Writes a sheet as a PNG file, without scaling."""
  matplotlib_loading.load()
  from matplotlib import image  # not at the top: it is needed for pictures only

  path.parent.mkdir(parents=True, exist_ok=True)
  image.imsave(path, sheet, format='png')
