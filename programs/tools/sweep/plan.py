"""The plan of a sweep: combinations of settings, seeds, the folder of each run.

```
runs/sweeps/<config name>/<UTC time>/   or --out
  sweep.json                            this plan
  <combination>/seed_<n>/               the folder of a run; its output is seed_<n>.log
  table.csv  table.md  runs.csv  curves.png  settings.png
  search.db                             for a search: Optuna's record of its trials
  <combination>/pruned.json             for a search: when the combination was pruned
```
Two combinations are the same if their resolved configurations are equal, however written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
import contextlib
import dataclasses
import itertools
import json
import math
import pathlib
from typing import Any, NamedTuple

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import types
from seed_acme.envs import experiment_environments as environments
from seed_acme.programs.tools.sweep import grid as sweep_grid
from seed_acme.programs.tools.sweep import labels as sweep_labels
from seed_acme.programs.tools.sweep import search_space
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

_MAX_RUNS = 10_000  # more is probably a typing error: each takes seconds


class Combination(NamedTuple):
  """One combination of values.

  slug: name of its folder. settings: values of the swept fields, by dotted name. config: the
    resolved configuration, with the seed of the base.
  """

  slug: str
  settings: dict[str, Any]
  config: config_lib.ExperimentConfig


class Run(NamedTuple):
  """A combination with a seed, and the folder of its run."""

  combination: Combination
  seed: int
  config: config_lib.ExperimentConfig
  run_dir: run_directory.RunDirectory


@dataclasses.dataclass(frozen=True)
class Search:
  """The search by which Optuna chooses combinations. num_trials: total, a combination each."""

  space: search_space.Space
  num_trials: int


@dataclasses.dataclass(frozen=True)
class Plan:
  """A whole sweep: every combination with the seeds base.seed ... base.seed + num_seeds - 1.

  search: None for a grid. A search has the combinations that it has drawn so far.
  """

  base: config_lib.ExperimentConfig
  combinations: tuple[Combination, ...]
  num_seeds: int
  search: Search | None = None

  @property
  def may_draw(self) -> bool:
    """Whether a search has fewer combinations than trials."""
    return self.search is not None and len(self.combinations) < self.search.num_trials

  def runs(self, out: pathlib.Path) -> list[Run]:
    """Returns all runs seed by seed, so that an interrupted sweep can compare all combinations."""
    by_seed = zip(*(self.runs_of(combination, out) for combination in self.combinations))
    return [run for runs in by_seed for run in runs]

  def runs_of(self, combination: Combination, out: pathlib.Path) -> list[Run]:
    """Returns the runs of one combination, one per seed."""
    return [
      Run(
        combination,
        seed,
        dataclasses.replace(combination.config, seed=seed),
        run_directory.RunDirectory(out / combination.slug / f'seed_{seed}'),
      )
      for seed in range(self.base.seed, self.base.seed + self.num_seeds)
    ]

  def products(self) -> list[sweep_grid.Product]:
    """Returns grids that make these combinations."""
    return [
      {field: (value,) for field, value in combination.settings.items()}
      for combination in self.combinations
    ]

  def fields(self) -> list[str]:
    """Returns the swept fields, in the order of the grids or of the search space."""
    searched = self.search.space if self.search else {}
    swept = (field for combination in self.combinations for field in combination.settings)
    return list(dict.fromkeys([*searched, *swept]))

  def idle_fields(self, names: Sequence[str]) -> dict[str, str]:
    """Returns those of the fields that have no effect on learning in any combination, with the
    first reason; none while others are still to be drawn."""
    if self.may_draw:
      return {}
    idle = [config_validation.idle_fields(x.config, names) for x in self.combinations]
    return {name: idle[0][name] for name in names if all(name in found for found in idle)}

  def names(self) -> dict[str, str]:
    """Returns the names of these fields in tables and figures."""
    return sweep_labels.short_names(self.fields(), self.base)


def make(
  base: config_lib.ExperimentConfig,
  products: Sequence[sweep_grid.Product],
  num_seeds: int,
  saved: Plan | None = None,
) -> Plan:
  """Returns the plan for the union of the products, or for the base alone if there are none.

  saved: the existing plan of the folder; its combinations keep their slugs, and must be among the
    new ones. Raises `UserError` for a plan that cannot run or does not extend `saved`.
  """
  num_runs = num_seeds * sum(math.prod(map(len, product.values())) for product in products)
  if num_runs > _MAX_RUNS:
    raise types.UserError(
      f'--grid and --seeds make {num_runs:,} runs, more than {_MAX_RUNS:,}: '
      'give fewer values, or several sweeps'
    )
  chosen: dict[str, tuple[dict[str, Any], config_lib.ExperimentConfig]] = {}
  for settings in _settings(products):
    config = sweep_grid.replace_all(base, settings)
    known = chosen.get(_key(config), ({}, config))[0]
    chosen[_key(config)] = ({**known, **settings}, config)
  slugs = {
    _key(sweep_grid.replace_all(base, old.settings)): old.slug
    for old in (saved.combinations if saved else ())
  }
  sweep_labels.add_slugs(slugs, {key: settings for key, (settings, _) in chosen.items()}, base)
  plan = Plan(
    base,
    tuple(Combination(slugs[key], settings, config) for key, (settings, config) in chosen.items()),
    num_seeds,
  )
  _validate(plan)
  if saved is not None:
    _check_extends(plan, saved)
  return plan


def make_search(
  base: config_lib.ExperimentConfig, search: Search, num_seeds: int, saved: Plan | None = None
) -> Plan:
  """Returns a plan whose combinations are still to be drawn.

  saved: the existing plan of the folder. A search continues as it was, or with more trials. A grid
    may become a search; its combinations stay, and those within the space count as trials. Raises
    `UserError` if some value of a field cannot run, or if it does not continue `saved`.
  """
  if num_seeds * search.num_trials > _MAX_RUNS:
    raise types.UserError(
      f'--trials and --seeds make {num_seeds * search.num_trials:,} runs, more than {_MAX_RUNS:,}: '
      'give fewer'
    )
  combinations = saved.combinations if saved else ()
  plan = Plan(base, combinations, num_seeds, search)
  if saved is not None:
    _check_goes_on(plan, saved)
  _validate(dataclasses.replace(plan, combinations=tuple(examples(plan))))
  return plan


def examples(plan: Plan) -> list[Combination]:
  """Returns combinations that can be checked before a search draws any.

  Together they have each choice and both ends of each range, one field changed at a time.
  """
  found = []
  for field, domain in (plan.search.space if plan.search else {}).items():
    for value in search_space.extremes(domain):
      settings = {field: value}
      found.append(Combination('', settings, sweep_grid.replace_all(plan.base, settings)))
  return found


def with_combination(plan: Plan, settings: dict[str, Any]) -> tuple[Plan, Combination]:
  """Returns the plan with one more combination, and that; an equal one that exists is returned."""
  config = sweep_grid.replace_all(plan.base, settings)
  key = _key(config)
  for combination in plan.combinations:
    if _key(combination.config) == key:
      return plan, combination
  slugs = {_key(old.config): old.slug for old in plan.combinations}
  sweep_labels.add_slugs(slugs, {key: settings}, plan.base)
  added = Combination(slugs[key], settings, config)
  return dataclasses.replace(plan, combinations=(*plan.combinations, added)), added


def _settings(products: Sequence[sweep_grid.Product]) -> Iterable[dict[str, Any]]:
  for product in products or [{}]:
    for values in itertools.product(*product.values()):
      yield dict(zip(product, values))


def _key(config: config_lib.ExperimentConfig) -> str:
  return json.dumps(saved_config.to_json(config), sort_keys=True)


def _validate(plan: Plan) -> None:
  for combination in plan.combinations:
    with _naming(plan, combination):
      last = dataclasses.replace(combination.config, seed=plan.base.seed + plan.num_seeds - 1)
      config_validation.validate(last)


def check_environments(plan: Plan, combinations: Iterable[Combination]) -> None:
  """Raises `UserError` if the environment of one of these combinations is not there."""
  checked = []
  for combination in combinations:
    place = (combination.config.environment, combination.config.actor.python)
    if place not in checked:  # the check may take seconds
      checked.append(place)
      with _naming(plan, combination):
        environments.check(combination.config)


@contextlib.contextmanager
def _naming(plan: Plan, combination: Combination) -> Iterator[None]:
  """Puts the combination's settings before the message of a `UserError`."""
  try:
    yield
  except types.UserError as error:
    settings = combination.settings
    where = f'{sweep_labels.label(settings, plan.names())}: ' if settings else ''
    raise types.UserError(f'{where}{error}') from None


