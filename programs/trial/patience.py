"""The time-outs and progress notices of an environment's trial."""

from __future__ import annotations

from collections.abc import Callable
import itertools
import time

from seed_acme.acting import activity as activity_lib
from seed_acme.envs import experiment_environments as environments

# When the user is told that the trial is still going on; then once a minute.
_TELL_S = (3.0, 10.0, 30.0, 60.0)
_QUIET_S = 30.0  # until the user is told of a phase other than the environment's calls
# A longer gap between two looks counts only this much, because the host was then suspended or
# overloaded, and the trial may have moved on meanwhile.
_LONGEST_GAP_S = 1.0
_MAKING, _CLOSING = activity_lib.Doing.MAKING, activity_lib.Doing.CLOSING
_SHOWN = {_MAKING: 'it is being made', _CLOSING: 'it is being closed'}


class Hangs(Exception):
  """A call of the environment has not returned; the text names it."""


class Patience:
  """The watch on the trial of an environment."""

  def __init__(
    self,
    config: environments.Settings,
    show: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
  ):
    self._environment = config.environment.id
    self._making_s = config.actor.reset_timeout_s
    self._show = show
    self._clock = clock
    self._looked_s = clock()
    self._call = -1  # number of the current call
    self._call_s = 0.0

  def is_over(self, call: activity_lib.Call) -> bool:
    """Whether to stop waiting although the process is still running; raises `Hangs`.

    Call it several times a second. call: the current one.
    """
    now = self._clock()
    gap_s, self._looked_s = min(now - self._looked_s, _LONGEST_GAP_S), now
    if call.number != self._call:
      self._call, self._call_s = call.number, 0.0
      self._tell_s = itertools.chain(_TELL_S, itertools.count(2 * _TELL_S[-1], _TELL_S[-1]))
      self._next_s = next(self._tell_s)
    self._call_s += gap_s
    self._show_life(call.doing)
    if call.doing is _MAKING and self._making_s and self._call_s > self._making_s:
      raise Hangs(
        f'environment {self._environment} hangs: its making has not returned for '
        f'{self._making_s:g} s (actor.reset_timeout_s)'
      )
    is_left = call.doing is _CLOSING and self._call_s > activity_lib.CLOSE_S
    if is_left:
      self._show(
        f'Notice: environment {self._environment} hangs: close() has not returned for '
        f'{activity_lib.CLOSE_S:g} s: the run goes on without it'
      )
    return is_left

  def _show_life(self, doing: activity_lib.Doing) -> None:
    if self._call_s < (self._next_s if doing in _SHOWN else max(self._next_s, _QUIET_S)):
      return
    self._next_s = next(self._tell_s)
    what = _SHOWN.get(doing, 'agent and network are held against it')
    limit = ''
    if doing is _MAKING:
      limit = f', up to {self._making_s:g} s' if self._making_s else ', without a limit'
    waited = f'{self._call_s:.0f} s by now{limit}'
    self._show(f'Trying environment {self._environment}: {what}, {waited}')
