"""Notifies the user if a metric does not rise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from seed_acme import agent as agent_lib

_LITTLE = 0.1  # of the greatest amount


class Watcher:
  """Checks every row of the log. Used by the training loop; each watch notifies once per run.

  Steps are counted while a watch's metric is below its bound, and the count restarts at 0 when the
  metric reaches it. Steps of rows without the metric, or with little to learn, are not counted.
  """

  def __init__(
    self, watches: Sequence[agent_lib.Watch], total_steps: int, tell: Callable[[str], None]
  ):
    """total_steps: agent steps of the whole run. tell: receives one line for the user."""
    self._watches = {watch.metric: watch for watch in watches}
    if len(self._watches) < len(watches):
      raise ValueError(f'two watches of one metric: {[watch.metric for watch in watches]}')
    self._total_steps = total_steps
    self._tell = tell
    self._num_steps = dict.fromkeys(self._watches, 0)  # below the bound; -1 = user was notified
    self._greatest = dict.fromkeys(self._watches, 0.0)  # amounts
    self._seen = 0

  def add_row(self, agent_steps: int, metrics: Mapping[str, float]) -> None:
    """Checks a row. metrics: of the updates since the last row. A row without any is skipped, and
    its steps are counted with the next row, because they are learnt there.
    """
    if not metrics:
      return
    num_steps, self._seen = agent_steps - self._seen, agent_steps
    for name, watch in self._watches.items():
      if name not in metrics or self._num_steps[name] < 0 or self._is_little(watch, metrics):
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

  def _is_little(self, watch: agent_lib.Watch, metrics: Mapping[str, float]) -> bool:
    if watch.amount is None:
      return False
    amount, name = watch.amount(metrics), watch.metric
    self._greatest[name] = max(self._greatest[name], amount)
    return amount < _LITTLE * self._greatest[name]

  def save(self) -> dict[str, float]:
    """Returns the state for a checkpoint."""
    return {**self._num_steps, **{_greatest(name): x for name, x in self._greatest.items()}}

  def restore(self, agent_steps: int, saved: Mapping[str, float]) -> None:
    """Restores the state. agent_steps, saved: from the checkpoint; old ones have no `saved`."""
    self._seen = agent_steps
    self._num_steps.update({name: int(saved.get(name, 0)) for name in self._num_steps})
    self._greatest.update({name: saved.get(_greatest(name), 0.0) for name in self._greatest})


def _greatest(name: str) -> str:
  return f'{name}/greatest_amount'
