"""Tells the user of a metric that does not rise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from seed_acme import agent as agent_lib


class Watcher:
  """Looks at every row of the log. Belongs to the training loop; each watch tells once a run.

  Steps count against a watch while its metric stays below the bound, and begin at 0 when it
  reaches it. Those of rows without the metric do not count.
  """

  def __init__(
    self, watches: Sequence[agent_lib.Watch], total_steps: int, tell: Callable[[str], None]
  ):
    """total_steps: agent steps of the whole run. tell: takes one line."""
    self._watches = {watch.metric: watch for watch in watches}
    self._total_steps = total_steps
    self._tell = tell
    self._num_steps = dict.fromkeys(self._watches, 0)  # below the bound; -1 = has been told
    self._seen = 0

  def add_row(self, agent_steps: int, metrics: Mapping[str, float]) -> None:
    """metrics: of the updates since the last row. A row without any says nothing; its steps count
    with the next, because they are learnt there.
    """
    if not metrics:
      return
    num_steps, self._seen = agent_steps - self._seen, agent_steps
    for name, watch in self._watches.items():
      if name not in metrics or self._num_steps[name] < 0:
        continue
      is_low = metrics[name] < watch.bound
      self._num_steps[name] = self._num_steps[name] + num_steps if is_low else 0
      allowed = watch.share * self._total_steps
      if is_low and self._num_steps[name] >= allowed and agent_steps >= watch.min_steps:
        self._tell(
          f'{watch.problem}: {name} is {metrics[name]:.2g}, and was below {watch.bound:g} for the '
          f'last {self._num_steps[name]:,} agent steps. {watch.advice}'
        )
        self._num_steps[name] = -1

  def save(self) -> dict[str, int]:
    """For a checkpoint."""
    return dict(self._num_steps)

  def restore(self, agent_steps: int, saved: Mapping[str, int]) -> None:
    """agent_steps, saved: of the checkpoint; those saved before there were watches have none."""
    self._seen = agent_steps
    self._num_steps.update({name: saved.get(name, 0) for name in self._num_steps})
