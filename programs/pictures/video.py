"""One episode as a video: `FILE.mp4`, or `FILE.gif`. Needs the extra `video`.

Does not import TensorFlow, and imports imageio only when a video is written.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import importlib
import math
import os
import pathlib
from typing import Any

import numpy as np

from seed_acme import types
from seed_acme.checks import extras
from seed_acme.files import local

MAX_STEPS = 27_000  # agent steps; as long as an Atari game at its limit of 108,000 frames
SUFFIXES = ('.mp4', '.gif')
MAX_GIF_FRAMES = 500  # imageio keeps them all in memory until the end
_ATARI_FRAMES_PER_S = 60
_SCREENS_PER_S = 15.0  # for environments whose real-time rate is unknown
_PREVIEW_FRAMES, _PREVIEW_SIDE = 150, 320  # maxima; about 1 MB
# pixels; pictures are enlarged to at least the first and at most the second
_LEAST_SIDE, _GREATEST_SIDE = 320, 1280
_PACKAGES = {'.mp4': ('imageio', 'imageio_ffmpeg'), '.gif': ('imageio',)}


class Writer:
  """A writer of pictures to a video file, which appears under its name only when it is complete.

  Call `add` within the context `open`. If anything raises there, an existing file of that name is
  left unchanged.
  """

  def __init__(self, path: str | os.PathLike[str]):
    """Checks what can be checked before there is a picture; raises `types.UserError`."""
    local.refuse_url(path, 'file')
    self.path = pathlib.Path(path)
    suffix = self.path.suffix
    if suffix not in SUFFIXES:
      raise types.UserError(
        f'cannot write the video {self.path}: its name must end in {" or ".join(SUFFIXES)}'
      )
    require_packages(suffix)
    self._partial = self.path.with_name(f'.{self.path.stem}.{os.getpid()}{suffix}')
    self._writer: Any = None
    self._shape: tuple[int, ...] | None = None
    self.num_frames = 0
    with self._user_error():
      if self.path.is_dir():
        raise IsADirectoryError('it is a folder')
      self.path.parent.mkdir(parents=True, exist_ok=True)
      self._partial.touch()
      self._partial.unlink()

  @property
  def max_frames(self) -> float:
    """The largest number of pictures that may be added."""
    return MAX_GIF_FRAMES if self.path.suffix == '.gif' else math.inf

  @contextlib.contextmanager
  def open(self, frames_per_s: float) -> Iterator[None]:
    """Opens the file; pictures may be added within this context."""
    try:
      with self._user_error():
        self._writer = _open(self._partial, frames_per_s)
      try:
        yield
      except BaseException:
        with contextlib.suppress(Exception):  # the first error is the one to report
          self._writer.close()
        raise
      with self._user_error():
        self._writer.close()
        os.replace(self._partial, self.path)
    finally:
      self._partial.unlink(missing_ok=True)

  def add(self, screen: np.ndarray) -> None:
    """screen: `[H, W, 3]` uint8, of the same size as the first."""
    if self._shape not in (None, screen.shape):
      raise types.UserError(
        f'video {self.path}: the screen changed its size from {list(self._shape or ())} to '
        f'{list(screen.shape)}: render() must keep it within an episode'
      )
    self._shape = screen.shape
    with self._user_error():
      self._writer.append_data(enlarge(screen))
    self.num_frames += 1

  @contextlib.contextmanager
  def _user_error(self) -> Iterator[None]:
    try:
      yield
    except OSError as error:
      reason = (error.strerror or str(error)).splitlines()[0]
      raise types.UserError(
        f'cannot write the video {self.path}: {reason}; '
        'check the path, its permissions and the free space'
      ) from error


class Preview:
  """A small `.gif` of an episode of any length: some of its pictures, at the episode's own pace."""

  def __init__(self) -> None:
    self._frames: list[np.ndarray] = []
    self._period = 1  # every how many pictures of the episode one is kept
    self._num_seen = 0

  def add(self, screen: np.ndarray) -> None:
    """Adds a picture `[H, W, 3]` uint8. If there are too many, every second one is dropped."""
    if self._num_seen % self._period == 0:
      self._frames.append(_resized(screen))
    self._num_seen += 1
    if len(self._frames) > _PREVIEW_FRAMES:
      self._frames = self._frames[::2]
      self._period *= 2

  def write(self, path: pathlib.Path, frames_per_s: float) -> None:
    """Writes the file, which appears only when complete. frames_per_s: of the episode."""
    with (
      local.replacing(path) as partial,
      contextlib.closing(_open(partial, frames_per_s / self._period)) as writer,
    ):
      for frame in self._frames:
        writer.append_data(frame)


def _resized(screen: np.ndarray) -> np.ndarray:
  """Returns a copy near the preview's size, made by dropping or repeating pixels."""
  longer = max(screen.shape[:2])
  step, factor = -(-longer // _PREVIEW_SIDE), max(1, _PREVIEW_SIDE // longer)
  return screen[::step, ::step].repeat(factor, axis=0).repeat(factor, axis=1)


def frames_per_s(environment_id: str, frames_per_step: int) -> float:
  """Returns the pictures per second at which an episode is shown; for Atari, real time."""
  if environment_id.startswith('atari:'):
    return _ATARI_FRAMES_PER_S / frames_per_step
  return _SCREENS_PER_S


def require_packages(suffix: str) -> None:
  """Raises `types.UserError` if the packages that write such files are not installed."""
  for package in _PACKAGES[suffix]:
    module = extras.import_module(package, 'video', 'a video')
    if package == 'imageio_ffmpeg':
      try:
        module.get_ffmpeg_exe()
      except RuntimeError as error:
        raise types.UserError(
          'an .mp4 needs the program ffmpeg, and imageio_ffmpeg has none: install ffmpeg, '
          'or write a .gif'
        ) from error


def enlarge(screen: np.ndarray) -> np.ndarray:
  """Enlarges by an integer factor until the shorter side has 320 pixels; both sides become even.

  H.264 stores colours for blocks of 2 x 2, so an odd side gets its last row or column twice.
  """
  shorter, longer = sorted(screen.shape[:2])
  factor = max(1, min(-(-_LEAST_SIDE // shorter), _GREATEST_SIDE // longer))
  screen = screen.repeat(factor, axis=0).repeat(factor, axis=1)
  odd_rows, odd_columns = screen.shape[0] % 2, screen.shape[1] % 2
  return np.pad(screen, ((0, odd_rows), (0, odd_columns), (0, 0)), mode='edge')


def _open(path: pathlib.Path, frames_per_s: float) -> Any:
  imageio = importlib.import_module('imageio.v2')
  if path.suffix == '.gif':
    return imageio.get_writer(path, mode='I', duration=1000 / frames_per_s, loop=0)
  return imageio.get_writer(
    path,
    format='FFMPEG',
    mode='I',
    fps=frames_per_s,
    codec='libx264',
    quality=8,
    macro_block_size=2,
    ffmpeg_log_level='error',
  )
