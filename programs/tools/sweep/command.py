"""`seed-acme sweep`: combinations of settings, several seeds each, one table and two figures.

The combinations come from a grid, or Optuna chooses them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
import contextlib
import dataclasses
import os
import pathlib
import shlex
import sys
import time
from typing import Annotated, Literal

import tyro

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.files import local
from seed_acme.programs.command_line import given as given_lib
from seed_acme.programs.command_line import own_name
from seed_acme.programs.front_end import warm_start
from seed_acme.programs.system import processes
from seed_acme.programs.tools.sweep import figures as sweep_figures
from seed_acme.programs.tools.sweep import grid as sweep_grid
from seed_acme.programs.tools.sweep import output as sweep_output
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import results as sweep_results
from seed_acme.programs.tools.sweep import runs as sweep_runs
from seed_acme.programs.tools.sweep import saved_plan
from seed_acme.programs.tools.sweep import schedule as sweep_schedule
from seed_acme.programs.tools.sweep import search as sweep_search
from seed_acme.programs.tools.sweep import search_space
from seed_acme.programs.tools.sweep import state as sweep_state
from seed_acme.programs.trial import door
from seed_acme.storage import opening
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from seed_acme.storage import trust as trust_lib

ROOT = os.path.join(run_directory.ROOT, 'sweeps')
_LOCK_FILE = '.lock'
_FIGURES_SHARE = 0.05  # share of the time that drawing may take while runs are under way
_SINGLE_PROCESS = 'single_process'


@dataclasses.dataclass(frozen=True)
class SweepArguments:
  """Run combinations of settings, several seeds each, and compare them.

  grid: 'FIELD=VALUE,VALUE FIELD=VALUE,VALUE', the product of all fields, a tuple as [64,64]; or a
    .json file {"FIELD": [VALUE, ...], ...}. Several --grid are run one after the other.
  search: instead of a grid, the space that Optuna searches: 'FIELD=LOW..HIGH FIELD=LOW..HIGH:log
    FIELD=VALUE,VALUE', a range, one on a logarithmic scale, and choices; or a .json file {"FIELD":
    "LOW..HIGH" or [VALUE, ...], ...}. Runs that fall behind are stopped. Needs the extra search.
  trials: the combinations that a search tries; a new one needs it.
  seeds: runs of each combination, whose seeds count up from `--config.seed`. A new grid needs it;
    in a search it is 1 by default.
  out: folder of the sweep. An existing sweep is resumed, or extended by more values and seeds, or
    by more trials; options that are not given stay as they were. '' = runs/sweeps/<config>/<time>.
  jobs: runs at a time; 0 = half of the cores, at least one.
  launch: how each run is launched; single_process costs the least for many small runs.
  trust_run_dir: run the code outside seed_acme, and the Python, that sweep.json in --out names.
  report: only rewrite tables and figures from the existing runs.
  json: print the table as JSON.
  """

  grid: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
  search: str = ''
  trials: Annotated[int, bounds.at_least(0)] = 0
  seeds: Annotated[int, bounds.at_least(0)] = 0
  out: str = ''
  jobs: Annotated[int, bounds.at_least(0)] = 0
  launch: Literal['single_process', 'local_mp'] = 'single_process'
  report: bool = False
  trust_run_dir: bool = False
  json: bool = False


def _saved_plan(out: str, trust: trust_lib.Trust) -> sweep_plan.Plan | None:
  """Returns the plan in the folder that `--out` names; None if there is no sweep."""
  path = pathlib.Path(out).absolute()
  return saved_plan.load(path, trust) if out and (path / saved_plan.FILE).is_file() else None


def sweep(arguments: SweepArguments, given: given_lib.Given) -> int:
  """Runs the sweep and returns the exit code; raises `UserError` before anything is started."""
  local.refuse_url(arguments.out)
  saved = _saved_plan(arguments.out, given.trust(arguments.trust_run_dir))
  config = given.config(None if given.name or saved is None else saved.base)
  if not given.name and saved is None and not arguments.report:
    raise types.UserError('sweep needs --config=NAME_OR_PATH, or --out=DIR with a sweep to resume')
  plan = _plan(arguments, config, given.fields, saved)
  if plan.search is not None and not arguments.report:
    sweep_search.require()
  if arguments.report:
    if saved is None:
      raise types.UserError(
        f'--report needs --out=DIR, the folder of a sweep, not {arguments.out!r}'
      )
    _report(arguments, plan)
    return 0
  jobs = _jobs(arguments, plan)
  _tell_of_idle_fields(plan, given.fields)
  with _folder(arguments.out, plan) as out:
    saved_plan.save(plan, out)
    resume = shlex.join([own_name.command('seed-acme'), 'sweep', f'--out={os.path.relpath(out)}'])
    return _run(plan, out, arguments, jobs, resume)


def _tell_of_idle_fields(plan: sweep_plan.Plan, overridden: Collection[str]) -> None:
  """Names swept and overridden fields that no run of the sweep is affected by."""
  for field, reason in plan.idle_fields(sorted({*plan.fields(), *overridden})).items():
    print(
      f'Notice: {field} has no effect on learning in any combination, because {reason}',
      file=sys.stderr,
      flush=True,
    )


def _report(arguments: SweepArguments, plan: sweep_plan.Plan) -> None:
  results = sweep_results.read(plan, pathlib.Path(arguments.out).absolute(), {})
  _write(results)
  sweep_output.print_results(results, arguments.json)


def _plan(
  arguments: SweepArguments,
  config: config_lib.ExperimentConfig,
  overridden: Collection[str],
  saved: sweep_plan.Plan | None,
) -> sweep_plan.Plan:
  """Returns the plan. overridden: the fields given by --config.FIELD."""
  is_search = bool(arguments.search) or (saved is not None and saved.search is not None)
  if is_search and arguments.grid:
    raise types.UserError(
      '--grid names all combinations and --search has them chosen: keep one of them, or give '
      'another --out'
    )
  if arguments.trials and not is_search:
    raise types.UserError(
      f'--trials ({arguments.trials}) is for --search: give it, or leave it out'
    )
  if is_search:
    return _plan_of_search(arguments, config, overridden, saved)
  products = sweep_grid.parse(arguments.grid, config)
  _check_given_once(_names(products), overridden, '--grid')
  if saved is not None:
    if not products:
      _check_given_once(_names(saved.products()), overridden, 'the grid of the sweep in --out')
    return sweep_plan.make(
      config, products or saved.products(), arguments.seeds or saved.num_seeds, saved
    )
  if not arguments.seeds and not arguments.report:
    raise types.UserError('sweep needs --seeds=N, the runs of each combination; intervals need 2')
  return sweep_plan.make(config, products, arguments.seeds or 1)


def _plan_of_search(
  arguments: SweepArguments,
  config: config_lib.ExperimentConfig,
  overridden: Collection[str],
  saved: sweep_plan.Plan | None,
) -> sweep_plan.Plan:
  earlier = saved.search if saved else None
  if arguments.search:
    space = search_space.parse(arguments.search, config)
  else:
    assert earlier
    space = earlier.space
  _check_given_once(set(space), overridden, search_space.OPTION)
  num_trials = arguments.trials or (earlier.num_trials if earlier else 0)
  if not num_trials:
    raise types.UserError('--search needs --trials=N, the combinations to try')
  num_seeds = arguments.seeds or (saved.num_seeds if saved else 1)
  search = sweep_plan.Search(space, num_trials)
  return sweep_plan.make_search(config, search, num_seeds, saved)


def _names(products: Sequence[sweep_grid.Product]) -> set[str]:
  """Returns the dotted names of all swept fields, and of the settings in swept dictionaries."""
  found = {field for product in products for field in product}
  for product in products:
    for field, values in product.items():
      dictionaries = [value for value in values if isinstance(value, dict)]
      found.update(f'{field}.{name}' for settings in dictionaries for name in settings)
  return found


def _check_given_once(fields: set[str], overridden: Collection[str], option: str) -> None:
  twice = sorted(fields.intersection(overridden))
  if twice:
    raise types.UserError(f'{twice[0]} is given by --config.{twice[0]} and in {option}: keep one')


def _jobs(arguments: SweepArguments, plan: sweep_plan.Plan) -> int:
  """Returns the number of runs at a time, after checks that concern all runs."""
  jobs = arguments.jobs or max(1, len(os.sched_getaffinity(0)) // 2)
  combinations = [*plan.combinations, *sweep_plan.examples(plan)]
  for combination in combinations:
    config = combination.config
    for name, port in (('replay', config.replay.port), ('transport', config.transport.port)):
      if port and jobs > 1:
        raise types.UserError(
          f'{name}.port ({port}) cannot serve {jobs} runs at a time: set it '
          'to 0 for any free port, or --jobs=1'
        )
  for path in {combination.config.initial_checkpoint for combination in combinations} - {''}:
    if start := warm_start.behind_latest(path):
      raise types.UserError(
        f'initial_checkpoint ({path}) would be another run for each run of the sweep: give {start}'
      )
    opening.load_checkpoint(path)
  out = pathlib.Path(arguments.out).absolute() if arguments.out else None
  # Combinations whose runs are all over need no environment any more.
  to_run = [
    combination
    for combination in plan.combinations
    if out is None or not all(map(sweep_state.is_over, plan.runs_of(combination, out)))
  ]
  if to_run or plan.may_draw:
    to_run += sweep_plan.examples(plan)
  sweep_plan.check_environments(plan, to_run)
  door.check([combination.config for combination in to_run])
  return jobs


@contextlib.contextmanager
def _folder(out: str, plan: sweep_plan.Plan) -> Iterator[pathlib.Path]:
  """Yields the folder of the sweep, created if necessary and locked for this program."""
  path = pathlib.Path(out).absolute() if out else run_directory.new_folder(plan.base.name, ROOT)
  _make_own(path, out)
  with local.lock(
    path / _LOCK_FILE,
    lambda holder: (
      f'the sweep in {path} is being run by another program (process {holder}): wait for it or '
      'stop it, or choose another --out'
    ),
  ):
    yield path


def _make_own(path: pathlib.Path, out: str) -> None:
  """Creates the folder if necessary; raises `UserError` if it holds anything but a sweep."""
  try:
    path.mkdir(parents=True, exist_ok=True)
    foreign = sorted(name for name in os.listdir(path) if name != _LOCK_FILE)
  except OSError as error:
    raise types.UserError(
      f'cannot use --out={out}: {error.strerror}; give a folder that can be written'
    ) from None
  if foreign and not (path / saved_plan.FILE).is_file():
    raise types.UserError(
      f'--out={out} holds files that belong to no sweep '
      f'({", ".join(foreign[:3])}): choose an empty or a new folder'
    )


def _run(
  plan: sweep_plan.Plan, out: pathlib.Path, arguments: SweepArguments, jobs: int, resume: str
) -> int:
  if arguments.launch != _SINGLE_PROCESS:
    resume += f' --launch={arguments.launch}'
  if arguments.jobs:
    resume += f' --jobs={arguments.jobs}'
  combinations = [*plan.combinations, *sweep_plan.examples(plan)]  # a search has drawn none yet
  if any(saved_config.trust_in(combination.config).paths for combination in combinations):
    resume += ' --trust_run_dir'
  if plan.search is None:
    runs: sweep_runs.Runs = sweep_runs.Grid(plan.runs(out))
    now: Callable[[], sweep_plan.Plan] = lambda: plan
  else:
    search = sweep_search.Search(plan, out, lambda drawn: saved_plan.save(drawn, out))
    runs, now = search, lambda: search.plan
  scheduler = sweep_schedule.Scheduler(
    runs,
    plan.names(),
    jobs=jobs,
    launch=arguments.launch,
    progress=None if arguments.json else sweep_schedule.Progress(),
    after_run=_writer(now, out),
  )
  if not arguments.json:
    heading = sweep_output.heading(plan, out, runs)
    print(f'{heading}; {jobs} at a time (--jobs)\nResume: {resume}', flush=True)
  scheduler.run()
  results = sweep_results.read(now(), out, scheduler.failures)
  _write(results)
  sweep_output.print_results(results, arguments.json)
  sweep_output.print_failures(results)
  if not arguments.json and scheduler.num_left:
    print(f'Resume: {resume}')
  if scheduler.failures:  # also after a stop, because a run may have lost progress
    return processes.FAILURE_EXIT
  return 0 if scheduler.stop_signal is None else 128 + scheduler.stop_signal


def _writer(
  now: Callable[[], sweep_plan.Plan], out: pathlib.Path
) -> Callable[[dict[pathlib.Path, str]], None]:
  """Returns a function that rewrites the tables, and the figures unless that takes too much time.

  now: returns the current plan, which a search extends.
  """
  draw_next_s = 0.0

  def write(failures: dict[pathlib.Path, str]) -> None:
    nonlocal draw_next_s
    results = sweep_results.read(now(), out, failures)
    start_s = time.monotonic()
    if start_s >= draw_next_s:
      sweep_figures.write(results, lambda text: None)  # errors are reported once, at the end
      end_s = time.monotonic()
      draw_next_s = end_s + (end_s - start_s) / _FIGURES_SHARE
    sweep_results.write_tables(results)

  return write


def _write(results: sweep_results.Results) -> None:
  sweep_results.write_tables(results)
  sweep_figures.write(results, lambda text: print(text, file=sys.stderr, flush=True))
