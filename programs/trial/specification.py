"""The specification of a run's environments, read once and kept in the run folder.

The trial before a run reads it, in a process of its own. Nodes that nobody has tried (a program
that the user launches, learner hosts beside the chief, containers) ask such a process themselves.
"""

from __future__ import annotations

from collections.abc import Callable
import json

from seed_acme import types
from seed_acme.envs import experiment_environments as environments
from seed_acme.envs.interpreters import spec_json
from seed_acme.files import local
from seed_acme.programs.trial import door
from seed_acme.storage import run_directory


def save(run: run_directory.RunDirectory, spec: types.EnvironmentSpec) -> None:
  """Writes it into the run folder, where every process of the run reads it."""
  # Not by `write_json`, which knows no infinite numbers: bounds are often infinite.
  local.write_text(run.specification, json.dumps(spec_json.encode(spec), indent=2))


def saved(run: run_directory.RunDirectory) -> types.EnvironmentSpec | None:
  """That of the run folder; None in runs from before it was kept. Raises `types.UserError`."""
  if not run.specification.exists():
    return None
  try:
    return spec_json.decode_untrusted(json.loads(run.specification.read_text(encoding='utf-8')))
  except ValueError as error:
    raise types.UserError(
      f'{run.specification} cannot be read ({error}): delete it, and the environment is asked again'
    ) from error


def of_run(
  config: environments.Settings,
  run: run_directory.RunDirectory,
  show: Callable[[str], None] = door.on_standard_error,
) -> types.EnvironmentSpec:
  """That of the run folder, or of an environment that a process of its own makes.

  show: is told what takes long. Raises what `door.check` does.
  """
  spec = saved(run)
  return door.environment_spec(config, show) if spec is None else spec


def check_resume(
  run: run_directory.RunDirectory, spec: types.EnvironmentSpec
) -> types.EnvironmentSpec:
  """The specification that the run goes on with: its own, where it has kept one.

  Raises `types.UserError` where the environments have become others since the run began.
  """
  before = saved(run)
  if before is None:
    return spec
  difference = spec_json.difference(spec_json.encode(before), spec_json.encode(spec))
  if difference:
    raise types.UserError(
      f'the environment is not the one that this run was started with (then -> now): {difference}. '
      'Bring that one back to continue this run, or choose a new --run_dir'
    )
  return before
