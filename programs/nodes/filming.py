"""Films of evaluation episodes during training: `record_every`. Loads no TensorFlow.

The evaluation actor films the first of its environments and writes into the run folder, where the
learner finds the films and passes them to the loggers. The other actors are not affected.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
import contextlib
import pathlib
import time
from typing import Any, NamedTuple

from seed_acme import core
from seed_acme import types
from seed_acme.envs import experiment_environments as environments
from seed_acme.envs import wrapper
from seed_acme.files import local
from seed_acme.programs.pictures import video
from seed_acme.storage import recordings
from seed_acme.storage import run_directory

_MAX_STEPS = 3_000  # length of a film, which trackers upload; more than three minutes of Atari
_READ_PERIOD_S = 1.0


class Films(NamedTuple):
  """The destination of an actor's films, and the step counter that decides when they are due.

  folder: of the films. agent_steps: returns those of the run so far; None = not known yet, so
    nothing is filmed. tell: called once with the reason if filming stops after an error.
  """

  folder: pathlib.Path
  agent_steps: Callable[[], int | None]
  tell: Callable[[str], None]


def of_run(run_dir: run_directory.RunDirectory) -> Films:
  """Returns the films of an actor that has a process of its own, on the learner's machine."""
  return Films(run_dir.videos, _StatusSteps(run_dir), run_dir.add_notice)


def refuse_elsewhere(record_every: int, how: str) -> None:
  """Raises `types.UserError` if actors that share no folder with the learner are to film.

  how: how such a run is started, for the message.
  """
  if record_every:
    raise types.UserError(
      f'record_every ({record_every}) with {how}: the evaluation actor would have to write '
      'its films into the run folder, which only nodes on the same machine share. Set it to 0, and '
      'film a checkpoint with seed-acme evaluate RUN --video=episode.mp4'
    )


class FilmedEnvironment(wrapper.Wrapper):
  """A `core.VectorEnvironment` that films an episode of its environment 0 now and then.

  The first episode is filmed, and then the first one that begins after each multiple of
  `record_every` agent steps of the run. If filming fails, there is a notice, and the run continues.
  Called from one thread.
  """

  def __init__(
    self, environment: core.VectorEnvironment, settings: environments.Section, films: Films
  ):
    """environment: made with `renders`; owned by this object from now on."""
    super().__init__(environment)
    self.spec = environment.spec
    self._period = settings.record_every
    self._frames_per_s = video.frames_per_s(settings.environment.id, self.spec.frames_per_step)
    self._films = films
    self._filmed_at: int | None = None  # agent steps at the newest film; None = not looked up yet
    self._film: Generator[None, types.VectorTimeStep, None] | None = None  # the film in progress
    self._has_failed = False
    with contextlib.suppress(OSError):  # the first film reports what prevents it
      films.folder.mkdir(parents=True, exist_ok=True)
      recordings.delete_unfinished(films.folder)

  def reset(self) -> types.VectorTimeStep:
    """Restarts all environments."""
    return self._shown(self._environment.reset())

  def step(self, actions: types.Nest) -> types.VectorTimeStep:
    """Steps all environments. actions: nest of `[E, ...]` as in `spec.action`."""
    return self._shown(self._environment.step(actions))

  def close(self) -> None:
    """Closes the environments, and drops an unfinished film."""
    try:
      if self._film is not None:
        self._film.close()
    finally:
      super().close()

  def _shown(self, timestep: types.VectorTimeStep) -> types.VectorTimeStep:
    if not self._has_failed:
      try:
        self._show(timestep)
      except core.ChannelClosed:  # a signal that ends this actor
        raise
      # an encoder or renderer failed: the run matters more than its film
      except Exception as error:
        self._has_failed, self._film = True, None
        self._films.tell(
          f'nothing is filmed any more (record_every): {type(error).__name__}: {error}'
        )
    return timestep

  def _show(self, timestep: types.VectorTimeStep) -> None:
    if timestep.step_type[0] == types.FIRST:
      agent_steps = self._films.agent_steps()
      if agent_steps is not None and self._is_due(agent_steps):
        self._filmed_at = agent_steps
        self._film = self._filming(agent_steps)
        next(self._film)
    if self._film is not None:
      try:
        self._film.send(timestep)
      except StopIteration:
        self._film = None

  def _is_due(self, agent_steps: int) -> bool:
    if self._filmed_at is None:
      # A resumed run may have gone back to a checkpoint before its last films.
      earlier = [steps for steps in recordings.steps(self._films.folder) if steps <= agent_steps]
      self._filmed_at = earlier[-1] if earlier else -1
    return agent_steps // self._period > self._filmed_at // self._period

  def _filming(self, agent_steps: int) -> Generator[None, types.VectorTimeStep, None]:
    """Receives every time step of an episode, and returns when the film is written."""
    folder = self._films.folder
    writer = video.Writer(recordings.video_path(folder, agent_steps))
    preview = video.Preview()
    episode_return, length, has_ended = 0.0, -1, False
    with writer.open(self._frames_per_s):
      while not has_ended and length < _MAX_STEPS:
        timestep = yield
        screen = self.render()
        writer.add(screen)
        preview.add(screen)
        length += 1
        episode_return += float(timestep.score[0]) if length else 0.0
        has_ended = bool(timestep.step_type[0] == types.LAST)
    preview_path = recordings.preview_path(folder, agent_steps)
    preview.write(preview_path, self._frames_per_s)
    recordings.add(
      types.Recording(
        agent_steps, writer.path, preview_path, episode_return, length, is_cut=not has_ended
      )
    )


class _StatusSteps:
  """The agent steps of a run according to its status, which the learner writes with its logs.

  They are 0 before there is a status.
  """

  def __init__(self, run_dir: run_directory.RunDirectory):
    self._run_dir = run_dir
    self._earlier_s = self._status().get('time_s')  # identifies the status of an earlier start
    self._read_s = -_READ_PERIOD_S
    self._agent_steps: int | None = None

  def __call__(self) -> int | None:
    """Returns the agent steps; None if an earlier start wrote the status, and may have been
    ahead."""
    now = time.monotonic()
    if now - self._read_s >= _READ_PERIOD_S:
      self._read_s = now
      self._agent_steps = self._read()
    return self._agent_steps

  def _read(self) -> int | None:
    status = self._status()
    if not status:
      return 0
    # Not by the order of times, because a clock may be set back.
    return None if status['time_s'] == self._earlier_s else status['agent_steps']

  def _status(self) -> dict[str, Any]:
    return local.read_json(self._run_dir.status) if self._run_dir.status.exists() else {}