def _check_extends(plan: Plan, saved: Plan) -> None:
  differing = saved_config.differences(saved.base, plan.base)
  if plan.base.total_steps < saved.base.total_steps:
    differing.append(f'total_steps: {saved.base.total_steps} -> {plan.base.total_steps}')
  if differing:
    raise types.UserError(
      f'the sweep in --out was started with other values (saved -> now): {"; ".join(differing)}; '
      'set them back, or choose another --out'
    )
  if plan.num_seeds < saved.num_seeds:
    raise types.UserError(
      f'the sweep in --out has {saved.num_seeds} seeds: --seeds '
      f'({plan.num_seeds}) cannot be fewer; raise it, or choose another --out'
    )
  _check_same_schedules(plan, saved)
  _check_none_lost(plan, saved)


def _check_same_schedules(plan: Plan, saved: Plan) -> None:
  """Checks that no combination would get runs whose schedules go over different numbers of steps.

  Its mean would be of runs that learn in different ways.
  """
  for old in saved.combinations:
    new = sweep_grid.replace_all(plan.base, old.settings)
    uses = saved_config.uses_of_total_steps(saved_config.flatten(new))
    if new.total_steps != old.config.total_steps and uses:
      where = f' of {sweep_labels.label(old.settings, saved.names())}' if old.settings else ''
      raise types.UserError(
        f'total_steps ({old.config.total_steps} -> {new.total_steps}) cannot change in the sweep '
        f'in --out, because runs{where} would learn otherwise ({"; ".join(uses)}) and not belong '
        f'into one mean with those of before: set it back to {old.config.total_steps}, or choose '
        'another --out for a new sweep'
      )


