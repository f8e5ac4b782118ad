"""A sweep whose combinations Optuna chooses, and which prunes those that fall behind.

A trial of Optuna is a combination; its runs, one per seed, go one after the other. The run of the
first seed reports its return at every twentieth of the budget. If its best one so far is below the
median of what earlier trials had reached there, the trial is pruned. Only the curves in the run
folders are reported. A search that was killed can therefore continue where it was, and if its
database is missing, or if it begins in the folder of a grid, it learns from the finished runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import importlib
import math
import pathlib
from typing import Any

import numpy as np

from seed_acme import types
from seed_acme.checks import extras
from seed_acme.loggers import csv_file
from seed_acme.programs.tools.sweep import grid as sweep_grid
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import search_space
from seed_acme.programs.tools.sweep import state as sweep_state

FILE = 'search.db'
_TRAINING, _EVALUATION = 'episode/return_last_100', 'evaluation/return'
_PERIOD = 5  # percent of the budget between two reports
_WARM_UP = 20  # percent of the budget before which no trial is pruned
_MIN_TRIALS = 5  # finished trials before any is pruned


@dataclasses.dataclass
class _Open:
  """A trial that is neither finished nor pruned. trial: Optuna's."""

  trial: Any
  combination: sweep_plan.Combination
  reported: set[int]  # percent


def require() -> Any:
  """Returns the package optuna; raises `UserError` with the extra to install if it is missing."""
  return extras.import_module('optuna', 'search', search_space.OPTION)


