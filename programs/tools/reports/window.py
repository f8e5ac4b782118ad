"""A window that shows an episode while it is played: `seed-acme evaluate --watch`.

It uses pygame, from the extra `video`, and imports it only when a window is opened.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from seed_acme import types
from seed_acme.checks import extras
from seed_acme.programs.pictures import video

_DISPLAYS = ('DISPLAY', 'WAYLAND_DISPLAY', 'SDL_VIDEODRIVER')
_SHOW_NOTHING = ('dummy', 'offscreen')  # drivers that SDL falls back to
_HINT = 'run this where there is a desktop, or film an episode with --video=episode.mp4'


class Closed(Exception):
  """The user has closed the window, or pressed Escape or Q in it."""


class Window:
  """A window that opens with the first picture, in its size. A context manager, for one thread.

  The constructor checks for a display, so that a missing one is found before anything else is done.
  """

  def __init__(self) -> None:
    """Raises `types.UserError` without a display or without pygame."""
    if not any(os.environ.get(name) for name in _DISPLAYS):
      raise types.UserError(
        'a window needs a display, and neither DISPLAY nor WAYLAND_DISPLAY names one: ' + _HINT
      )
    # otherwise it prints a greeting to standard output
    os.environ.setdefault('PYGAME_HIDE_SUPPORT_PROMPT', '1')
    # SDL would make Ctrl-C close the window instead of ending the command.
    os.environ.setdefault('SDL_NO_SIGNAL_HANDLERS', '1')
    self._pygame = extras.import_module('pygame', 'video', 'a window')
    try:
      self._pygame.display.init()
    except self._pygame.error as error:
      raise _no_window(error) from error
    driver = self._pygame.display.get_driver()
    if driver in _SHOW_NOTHING and not os.environ.get('SDL_VIDEODRIVER'):
      self._pygame.display.quit()
      raise _no_window('the display does not answer')
    self._clock = self._pygame.time.Clock()
    self._screen: Any = None

  def __enter__(self) -> Window:
    return self

  def __exit__(self, *_: object) -> None:
    self._pygame.display.quit()  # no problem if an environment's close() has done so

  def title(self, text: str) -> None:
    """Sets the window's title."""
    self._pygame.display.set_caption(text)

  def show(self, picture: np.ndarray, frames_per_s: float) -> None:
    """Shows `picture` `[H, W, 3]` uint8; waits to keep the rate; raises `Closed`."""
    # Pictures are enlarged as in a video.
    picture = video.enlarge(picture)
    size = picture.shape[1], picture.shape[0]
    if self._screen is None or self._screen.get_size() != size:
      try:
        self._screen = self._pygame.display.set_mode(size)
      except self._pygame.error as error:
        raise _no_window(error) from error
    self._pygame.surfarray.blit_array(self._screen, picture.swapaxes(0, 1))  # its first axis is x
    self._pygame.display.flip()
    self._clock.tick(frames_per_s)
    for event in self._pygame.event.get():
      if event.type == self._pygame.QUIT or (
        event.type == self._pygame.KEYDOWN
        and event.key in (self._pygame.K_ESCAPE, self._pygame.K_q)
      ):
        raise Closed


def _no_window(reason: object) -> types.UserError:
  return types.UserError(f'no window can be opened ({reason}): {_HINT}')