def _check_goes_on(plan: Plan, saved: Plan) -> None:
  """Checks that a search still has what it has drawn, and that its trials stay comparable."""
  assert plan.search
  differing = saved_config.differences(saved.base, plan.base)
  if plan.base.total_steps != saved.base.total_steps:
    differing.append(f'total_steps: {saved.base.total_steps} -> {plan.base.total_steps}')
  if plan.num_seeds != saved.num_seeds:
    differing.append(f'--seeds: {saved.num_seeds} -> {plan.num_seeds}')
  if saved.search is not None and search_space.text(saved.search.space) != search_space.text(
    plan.search.space
  ):
    differing.append(
      f'{search_space.OPTION}: {search_space.text(saved.search.space)} -> '
      f'{search_space.text(plan.search.space)}'
    )
  if differing:
    raise types.UserError(
      f'the trials of the search in --out would not compare (saved -> now): '
      f'{"; ".join(differing)}; set them back, or choose another --out'
    )
  if saved.search is not None and plan.search.num_trials < saved.search.num_trials:
    raise types.UserError(
      f'the search in --out has {saved.search.num_trials} trials: --trials '
      f'({plan.search.num_trials}) cannot be fewer; raise it, or choose another --out'
    )


def _check_none_lost(plan: Plan, saved: Plan) -> None:
  slugs = {combination.slug for combination in plan.combinations}
  lost = [combination for combination in saved.combinations if combination.slug not in slugs]
  if lost:
    shown = sweep_labels.label(lost[0].settings, saved.names())
    raise types.UserError(
      f'the sweep in --out has combinations that this grid lacks ({len(lost)}, such as {shown}): '
      'add their values to --grid, or choose another --out'
    )
