"""The checks of environment, agent and network before a run writes anything.

`python -m seed_acme.programs.trial.door FD` reads configurations with the same environment from its
standard input, makes that environment, and checks their agents and networks against its
specification. This needs a process of its own, since an environment may leave threads behind,
change signal handlers, hang or crash; no other process of a run makes an environment that it does
not step. TensorFlow is loaded only for the user's own modules, or if a package has an unexpected
version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import json
import os
import sys
import traceback
from typing import Any, cast

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.acting import activity as activity_lib
from seed_acme.agents import registry as agents
from seed_acme.envs import experiment_environments as environments
from seed_acme.envs import spec_check
from seed_acme.envs.interpreters import spec_json
from seed_acme.networks import requirements
from seed_acme.programs.system import leftovers
from seed_acme.programs.system import processes
from seed_acme.programs.system import streams
from seed_acme.programs.trial import patience
from seed_acme.programs.trial import process
from seed_acme.storage import saved_config

_KIND, _MESSAGE, _SPEC = 'kind', 'message', 'spec'
_MISSING, _USER_ERROR, _OTHER = 'missing', 'user_error', 'other'


class CannotStart(types.TrainingFailed):
  """A check failed for a reason that may pass; the text is for people."""


def on_standard_error(text: str) -> None:
  """Prints a notice to standard error, because standard output may carry JSON."""
  print(text, file=sys.stderr, flush=True)


def check(
  configs: Sequence[config_lib.ExperimentConfig], show: Callable[[str], None] = on_standard_error
) -> list[types.EnvironmentSpec]:
  """Returns the specification of each configuration's environments.

  Raises `types.UserError` if no run can start with one, including `types.MissingPackage`;
  `CannotStart` for anything else, including a call of the environment that hangs. show: called with
  a notice if something takes long.
  """
  # One process per environment, so that none can disturb another one's trial.
  groups: dict[str, list[config_lib.ExperimentConfig]] = {}
  for config in configs:
    agents.check_config(config.agent)
    groups.setdefault(_key(config), []).append(config)
  specs = {key: _ask_about(group, show, only_spec=False) for key, group in groups.items()}
  return [specs[_key(config)] for config in configs]


def environment_spec(
  settings: environments.Settings, show: Callable[[str], None] = on_standard_error
) -> types.EnvironmentSpec:
  """Returns the specification for a node of an unchecked run; only makes the environment."""
  only = environments.Section(settings.environment, settings.actor, settings.record_every)
  return _ask_about([only], show, only_spec=True)


def _key(config: config_lib.ExperimentConfig) -> str:
  """Returns a key that is equal for configurations with the same environments."""
  films = bool(config.record_every)
  return json.dumps([config.actor.python, saved_config.to_json(config.environment), films])


def _ask_about(
  configs: Sequence[environments.Settings], show: Callable[[str], None], only_spec: bool
) -> types.EnvironmentSpec:
  """Returns the specification that configurations with the same environments share."""
  given = json.dumps([only_spec, [saved_config.to_json(config) for config in configs]])
  watch = patience.Patience(configs[0], show)
  try:
    ended = process.run(__name__, given, look=watch.is_over)
  except patience.Hangs as error:
    raise CannotStart(str(error)) from None
  try:
    answer = json.loads(ended.output.splitlines()[-1])
    if _SPEC in answer:  # even if the process failed afterwards
      return spec_json.decode(answer[_SPEC])
    kind, message = answer[_KIND], answer[_MESSAGE]
  except (IndexError, KeyError, TypeError, ValueError):
    last = ''.join(f'; its last words: {line}' for line in ended.errors.splitlines()[-1:])
    raise CannotStart(
      'the process that tries environment and network was lost: '
      f'{processes.describe_exit(ended.code)}{last}'
    ) from None
  kinds = {_USER_ERROR: types.UserError, _MISSING: types.MissingPackage}
  raise kinds.get(kind, CannotStart)(message)


def main(argv: Sequence[str]) -> int:
  """Prints one line of JSON, the specification or an error; then closes the environment."""
  processes.end_with_parent()
  activity = activity_lib.at(int(argv[1]))
  made: list[core.VectorEnvironment] = []
  with streams.results_only() as results:
    try:
      only_spec, configs = json.loads(sys.stdin.read())
      spec = _check_all(saved_config.from_json(configs), only_spec, activity, made)
      code, answer = 0, {_SPEC: spec_json.encode(spec)}
    except Exception as error:  # the message is for the user, who does not need the traceback
      code, answer = _refusal(error)
    print(json.dumps(answer), file=results, flush=True)
    activity.begin(activity_lib.Doing.CLOSING)
    for environment in made:
      try:
        environment.close()
      except Exception:  # it may count on being reset before close, as in a run
        traceback.print_exc()
  return code


def _refusal(error: Exception) -> tuple[int, dict[str, Any]]:
  """Returns the exit code and the record of an error."""
  kinds = {types.MissingPackage: _MISSING, types.UserError: _USER_ERROR}
  kind = next((kind for type_, kind in kinds.items() if isinstance(error, type_)), _OTHER)
  code = processes.FAILURE_EXIT if kind == _OTHER else processes.USER_ERROR_EXIT
  return code, {_KIND: kind, _MESSAGE: _described(error)}


def _check_all(
  configs: Sequence[config_lib.ExperimentConfig],
  only_spec: bool,
  activity: activity_lib.Activity,
  made: list[core.VectorEnvironment],
) -> types.EnvironmentSpec:
  """Checks all configurations and returns the specification. made: receives the environment."""
  activity.begin(activity_lib.Doing.MAKING)
  made.append(_make(configs[0]))
  spec = made[0].spec
  spec_check.check(spec, configs[0].environment.id)
  activity.begin(activity_lib.Doing.STARTING)
  if only_spec:
    return spec
  for config in configs:
    config.agent.check_environment(spec)
    requirements.check(config.network, spec)
    if requirements.is_own(config.network) or ':' in config.agent.agent:
      _build_network(config, spec)
  _check_versions()
  return spec


def _make(config: environments.Settings) -> core.VectorEnvironment:
  try:
    films = bool(config.record_every)
    environment = environments.make(config, num_environments=1, seed=0, renders=films)
    if films:  # missing packages for rendering often show up only now
      environment.reset()
      cast(core.RenderingEnvironment, environment).render()
    return environment
  except types.UserError:
    raise
  except Exception as error:
    raise CannotStart(
      f'environment {config.environment.id!r} cannot be made: {_described(error)}'
    ) from error


def _build_network(config: config_lib.ExperimentConfig, spec: types.EnvironmentSpec) -> None:
  processes.load_tensorflow()
  from seed_acme.programs.building import build

  try:
    build.make_acting(config.agent, config.network, spec)
  except types.UserError:
    raise
  except Exception as error:
    own = [
      name
      for name in (config.agent.agent, config.network.module, config.network.torso)
      if ':' in name
    ]
    raise CannotStart(f'{" and ".join(own)} cannot be made: {_described(error)}') from error


def _check_versions() -> None:
  """If a package has an unexpected version, loads everything that a run loads."""
  from seed_acme.programs.system import versions as versions_lib

  wrong = [found for found in versions_lib.declared() if found.fix]
  if not wrong:
    return
  try:
    processes.load_tensorflow()
    from seed_acme.programs.building import learner_side  # noqa: F401  everything that a run loads
  except Exception as error:
    versions = '; '.join(f'{found.name}: {found.detail}' for found in wrong)
    raise CannotStart(
      f'the installed packages do not work together ({versions}): seed-acme doctor says what is '
      f'wrong and how to mend it. {_described(error)}'
    ) from error


def _described(error: BaseException) -> str:
  """Returns the error in one line, with the place of an error from other packages."""
  if isinstance(error, (types.UserError, CannotStart)):
    return str(error)
  text = ' '.join(processes.describe(error).split())
  frames = traceback.extract_tb(error.__traceback__)
  if not frames:
    return text
  return f'{text} ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})'


if __name__ == '__main__':
  leftovers.end(main(sys.argv))  # threads or programs that the environment left running
