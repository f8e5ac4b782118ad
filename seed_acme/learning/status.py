"""Writes status.json, with what the learner knows about the run."""

from __future__ import annotations

from collections.abc import Callable
import time
from typing import Any

from seed_acme import core
from seed_acme.files import local
from seed_acme.inference import episodes as episodes_lib
from seed_acme.inference import server_statistics
from seed_acme.learning import loop_settings
from seed_acme.progress import counting
from seed_acme.progress import timing
from seed_acme.progress import waiting
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory

_WAITED_S = 5.0  # shorter waits are not reported
_RATE_S = 30.0  # over which agent steps per second are shown


class StatusWriter:
  """Collects data about unrolls, actors and time, and writes it. Used by the learner's thread."""

  def __init__(
    self,
    settings: loop_settings.LoopSettings,
    run: run_directory.RunDirectory,
    inference: server_statistics.ServerStatistics,
    learner_timer: timing.PhaseTimer,
  ):
    self._settings = settings
    self._run = run
    self._inference = inference
    self._seconds = {'learner': learner_timer.snapshot, 'inference': inference.seconds}
    self._policy_lags = timing.Latencies()
    self._policy_lag_max = 0.0
    self._account: core.UnrollAccount | None = None
    self._rate = counting.RecentRate(_RATE_S)
    self._num_learnt = 0  # unrolls, since this start
    self._has_told_of_missing = False
    self.actors: Callable[[], list[dict[str, Any]]] = list
    self.others: list[dict[str, Any]] = []  # last reports of the other learner hosts, see `report`
    self.hosts_without_data: list[int] = []
    self.best: checkpoint.Best | None = None

  def begin(self, counts: counting.Counts) -> None:
    """Measures the rate of steps from here on."""
    self._rate.begin(counts)

  def watch_replay(
    self, writer_seconds: Callable[[], dict[str, float]], account: core.UnrollAccount
  ) -> None:
    """Adds the seconds of the replay's writers by phase, and counts of unrolls, to the status."""
    self._seconds['replay_writer'] = writer_seconds
    self._account = account

  def add_update(self, metrics: dict[str, float]) -> None:
    """Counts the unrolls of one update, and the age of the weights that had acted in them."""
    self._num_learnt += self._settings.batch_size
    self._policy_lags.add(metrics['learner/policy_lag'])
    self._policy_lag_max = max(self._policy_lag_max, metrics['learner/policy_lag_max'])

  def tell_of_missing_unrolls(self) -> None:
    """Adds a notice to the run if unrolls were lost on this host or another one, once."""
    found = [self._missing()]
    found += [
      f'learner/{i}: {other["missing"]}' if other['missing'] else ''
      for i, other in enumerate(self.others, start=1)
    ]
    if any(found) and not self._has_told_of_missing:
      self._has_told_of_missing = True
      self._run.add_notice(next(filter(None, found)))

  def _missing(self) -> str:
    return self._account.missing() if self._account else ''

  def report(self) -> dict[str, Any]:
    """Returns this host's report to the chief."""
    return {
      **self._unrolls(),
      'missing': self._missing(),
      'actors': self.actors(),
      'seconds': self._durations()['seconds'],
    }

  def all_actors(self) -> list[dict[str, Any]]:
    """Returns a record of every actor of all hosts; each actor belongs to one host."""
    if not self.others:
      return self.actors()
    return [
      {
        'is_connected': any(record['is_connected'] for record in of_hosts),
        'rows': sum(record['rows'] for record in of_hosts),
      }
      for of_hosts in zip(self.actors(), *(other['actors'] for other in self.others))
    ]

  def write(
    self,
    status: str,
    counts: counting.Counts,
    episodes: dict[str, episodes_lib.EpisodeSummary],
    resumptions: int,
  ) -> None:
    """Writes status.json. episodes: summaries by `training` and `evaluation`."""
    record = {
      'status': status,
      'time_s': time.time(),
      **counts._asdict(),
      'total_steps': self._settings.total_steps,
      'max_wall_s': self._settings.max_wall_s,
      'steps_per_s': self._rate.add(counts),
      'episode_return_last_100': episodes['training'].score,
      'evaluation_return': episodes['evaluation'].score,
      'best_checkpoint': None if self.best is None else self.best._asdict(),
      **self._policy_lag(),
      **self._unrolls(),
      'resumptions': resumptions,
      'actors': self.all_actors(),
      'waits_for': waiting.oldest(_WAITED_S),
      **self._durations(),
    }
    for other in self.others:
      for name in ('unrolls_confirmed', 'unrolls_received'):
        record[name] += other[name]
    if self.others:
      record['hosts_without_data'] = [f'learner/{i}' for i in self.hosts_without_data]
      record['seconds_of_other_hosts'] = [other['seconds'] for other in self.others]
    local.write_json(self._run.status, record)

  def _policy_lag(self) -> dict[str, float | None]:
    """Returns statistics over updates since this start; `policy_lag_count` is their number."""
    lag = self._policy_lags.summary()
    if not lag['count']:
      names = ('mean', 'p95', 'max')
      return {'policy_lag_count': 0, **{f'policy_lag_{name}': None for name in names}}
    return {
      'policy_lag_count': lag['count'],
      'policy_lag_mean': lag['mean'],
      'policy_lag_p95': lag['p95'],
      'policy_lag_max': self._policy_lag_max,
    }

  def _unrolls(self) -> dict[str, int]:
    return {
      'unrolls_confirmed': self._account.confirmed() if self._account else 0,
      'unrolls_received': self._account.received() if self._account else 0,
      'unrolls_learnt': self._num_learnt,
    }

  def _durations(self) -> dict[str, Any]:
    seconds = {name: seconds() for name, seconds in self._seconds.items()}
    return {
      'seconds': {**seconds, **self._inference.seconds_of_each()},
      'inference_batch_size': self._inference.batch_sizes.summary(),
      'inference_latency_s': self._inference.latencies_s.summary(),
    }