class Search:
  """The `runs.Runs` of a search. plan: has all combinations that were drawn so far."""

  def __init__(
    self, plan: sweep_plan.Plan, out: pathlib.Path, save: Callable[[sweep_plan.Plan], None]
  ):
    """out: folder of the sweep. save: called with the plan before a new combination is run."""
    assert plan.search
    self._optuna = require()
    self._database_error = importlib.import_module('sqlalchemy.exc').SQLAlchemyError
    self.plan = plan
    self._space, self._num_trials = plan.search.space, plan.search.num_trials
    self._out = out
    self._save = save
    self._open: list[_Open] = []
    self._under_way: set[pathlib.Path] = set()
    self._over: set[str] = set()  # slugs of trials that have ended
    with self._told():
      self._study = self._load()
      self._take_up()
      self._add_known()

  def next(self) -> sweep_plan.Run | None:
    """Returns the next seed of an open trial, or the first seed of a new one."""
    with self._told():
      while True:
        for opened in self._open:
          runs = self.plan.runs_of(opened.combination, self._out)
          if not any(run.run_dir.path in self._under_way for run in runs):
            run = next(run for run in runs if not sweep_state.is_finished(run))
            self._under_way.add(run.run_dir.path)
            return run
        if self._num_drawn() >= self._num_trials:
          return None
        self._draw()

  def to_stop(self, running: Sequence[sweep_plan.Run]) -> list[sweep_plan.Run]:
    """See `Runs`. Also reports to Optuna what the runs have reached meanwhile."""
    given_up = []
    with self._told():
      for run in running:
        for opened in self._open:
          is_meant = run.combination.slug == opened.combination.slug and self._is_first(run)
          if is_meant and self._falls_behind(opened, run):
            sweep_state.prune(run, max(opened.reported))
            given_up.append(run)
            break
    return given_up

  def ended(self, run: sweep_plan.Run, has_failed: bool) -> None:
    """Tells Optuna if a trial has ended with this run; one that was stopped stays open."""
    self._under_way.discard(run.run_dir.path)
    with self._told():
      for opened in list(self._open):
        if opened.combination.slug == run.combination.slug:
          if has_failed:
            self._close(opened, self._optuna.trial.TrialState.FAIL)
          else:
            self._settle(opened)

  def known(self) -> list[sweep_plan.Run]:
    """Returns the runs of all trials so far."""
    return [run for slug in sorted(self._slugs()) for run in self._runs(slug)]

  def num_in_all(self) -> int:
    """Returns the total if no further trial is pruned or repeats an earlier combination."""
    to_draw = max(0, self._num_trials - self._num_drawn())
    return self._num_of(self._slugs()) + to_draw * self.plan.num_seeds

  def num_over(self) -> int:
    """Returns the runs of ended trials, plus finished runs of open ones."""
    of_open = sum(
      sweep_state.is_finished(run)
      for slug in self._slugs() - self._over
      for run in self._runs(slug)
    )
    return self._num_of(self._over) + of_open

  def _num_of(self, slugs: set[str]) -> int:
    """Counts runs: of an ended trial those that were started, of any other all seeds."""
    return sum(
      sum(run.run_dir.holds_run() for run in self._runs(slug))
      if slug in self._over
      else self.plan.num_seeds
      for slug in slugs
    )

  def _slugs(self) -> set[str]:
    return {opened.combination.slug for opened in self._open} | self._over

  def _runs(self, slug: str) -> list[sweep_plan.Run]:
    [combination] = (one for one in self.plan.combinations if one.slug == slug)
    return self.plan.runs_of(combination, self._out)

  def _is_first(self, run: sweep_plan.Run) -> bool:
    return run.seed == self.plan.base.seed

  def _load(self) -> Any:
    optuna = self._optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # the scheduler reports events instead
    # As the path of a URL, `?` would begin the options, and Optuna would fill in what is in braces.
    database = (self._out / FILE).absolute().as_uri()
    return optuna.create_study(
      storage=f'sqlite:///{database}?uri=true',
      study_name=self.plan.base.name,
      direction='maximize',
      load_if_exists=True,
      pruner=optuna.pruners.MedianPruner(
        n_startup_trials=_MIN_TRIALS, n_warmup_steps=_WARM_UP, n_min_trials=_MIN_TRIALS
      ),
    )

  def _take_up(self) -> None:
    """Reopens the trials of an earlier start."""
    states = self._optuna.trial.TrialState
    for trial in self._study.get_trials():
      if set(trial.params) != set(self._space):  # killed while it was being drawn
        if not trial.state.is_finished():
          self._study.tell(trial.number, state=states.FAIL)
        continue
      combination = self._combination(trial.params)
      if trial.state.is_finished():
        self._over.add(combination.slug)
        continue
      # Optuna offers no public way to reopen a running trial.
      resumed = self._optuna.trial.Trial(self._study, trial._trial_id)
      self._begin(_Open(resumed, combination, set(trial.intermediate_values)))

  def _add_known(self) -> None:
    """Adds finished or pruned combinations of the folder that are no trials yet."""
    states = self._optuna.trial.TrialState
    for combination in self.plan.combinations:
      params = self._params(combination)
      if combination.slug in self._slugs() or params is None:
        continue
      runs = self.plan.runs_of(combination, self._out)
      value = self._value(runs)
      reports = self._curve(runs[0])
      if value is None and not (_is_pruned(runs[0]) and reports):
        continue
      self._study.add_trial(
        self._optuna.trial.create_trial(
          state=states.PRUNED if value is None else states.COMPLETE,
          value=reports[max(reports)] if value is None else value,
          params=params,
          distributions=self._distributions(),
          intermediate_values=reports,
        )
      )
      self._over.add(combination.slug)

  def _draw(self) -> None:
    # Seeded by the number of the trial, so that a resumed search does not repeat its draws.
    number = len(self._study.get_trials(deepcopy=False))
    seed = np.random.SeedSequence((self.plan.base.seed, number)).generate_state(1)[0]
    self._study.sampler = self._optuna.samplers.TPESampler(seed=int(seed))
    trial = self._study.ask(self._distributions())
    self._begin(_Open(trial, self._combination(trial.params), set()))

  def _begin(self, opened: _Open) -> None:
    """Opens a trial. Its combination may have been run already, since choices can repeat."""
    self._open.append(opened)
    self._settle(opened)

  def _combination(self, params: dict[str, Any]) -> sweep_plan.Combination:
    """Returns the combination of a trial; a new one is saved in the plan first."""
    settings = {field: self._setting(field, params[field]) for field in self._space}
    plan, combination = sweep_plan.with_combination(self.plan, settings)
    if plan is not self.plan:
      self.plan = plan
      self._save(plan)
    return combination

  def _setting(self, field: str, drawn: Any) -> Any:
    domain = self._space[field]
    if isinstance(domain, search_space.Range):
      return search_space.rounded(drawn, domain)
    return next(value for value in domain.values if sweep_grid.text(value) == drawn)

  def _params(self, combination: sweep_plan.Combination) -> dict[str, Any] | None:
    """Returns the parameters that Optuna would have drawn; None if they are outside the space."""
    if not set(combination.settings) <= set(self._space):
      return None
    values = {field: sweep_grid.get(combination.config, field) for field in self._space}
    if not all(search_space.contains(self._space[field], value) for field, value in values.items()):
      return None
    return {
      field: value if isinstance(self._space[field], search_space.Range) else sweep_grid.text(value)
      for field, value in values.items()
    }

  def _distributions(self) -> dict[str, Any]:
    """Returns Optuna's distributions. Choices are given as text, since Optuna knows no tuples."""
    kinds, found = self._optuna.distributions, {}
    for field, domain in self._space.items():
      if isinstance(domain, search_space.Choices):
        found[field] = kinds.CategoricalDistribution([sweep_grid.text(v) for v in domain.values])
      else:
        make = kinds.IntDistribution if isinstance(domain.low, int) else kinds.FloatDistribution
        found[field] = make(domain.low, domain.high, log=domain.is_log)
    return found

  def _num_drawn(self) -> int:
    """Returns the number of trials that count."""
    trials = self._study.get_trials(deepcopy=False)
    return sum(set(trial.params) == set(self._space) for trial in trials)

  def _falls_behind(self, opened: _Open, run: sweep_plan.Run) -> bool:
    """Whether a run is to be pruned, after new values are reported."""
    next_percent = max(opened.reported, default=0) + _PERIOD
    if sweep_state.share(run) * 100 < next_percent:
      return False
    return self._report(opened, run) and bool(opened.trial.should_prune())

  def _report(self, opened: _Open, run: sweep_plan.Run) -> bool:
    """Reports new values to Optuna; returns whether there were any."""
    fresh = {
      percent: value
      for percent, value in self._curve(run).items()
      if percent not in opened.reported
    }
    for percent, value in fresh.items():
      opened.trial.report(value, percent)
    opened.reported |= set(fresh)
    return bool(fresh)

  def _settle(self, opened: _Open) -> None:
    """Tells Optuna if a trial has ended, according to its run folders."""
    runs = self.plan.runs_of(opened.combination, self._out)
    states = self._optuna.trial.TrialState
    if all(map(sweep_state.is_finished, runs)):
      self._report(opened, runs[0])
      value = self._value(runs)  # None if no episode has ended
      self._close(opened, states.FAIL if value is None else states.COMPLETE, value)
    elif _is_pruned(runs[0]):
      self._report(opened, runs[0])
      self._close(opened, states.PRUNED if opened.reported else states.FAIL)

  def _close(self, opened: _Open, state: Any, value: float | None = None) -> None:
    self._open.remove(opened)
    self._over.add(opened.combination.slug)
    self._study.tell(opened.trial, value, state)

  def _value(self, runs: Sequence[sweep_plan.Run]) -> float | None:
    """Returns the objective's mean over seeds; None if a run is unfinished or has no value."""
    values = []
    for state in map(sweep_state.read, runs):
      value = state.evaluation_return if self._evaluates() else state.mean_return
      if state.status != sweep_state.FINISHED or value is None:
        return None
      values.append(value)
    return float(np.mean(values))

  def _evaluates(self) -> bool:
    return self.plan.base.num_evaluation_environments > 0

  def _curve(self, run: sweep_plan.Run) -> dict[int, float]:
    """Returns returns by percent of the budget so far, the newest value known at each."""
    try:
      columns = csv_file.read(run.run_dir.metrics)
    except types.UserError:  # it has no log yet
      return {}
    returns = columns.get(_EVALUATION if self._evaluates() else _TRAINING, [])
    wall_s = columns.get('wall_s', [])
    reached: dict[int, float] = {}
    newest = math.nan
    next_percent = _PERIOD
    for steps, seconds, value in zip(columns.get(csv_file.KEY, []), wall_s, returns):
      record = {'agent_steps': steps, 'wall_s': seconds}
      share = sweep_state.share_of(run.config, record)
      while next_percent < 100 and share * 100 > next_percent:
        if math.isfinite(newest):
          reached[next_percent] = newest
        next_percent += _PERIOD
      newest = value if math.isfinite(value) else newest
    return reached

  @contextlib.contextmanager
  def _told(self) -> Iterator[None]:
    """Turns errors of the database into a `types.Failure`."""
    try:
      yield
    except (self._optuna.exceptions.StorageInternalError, self._database_error) as error:
      reason = str(error.__cause__ or error).partition('\n')[0]
      raise types.Failure(
        f'{self._out / FILE}, where Optuna keeps the trials, cannot be used: {reason}'
      ) from error


def _is_pruned(run: sweep_plan.Run) -> bool:
  return sweep_state.read(run).status == sweep_state.PRUNED
