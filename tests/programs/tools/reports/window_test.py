"""The window of `evaluate --watch`, with SDL's dummy driver."""

import importlib

import numpy as np
import pytest

from seed_acme import types
from seed_acme.programs.tools.reports import window

pygame = pytest.importorskip('pygame')
_PICTURE = np.zeros((20, 40, 3), np.uint8)


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch):
  monkeypatch.setenv('SDL_VIDEODRIVER', 'dummy')


def test_a_picture_is_shown_enlarged_and_not_turned(monkeypatch):
  picture = _PICTURE.copy()
  picture[0, -1] = 255  # the top right corner
  with window.Window() as screen:
    screen.title('catch: episode 3')
    screen.show(picture, frames_per_s=1e3)
    surface = pygame.display.get_surface()
    assert surface.get_size() == (640, 320)
    assert surface.get_at((639, 0))[:3] == (255, 255, 255)
    assert surface.get_at((0, 319))[:3] == (0, 0, 0)
    assert pygame.display.get_caption()[0] == 'catch: episode 3'
    screen.show(np.zeros((30, 40, 3), np.uint8), frames_per_s=1e3)  # another level is wider
    assert pygame.display.get_surface().get_size() == (440, 330)
  assert not pygame.display.get_init()


def test_it_waits_between_two_pictures_as_the_episode_does(monkeypatch):
  ticks = []

  class Clock:
    def tick(self, frames_per_s):
      ticks.append(frames_per_s)

  monkeypatch.setattr(pygame.time, 'Clock', Clock)
  with window.Window() as screen:
    screen.show(_PICTURE, 15.0)
    screen.show(_PICTURE, 20.0)
  assert ticks == [15.0, 20.0]


@pytest.mark.parametrize(
  'event',
  [
    pygame.event.Event(pygame.QUIT),
    pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE),
    pygame.event.Event(pygame.KEYDOWN, key=pygame.K_q),
  ],
)
def test_closing_ends_it_and_another_key_does_not(event):
  with window.Window() as screen:
    screen.show(_PICTURE, 1e3)
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_a))
    screen.show(_PICTURE, 1e3)
    pygame.event.post(event)
    with pytest.raises(window.Closed):
      screen.show(_PICTURE, 1e3)


def test_without_a_display_the_message_names_another_way(monkeypatch):
  for name in ('DISPLAY', 'WAYLAND_DISPLAY', 'SDL_VIDEODRIVER'):
    monkeypatch.delenv(name, raising=False)
  with pytest.raises(types.UserError, match='neither DISPLAY .* --video=episode.mp4'):
    window.Window()
  monkeypatch.setenv('DISPLAY', 'nowhere:7')
  with pytest.raises(types.UserError, match='no window can be opened .* --video=episode.mp4'):
    window.Window()


def test_without_pygame_the_extra_is_named(monkeypatch):
  really = importlib.import_module

  def without(name, *rest):
    if name == 'pygame':
      raise ImportError('No module named pygame')
    return really(name, *rest)

  monkeypatch.setattr(importlib, 'import_module', without)
  with pytest.raises(types.UserError, match=r"needs the package pygame: .*'\.\[video\]'"):
    window.Window()
