"""What a run needs is looked at before anything is written: environment, agent and network.

`python -m seed_acme.programs.trial.door FD` reads configurations with the same environment from its
standard input, makes that environment, and holds its specification against their agents and
networks. It is a process of its own, since an environment may leave threads behind, change signal
handlers, hang or crash; no other process of a run makes an environment that it does not step. It
loads TensorFlow only for modules of the user's own, and where a package has an unexpected version.
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
  """What a run needs fails for a reason that may pass; the text is for people."""


def on_standard_error(text: str) -> None:
  """Tells of what takes long; standard output may be somebody's JSON."""
  print(text, file=sys.stderr, flush=True)


def check(
  configs: Sequence[config_lib.ExperimentConfig], show: Callable[[str], None] = on_standard_error
) -> list[types.EnvironmentSpec]:
  """The specification of each one's environments.

  Raises `types.UserError` for what no run can start with, and `types.MissingPackage` among these;
  `CannotStart` for anything else, a call of the environment that hangs included. show: is told what
  takes long.
  """
  # One process for each environment, so that none can harm another one's trial.
  groups: dict[str, list[config_lib.ExperimentConfig]] = {}
  for config in configs:
    agents.check(config.agent.agent)
    groups.setdefault(_key(config), []).append(config)
  specs = {key: _ask_about(group, show, only_spec=False) for key, group in groups.items()}
  return [specs[_key(config)] for config in configs]


def environment_spec(
  settings: environments.Settings, show: Callable[[str], None] = on_standard_error
) -> types.EnvironmentSpec:
  """As `check`, for a node of a run that nobody has tried: only the environment is made."""
  only = environments.Section(settings.environment, settings.actor, settings.record_every)
  return _ask_about([only], show, only_spec=True)


def _key(config: config_lib.ExperimentConfig) -> str:
  """The same for configurations with the same environments."""
  films = bool(config.record_every)
  return json.dumps([config.actor.python, saved_config.to_json(config.environment), films])


def _ask_about(
  configs: Sequence[environments.Settings], show: Callable[[str], None], only_spec: bool
) -> types.EnvironmentSpec:
  """That of configurations with the same environments."""
  given = json.dumps([only_spec, [saved_config.to_json(config) for config in configs]])
  watch = patience.Patience(configs[0], show)
  try:
    ended = process.run(__name__, given, look=watch.is_over)
  except patience.Hangs as error:
    raise CannotStart(str(error)) from None
  try:
    answer = json.loads(ended.output.splitlines()[-1])
    if _SPEC in answer:  # whatever became of the process afterwards
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
  """Writes one line of JSON, the specification or what is wrong; then closes the environment."""
  processes.end_with_parent()
  activity = activity_lib.at(int(argv[1]))
  made: list[core.VectorEnvironment] = []
  with streams.results_only() as results:
    try:
      only_spec, configs = json.loads(sys.stdin.read())
      spec = _check_all(saved_config.from_json(configs), only_spec, activity, made)
      code, answer = 0, {_SPEC: spec_json.encode(spec)}
    except Exception as error:  # told to the user, who need not see where
      code, answer = _refusal(error)
    print(json.dumps(answer), file=results, flush=True)
    activity.begin(activity_lib.Doing.CLOSING)
    for environment in made:
      try:
        environment.close()
      except Exception:  # it was never reset, as in no run, and may count on that
        traceback.print_exc()
  return code


def _refusal(error: Exception) -> tuple[int, dict[str, Any]]:
  """The exit code, and what is wrong."""
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
  """made: gets the environment."""
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
    if films:  # what drawing needs, such as a package, is often known only then
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
  """Where a package has another version than ours, loads what a run loads."""
  from seed_acme.programs.system import versions as versions_lib

  wrong = [found for found in versions_lib.declared() if found.fix]
  if not wrong:
    return
  try:
    from seed_acme.programs.building import learner_side  # noqa: F401  all that a run loads
  except Exception as error:
    versions = '; '.join(f'{found.name}: {found.detail}' for found in wrong)
    raise CannotStart(
      f'the installed packages do not work together ({versions}): seed-acme doctor says what is '
      f'wrong and how to mend it. {_described(error)}'
    ) from error


def _described(error: BaseException) -> str:
  """In one line; with the place of an error that is not ours."""
  if isinstance(error, (types.UserError, CannotStart)):
    return str(error)
  text = ' '.join(processes.describe(error).split())
  frames = traceback.extract_tb(error.__traceback__)
  if not frames:
    return text
  return f'{text} ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})'


if __name__ == '__main__':
  leftovers.end(main(sys.argv))  # whatever an environment has left running
