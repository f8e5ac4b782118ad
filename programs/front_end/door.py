"""What a run needs is looked at before anything is written: environment, agent and network.

`python -m seed_acme.programs.front_end.door` reads configurations from its standard input, builds
one environment of each kind, and holds its specification against the agent and the network. It is a
process of its own, since an environment may leave threads behind, or crash. It loads TensorFlow
only for modules of the user's own, and where a package has an unexpected version.
"""

from __future__ import annotations

from collections.abc import Sequence
import contextlib
import json
import os
import sys
import traceback
from typing import Any

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents import registry as agents
from seed_acme.envs import experiment_environments as environments
from seed_acme.networks import requirements
from seed_acme.programs.front_end import trial_process
from seed_acme.programs.system import processes
from seed_acme.storage import saved_config

_USER_ERROR, _MESSAGE = 'is_user_error', 'message'


class CannotStart(types.TrainingFailed):
  """What a run needs fails for a reason that may pass; the text is for people."""


def check(configs: Sequence[config_lib.ExperimentConfig]) -> None:
  """Raises `types.UserError` for what no run can start with, `CannotStart` for anything else."""
  for config in configs:
    agents.check(config.agent.agent)
  given = json.dumps([saved_config.to_json(config) for config in configs])
  ended = trial_process.run(__name__, given)
  if ended.code:
    raise _answer(ended.code, ended.output, ended.errors)


def _answer(code: int, output: str, errors: str) -> Exception:
  """What the process said before it ended with this code."""
  try:
    answer = json.loads(output.splitlines()[-1])
  except (IndexError, ValueError):
    last = ''.join(f'; its last words: {line}' for line in errors.splitlines()[-1:])
    return CannotStart(
      'the process that tries environment and network was lost: '
      f'{processes.describe_exit(code)}{last}'
    )
  return (types.UserError if answer[_USER_ERROR] else CannotStart)(answer[_MESSAGE])


def main() -> int:
  """Writes nothing if all is well, and else one line of JSON."""
  processes.end_with_parent()
  with contextlib.redirect_stdout(sys.stderr):  # environments like to talk
    try:
      _check_all(saved_config.from_json(json.loads(sys.stdin.read())))
      return 0
    except Exception as error:  # told to the user, who need not see where
      is_user_error = isinstance(error, types.UserError)
      answer = {_USER_ERROR: is_user_error, _MESSAGE: _described(error)}
  print(json.dumps(answer), flush=True)
  return processes.USER_ERROR_EXIT if is_user_error else processes.FAILURE_EXIT


def _check_all(configs: Sequence[config_lib.ExperimentConfig]) -> None:
  from seed_acme.programs.doctor import examination as doctor

  specs: dict[str, types.EnvironmentSpec] = {}
  wrong = [found for found in doctor.versions() if found.state == 'wrong']
  for config in configs:
    key = json.dumps([config.actor.python, saved_config.to_json(config.environment)])
    if key not in specs:
      specs[key] = _environment_spec(config)
    config.agent.check_environment(specs[key])
    requirements.check(config.network, specs[key])
    if requirements.is_own(config.network) or ':' in config.agent.agent:
      _build_network(config)
  if wrong:
    _check_tensorflow('; '.join(f'{found.name}: {found.detail}' for found in wrong))


def _environment_spec(config: config_lib.ExperimentConfig) -> types.EnvironmentSpec:
  try:
    return environments.environment_spec(config)
  except types.UserError:
    raise
  except Exception as error:
    raise CannotStart(
      f'environment {config.environment.id!r} cannot be made: {_described(error)}'
    ) from error


def _build_network(config: config_lib.ExperimentConfig) -> None:
  from seed_acme.programs.building import build

  try:
    build.make_acting(config)
  except types.UserError:
    raise
  except Exception as error:
    own = [
      name
      for name in (config.agent.agent, config.network.module, config.network.torso)
      if ':' in name
    ]
    raise CannotStart(f'{" and ".join(own)} cannot be made: {_described(error)}') from error


def _check_tensorflow(versions: str) -> None:
  try:
    from seed_acme.programs.building import learner_side  # noqa: F401  all that a run loads
  except Exception as error:
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


def _exit() -> Any:
  """Without waiting for what an environment may have left running."""
  code = main()
  sys.stderr.flush()
  os._exit(code)


if __name__ == '__main__':
  _exit()
