"""E Atari games stepped by ale-py in C++ threads, as one `core.VectorEnvironment`."""

from __future__ import annotations

from collections.abc import Sequence
import functools
import importlib
from typing import Any, NamedTuple

import numpy as np

from seed_acme import types
from seed_acme.envs import atari
from seed_acme.envs import atari_lives
from seed_acme.envs import lockstep

# ale-py's own limit is not used, see `AtariVector`; this is more than `Settings.max_frames` may be.
_NEVER = 2**30
_GOES_ON = -1  # "seed" of a reset that continues the random stream


class AtariVector:
  """A `core.VectorEnvironment`; called from one thread, with `num_threads` threads of its own.

  Shows the same screens as `atari.Atari`, through ale-py's vector interface, which
  `ale_py.AtariVectorEnv` wraps for gymnasium; it needs no gymnasium. Three of its
  peculiarities are corrected here, and two cannot be:

  * When the frames run out it leaves a game in its last state, without a picture of it. So
    its limit is switched off, steps are counted here, and the game is reset explicitly.
  * It draws 0 ... N - 1 no-ops, while the papers draw 1 ... N. It is asked for 0 ... N, and
    starts with 0 are drawn again.
  * A wrong action kills one of its threads, and the next step would wait for ever, so actions
    are checked first.
  * **At game over it takes no picture either: the screen of a terminated LAST row is an
    earlier one** (mostly that of the row before). No agent learns from that screen, because
    the discount is 0; if you need it, use `vectorized=False`.
  * A truncated game takes a step that nobody sees before it is reset. With sticky actions that
    step draws from the emulator's random stream, so the rows after the first truncation are
    not those of `atari.Atari`.
  """

  def __init__(self, game: str, seeds: Sequence[int], settings: atari.Settings):
    """seeds: one per environment, below 2**32. `types.UserError` for an unknown game."""
    self._interface = _vector_interface(atari.rom_path(game), len(seeds), settings)
    facts = _game_facts(game)
    self._num_start_frames = facts.num_start_frames
    codes = facts.full_codes if settings.full_action_set else facts.minimal_codes
    atari.check_fire(game, codes, settings)
    actions = self._interface.get_action_set()
    position = {action.value: index for index, action in enumerate(actions)}
    self._positions = np.array([position[code] for code in codes], np.int32)
    self._fire = position.get(atari.FIRE, atari.NOOP)
    self._lives = atari_lives.Lives(len(seeds), settings.life_loss, settings.fire_at_start)
    self._settings = settings
    self._seeds: list[int] = [atari.emulator_seed(seed) for seed in seeds]
    self.num_environments = len(seeds)
    self.spec = atari.environment_spec(len(codes), settings)
    self._strength = np.ones(len(seeds), np.float32)  # full strength of a paddle's turn
    self._num_steps = np.zeros(len(seeds), np.int64)  # of each episode
    self._has_ended = np.ones(len(seeds), bool)
    self._is_truncated = np.zeros(len(seeds), bool)

  def reset(self) -> types.VectorTimeStep:
    """Abandons the episodes and starts new ones; the random streams continue."""
    everyone = np.ones(self.num_environments, bool)
    seeds = self._seeds or [_GOES_ON] * self.num_environments
    self._seeds = []
    screens, info = self._interface.reset(range(self.num_environments), seeds)
    again = self._has_no_noops(everyone, info)
    if again.any():
      screens, info = self._restart(again)
    zeros = np.zeros(self.num_environments)
    return self._timestep(everyone, zeros, ~everyone, screens, info)

  def step(self, actions: types.Nest) -> types.VectorTimeStep:
    """actions: `[E]` integers of `spec.action`; ignored where the row was LAST.

    ValueError for another shape or values outside the choices.
    """
    if self._seeds:
      return self.reset()
    actions = lockstep.check_actions(actions, self.num_environments, len(self._positions))
    is_first = self._has_ended
    # The step of truncated games that nobody sees is a no-op, so that the caller's action does not
    # affect the game's random stream.
    positions = np.where(self._lives.fires, self._fire, self._positions[actions])
    positions = np.where(is_first, atari.NOOP, positions).astype(np.int32)
    self._interface.send(positions, self._strength)
    screens, rewards, is_over, _, info = self._interface.recv()
    again = self._is_truncated | self._has_no_noops(is_first, info)
    if again.any():
      screens, info = self._restart(again)
    return self._timestep(is_first, rewards, is_over & ~is_first, screens, info)

  def close(self) -> None:
    """Ends the threads."""
    self._interface = None

  def _has_no_noops(self, is_first: np.ndarray, info: dict[str, np.ndarray]) -> np.ndarray:
    """Returns `[E]`, True for episodes that start without a no-op although they should have one."""
    if not self._settings.max_num_noops:
      return np.zeros(self.num_environments, bool)
    return is_first & (info['episode_frame_number'] <= self._num_start_frames)

  def _restart(self, again: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Resets some games until each has a no-op; returns the screens and info of all."""
    while True:
      indices = np.flatnonzero(again)
      screens, info = self._interface.reset(indices, [_GOES_ON] * len(indices))
      again = self._has_no_noops(again, info)
      if not again.any():
        return screens, info

  def _timestep(
    self,
    is_first: np.ndarray,
    rewards: np.ndarray,
    is_over: np.ndarray,
    screens: np.ndarray,
    info: dict[str, np.ndarray],
  ) -> types.VectorTimeStep:
    discounts = self._lives.read(info['lives'], is_first)
    self._num_steps = np.where(is_first, 0, self._num_steps + 1)
    num_frames = self._num_steps * self._settings.frames_per_step
    self._is_truncated = ~is_over & (num_frames >= self._settings.max_frames)
    self._has_ended = is_over | self._is_truncated
    if self._settings.stack == 1:
      observation = screens.reshape(self.num_environments, *self.spec.observation.shape)
    else:
      # From [E, stack, H, W], the oldest first. The array is new, so no other copy is needed.
      observation = np.ascontiguousarray(screens[:, ::-1].transpose(0, 2, 3, 1))
    return lockstep.time_step(
      is_first, rewards, is_over, self._is_truncated, observation, discounts
    )


class _GameFacts(NamedTuple):
  """Facts about a game that the vector interface does not provide.

  num_start_frames: frames that the start of an episode takes before any no-op.
  full_codes, minimal_codes: see `atari.action_codes`.
  """

  num_start_frames: int
  full_codes: list[int]
  minimal_codes: list[int]


@functools.cache
def _game_facts(game: str) -> _GameFacts:
  # Cached, because loading a game takes 0.1 s and none of this depends on the seed.
  ale = atari.load_game(game, seed=0, repeat_action_probability=0.0)
  ale.reset_game()
  return _GameFacts(
    ale.getEpisodeFrameNumber(),
    atari.action_codes(ale, full_action_set=True),
    atari.action_codes(ale, full_action_set=False),
  )


def _vector_interface(path: str, num_environments: int, settings: atari.Settings) -> Any:
  """Sets every option, because the defaults clip rewards and press fire at the start."""
  # From the compiled module, because the package exports it only if gymnasium is installed.
  native = importlib.import_module('ale_py._ale_py')
  return native.ALEVectorInterface(
    rom_path=path,
    num_envs=num_environments,
    frame_skip=settings.frames_per_step,
    stack_num=settings.stack,
    img_height=settings.image_size,
    img_width=settings.image_size,
    grayscale=True,
    maxpool=True,
    noop_max=settings.max_num_noops + 1,  # draws less than this
    use_fire_reset=False,
    episodic_life=False,
    life_loss_info=False,
    reward_clipping=False,
    max_episode_steps=_NEVER,
    repeat_action_probability=settings.repeat_action_probability,
    full_action_space=settings.full_action_set,
    batch_size=0,  # all environments in each batch
    num_threads=settings.num_threads,
    thread_affinity_offset=-1,  # off: several actors would share the same core
    autoreset_mode='NextStep',
  )
