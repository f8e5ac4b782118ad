"""The specification of a run's environments, read once and kept in the run folder.

The trial before a run reads it, in a process of its own. Nodes of runs without a trial (programs
launched by the user, learner hosts other than the chief, containers) start such a process
themselves.
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
  """Writes the specification into the run folder, where every process of the run reads it."""
  # Not with `write_json`, which has no infinities: bounds are often infinite.
  local.write_text(run.specification, json.dumps(spec_json.encode(spec), indent=2))


def saved(run: run_directory.RunDirectory) -> types.EnvironmentSpec | None:
  """Returns the specification in the run folder; None in runs of versions that did not keep it.

  Raises `types.UserError`.
  """
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
  """Returns the specification in the run folder, or else of an environment made in another process.

  show: called with a notice if that takes long. Raises what `door.check` does.
  """
  spec = saved(run)
  return door.environment_spec(config, show) if spec is None else spec


def check_resume(
  run: run_directory.RunDirectory, spec: types.EnvironmentSpec
) -> types.EnvironmentSpec:
  """Returns the specification that a resumed run uses: the one that it has kept, if any.

  Raises `types.UserError` if the environments have changed since the run began.
  """
  before = saved(run)
  if before is None:
    return spec
  refuse_another(
    before, spec, 'Bring that one back to continue this run, or choose a new --run_dir'
  )
  return before


def refuse_another(before: types.EnvironmentSpec, now: types.EnvironmentSpec, fix: str) -> None:
  """Raises `types.UserError` if the environments have changed since the run began.

  before: the specification that the run's network was built for. fix: what to do.
  """
  difference = spec_json.difference(spec_json.encode(before), spec_json.encode(now))
  if difference:
    raise types.UserError(
      f'the environment is not the one that this run was started with (then -> now): {difference}. '
      f'{fix}'
    )
