"""Statistics shared by the inference servers of a run, one server per inference device."""

from __future__ import annotations

from collections.abc import Callable

from seed_acme.inference import episodes
from seed_acme.progress import timing


class ServerStatistics:
  """Statistics of all inference servers. Each server writes from its own thread, for its own
  environments; any thread may read.

  agent_steps: returns those of the run so far, with which evaluation episodes become too old to
    count (see `episodes.EpisodeStatistics`).
  """

  def __init__(self, num_environments: int, agent_steps: Callable[[], int] | None = None):
    self.training_episodes = episodes.EpisodeStatistics(num_environments)
    self.evaluation_episodes = episodes.EpisodeStatistics(num_environments, agent_steps)
    self.batch_sizes = timing.Latencies()  # rows
    self.latencies_s = timing.Latencies()
    self._timers: list[timing.PhaseTimer] = []

  def new_timer(self) -> timing.PhaseTimer:
    """Returns a timer for one more server."""
    self._timers.append(timing.PhaseTimer())
    return self._timers[-1]

  def seconds_of_each(self) -> dict[str, dict[str, float]]:
    """Returns seconds by server (`inference/0` and so on) and phase; empty if there is only one."""
    if len(self._timers) < 2:
      return {}
    return {f'inference/{i}': timer.snapshot() for i, timer in enumerate(self._timers)}

  def seconds(self) -> dict[str, float]:
    """Returns the seconds spent in each phase, summed over all servers."""
    return timing.merge(*(timer.snapshot() for timer in self._timers))
