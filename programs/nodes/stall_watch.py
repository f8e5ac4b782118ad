"""A watch on actors for environments that hang or are slow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import threading
import time

from seed_acme import config as config_lib
from seed_acme.acting import activity as activity_lib
from seed_acme.programs.building import sections as sections_lib
from seed_acme.storage import run_directory

_POLL_S = 0.5
# A longer gap between two looks counts only this much, because the host was then suspended or
# overloaded, and the actor may have moved on meanwhile.
_LONGEST_GAP_S = 1.0
_SLOW_STEP, _SLOW_RESET = 1 / 20, 1 / 6  # share of the limit: 3 s and 50 s by default
_WAITED_S = 60.0  # time spent waiting for the learner before the user is told
_Doing = activity_lib.Doing
_CALLS = {
  _Doing.MAKING: 'the making',
  _Doing.RESETTING: 'reset()',
  _Doing.STEPPING: 'step()',
  _Doing.CLOSING: 'close()',
}
_ACTING = (_Doing.STEPPING, _Doing.RESETTING)


class Watch:
  """A watch on one actor by polling. The time of a call is the time that it was seen to take."""

  def __init__(
    self,
    sections: sections_lib.ActorSections,
    say: Callable[[str], None],
    ends_workers: bool,
    clock: Callable[[], float] = time.monotonic,
  ):
    """say: tells the user. ends_workers: whether the caller of `look` can kill the worker."""
    self._sections = sections
    self._say = say
    self._ends_workers = ends_workers
    self._clock = clock
    self._has_told_of_slowness = False
    self.follow(activity_lib.Activity())

  def follow(self, activity: activity_lib.Activity) -> None:
    """Watches this activity from now on, instead of the previous one."""
    self._activity = activity
    self._call = activity.read()
    self._seen_s = 0.0
    self._is_told = False  # whether the user was told of this call
    self._looked_s = self._clock()
    self.acted_s = 0.0  # seconds spent stepping or waiting for actions

  def look(self) -> str:
    """Returns why the worker has to be killed, or ''. Call it several times a second."""
    now = self._clock()
    gap_s, self._looked_s = min(now - self._looked_s, _LONGEST_GAP_S), now
    call = self._activity.read()
    has_moved = call.number != self._call.number
    if call.doing is _Doing.WAITING or has_moved and call.doing in _ACTING:
      self.acted_s += gap_s
    if has_moved:
      self._tell_if_slow()
      self._call, self._seen_s, self._is_told = call, 0.0, False
      return ''
    self._seen_s += gap_s
    return self._judge()

  def _judge(self) -> str:
    """Checks a call that has not returned."""
    if self._is_told:
      return ''
    if self._call.doing is _Doing.CONNECTING and self._seen_s > _WAITED_S:
      self._is_told = True
      if self._sections.place.index == 0:  # the other actors wait for the same learner
        self._say(
          f'{self._sections.name} has waited {self._seen_s:.0f} s for the learner, and goes on: '
          'logs/learner/0 says what that does'
        )
    if self._call.doing not in _CALLS:
      return ''
    limit_s = self._limit_s(self._sections.actor)
    told_s = limit_s or self._limit_s(config_lib.ActorConfig())
    if self._seen_s <= told_s:
      return ''
    self._is_told = True
    words = (
      f'environment {self._sections.environment.id} hangs: {self._called()} has not returned '
      f'for {told_s:g} s{self._field()}'
    )
    if limit_s and (self._ends_workers or self._call.doing is _Doing.CLOSING):
      return words
    self._say(
      f'{self._sections.name}: {words}: {self._why_not_ended(limit_s)}; Ctrl-C ends the run'
    )
    return ''

  def _why_not_ended(self, limit_s: float) -> str:
    if not limit_s:
      return 'the limit is 0, so it is waited for'
    return 'a thread cannot be ended, a worker of --launch=local_mp would be started anew'

  def under_way(self) -> str:
    """Returns the environment call that has not returned yet, as text; or ''."""
    self._call = self._activity.read()
    return self._called() if self._call.doing in _CALLS else ''

  def _tell_if_slow(self) -> None:
    """Tells the user once if the call that has returned was slow."""
    is_watched = self._call.doing in _CALLS and self._call.doing is not _Doing.CLOSING
    if self._has_told_of_slowness or not is_watched:
      return
    limit_s = self._limit_s(self._sections.actor)
    share = _SLOW_STEP if self._call.doing is _Doing.STEPPING else _SLOW_RESET
    if self._seen_s <= share * (limit_s or self._limit_s(config_lib.ActorConfig())):
      return
    self._has_told_of_slowness = True
    hung = f' Beyond {limit_s:g} s it counts as hung{self._field()}.' if limit_s else ''
    self._say(
      f'{self._sections.name}: environment {self._sections.environment.id} is slow: '
      f'{self._called()} took {self._seen_s:.0f} s, and all environments of this actor '
      f'wait for it.{hung} More actors with fewer environments each (num_actors, '
      'environments_per_actor) share the work'
    )

  def _limit_s(self, limits: config_lib.ActorConfig) -> float:
    if self._call.doing is _Doing.CLOSING:
      return activity_lib.CLOSE_S
    return limits.step_timeout_s if self._call.doing is _Doing.STEPPING else limits.reset_timeout_s

  def _field(self) -> str:
    """Returns the name of the field that sets the limit, in brackets."""
    if self._call.doing is _Doing.CLOSING:
      return ''
    name = 'step_timeout_s' if self._call.doing is _Doing.STEPPING else 'reset_timeout_s'
    return f' (actor.{name})'

  def _called(self) -> str:
    call = _CALLS[self._call.doing]
    ids = self._sections.place.groups[self._call.group]
    return f'{call} of environments {ids[0]} ... {ids[-1]}'


class Thread:
  """A watch on actors that are threads of this process, which cannot be killed one by one."""

  def __init__(
    self, run_dir: run_directory.RunDirectory, on_hanging_close: Callable[[], None] = lambda: None
  ):
    """on_hanging_close: called if close() of environments does not return."""
    self._on_hanging_close = on_hanging_close
    self._run_dir = run_dir
    self._watches: list[Watch] = []
    self._stop = threading.Event()
    self._thread = threading.Thread(target=self._run, name='watch', daemon=True)
    self._thread.start()

  def add(self, sections: sections_lib.ActorSections) -> activity_lib.Activity:
    """Returns a new activity for an actor, which is watched from now on."""
    activity = activity_lib.Activity()
    watch = Watch(sections, self._run_dir.add_notice, ends_workers=False)
    watch.follow(activity)
    self._watches = [*self._watches, watch]
    return activity

  def _run(self) -> None:
    while not self._stop.wait(_POLL_S):
      self._look()
    self._look()  # reports slow calls that have returned since the last look

  def _look(self) -> None:
    watches: Sequence[Watch] = self._watches
    for watch in watches:
      hangs = watch.look()
      if hangs:
        self._run_dir.add_notice(f'{hangs}: the run ends without it')
        self._on_hanging_close()

  def stop(self) -> None:
    """Stops the watch after a last look."""
    self._stop.set()
    self._thread.join()
