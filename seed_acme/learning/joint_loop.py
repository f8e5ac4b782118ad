"""The training loops of several learner hosts, which keep in step."""

from __future__ import annotations

import pathlib
import shutil
from typing import Any

from seed_acme import types
from seed_acme.learning import training_loop
from seed_acme.storage import checkpoint
from seed_acme.storage import saved_config
from seed_acme.utils import collectives
from seed_acme.utils import counting

_SAVING_S = 1800.0  # for a host that saves its memory
_WHOLE = (
  'replay_of_all_hosts'  # the folder of all memories, before it becomes a part of the checkpoint
)


class JointLoop(training_loop.TrainingLoop):
  """The loop of one host. Host 0 is the chief, which alone writes logs and checkpoints.

  Before each update the hosts meet, and learn from each other what all must decide alike: whether
  every host has a sample, how many steps all have made, whether one is to stop, and whether the
  chief is to log or to save. No host begins an update that another could not take part in.
  """

  def __init__(
    self, hosts: collectives.Group, *arguments: Any, counters: counting.AgreedCounters, **parts: Any
  ):
    """arguments, parts: of `TrainingLoop`."""
    super().__init__(*arguments, counters=counters, **parts)
    self._hosts = hosts
    self._shared = counters
    self._has_restored = False
    self._is_stopped = False
    self._timeout_s: float | None = None  # of the next meeting

  def restore(self) -> None:
    """The chief restores; the others take from it what it then has."""
    if self._hosts.is_chief:
      super().restore()
    told = self._hosts.reports([self._settings(), self._counters.snapshot(), self.resumptions])
    self._check_settings([settings for settings, _, _ in told])
    counts, self.resumptions = counting.Counts(*told[0][1]), told[0][2]
    names, own = zip(*self._learner.save().items())
    arrays = dict(zip(names, self._hosts.of_chief(own)))
    if not self._hosts.is_chief:
      self._learner.restore(arrays, counts.updates)
      # The steps of before are counted by the chief.
      self._counters.restore(counts._replace(agent_steps=0, frames=0, episodes=0))
      self._published.publish(self._learner.variables())
    self._meet(has_sample=False, wants_stop=False)
    self._logged = self._counters.snapshot()
    self._has_restored = True

  def _settings(self) -> dict[str, str]:
    """What all hosts must have in common, by field."""
    flat = saved_config.flatten(self._config)
    return {k: str(v) for k, v in flat.items() if k not in saved_config.MAY_CHANGE_ON_RESUME}

  def _check_settings(self, told: list[dict[str, str]]) -> None:
    own = told[self._hosts.index]
    for index, other in enumerate(told):
      for field in sorted(own.keys() | other.keys()):
        if own.get(field) != other.get(field):
          raise types.UserError(
            f'{field} is {own.get(field)} here and {other.get(field)} at learner/{index}: start '
            'every node with the same --config'
          )

  def may_train(self, has_sample: bool, wants_stop: bool) -> bool:
    """See the base class; the same on all hosts. Logs and saves what the chief says is due."""
    with self.timer.phase('meeting'):
      lacking, logs, saves = self._meet(has_sample, wants_stop)
    self._status.hosts_without_data = lacking
    if logs or saves:
      self._exchange()
      if self._hosts.is_chief:
        self._do(logs, saves)
      elif saves:
        self._save_replay()
        self._timeout_s = _SAVING_S  # the chief has the checkpoint to write
    return not lacking

  def do_what_is_due(self) -> None:
    """Nothing: that is done where the hosts meet."""

  def is_stopped(self, wants_stop: bool) -> bool:
    """See the base class: by what the hosts told each other when they last met."""
    del wants_stop
    return self._is_stopped

  def waits_for(self) -> str:
    """See the base class: the hosts that had no sample when they last met."""
    return ', '.join(f'data of learner/{i}' for i in self._status.hosts_without_data)

  def report_wait(self) -> None:
    """See the base class."""
    if self._hosts.is_chief:
      super().report_wait()

  def finish(self, status: str) -> None:
    """See the base class."""
    self._exchange()
    if self._hosts.is_chief:
      super().finish(status)
    else:
      self._save_replay()
      self.close()

  def _save_replay(self) -> pathlib.Path | None:
    """All hosts save what they hold; the chief puts it together."""
    if not self._has_restored or self._memory is None:
      return None  # of an empty memory there is nothing to save
    own = super()._save_replay()
    told = self._hosts.reports(str(own or ''), _SAVING_S)
    if not self._hosts.is_chief:
      return None
    parts = [pathlib.Path(part) for part in told if part]
    whole = self._run.checkpoints / _WHOLE
    shutil.rmtree(whole, ignore_errors=True)
    if len(parts) < self._hosts.number:
      if own is not None:  # else this host has told why there is none
        lacking = ', '.join(f'learner/{i}' for i, part in enumerate(told) if not part)
        self._run.add_notice(
          f'the replay memory was not saved, because {lacking} could not save what it holds; the '
          'weights are'
        )
      for part in parts:
        shutil.rmtree(part, ignore_errors=True)
      return None
    whole.mkdir()
    for index, part in enumerate(parts):
      part.rename(whole / checkpoint.part_of_host(index))
    return whole

  def _meet(self, has_sample: bool, wants_stop: bool) -> tuple[list[int], bool, bool]:
    """The hosts without a sample, whether to log, whether to save."""
    own = self._shared.own()
    told = (has_sample, wants_stop, *self._due(), int(own.wall_s * 1e3), *own[:2], own.episodes)
    rows = self._hosts.facts([int(x) for x in told], self._timeout_s)
    self._timeout_s = None
    agent_steps, frames, episodes = rows[:, 5:].sum(axis=0).tolist()
    self._shared.agree(agent_steps, frames, episodes, wall_s=rows[0, 4] / 1e3)
    self._is_stopped = bool(rows[:, 1].any())
    lacking = [i for i, row in enumerate(rows) if not row[0]]
    return lacking, bool(rows[0, 2]), bool(rows[0, 3])

  def _exchange(self) -> None:
    """The chief hears what the others have to report; episodes that have ended there count here."""
    own: dict[str, Any] = {'status': self._status.report(), 'episodes': {}}
    if not self._hosts.is_chief:
      own['episodes'] = {kind: of.drain() for kind, of in self._episodes().items()}
    others = self._hosts.reports(own)[1:]
    if self._hosts.is_chief:
      self._status.others = [other['status'] for other in others]
      for other in others:
        for kind, episodes in other['episodes'].items():
          self._episodes()[kind].extend(episodes)
