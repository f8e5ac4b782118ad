"""`--launch=auto`: one process or Launchpad's processes, by a rule and a short measurement.

Separate processes step environments while the learner works, but messages and threads that wait for
each other cost time. The rule compares the saved with the added time per step. `python -m
seed_acme.programs.front_end.launch_choice` reads a configuration from its standard input and
measures a step of its environments. It loads no TensorFlow, because the rule needs only the kind of
network.
"""

from __future__ import annotations

from collections.abc import Callable
import json
import os
import subprocess
import sys
import time
from typing import Any, NamedTuple

import numpy as np
import tree

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import closing
from seed_acme.envs import experiment_environments as environments
from seed_acme.envs.interpreters import interpreter
from seed_acme.files import local
from seed_acme.loggers import terminal
from seed_acme.programs.front_end import launches
from seed_acme.programs.system import graphics
from seed_acme.programs.system import leftovers
from seed_acme.programs.system import processes
from seed_acme.programs.system import streams
from seed_acme.programs.trial import process as trial_process
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

_TIMEOUT_S = 20.0  # for the measurement; simulators may take longer to start
_MAX_ENVIRONMENTS = 8  # environments to try; in larger groups a step costs no more
_MEASURED_S = 0.2
_MIN_CALLS = 3
# The cost of processes (docs/performance.md): per message of a group, and per row in it.
_MESSAGE_S = 600e-6
_ROW_S = 3e-6


class Choice(NamedTuple):
  """The chosen launch. launch: `single_process` or `local_mp`. reason: why, for people."""

  launch: str
  reason: str


class Stepping(NamedTuple):
  """The cost of one environment's step: CPU-seconds, and seconds of waiting without the CPU."""

  cpu_s: float
  wait_s: float


class _NotMeasured(types.Failure):
  """The environments could not be measured; the text says why."""


def choose(
  config: config_lib.ExperimentConfig, run: run_directory.RunDirectory, show: Callable[[str], None]
) -> str:
  """Returns the launch for this machine, after showing it and writing it to the run folder.

  Takes a second, plus the time to make the environments. A resumed run chooses again, because it
  may be on another machine, and both launches read the same checkpoints.
  """
  cores = len(os.sched_getaffinity(0))
  choice = decide(config, cores, graphics.is_there(), lambda: _measured(config))
  local.write_json(run.launch, choice._asdict())
  show(f'Launch: {choice.launch}, because {choice.reason}')
  return choice.launch


def hint(config: config_lib.ExperimentConfig) -> str:
  """Returns a hint for users who chose no launch; '' if processes are right in any case."""
  cores = len(os.sched_getaffinity(0))
  cheapest = decide(config, cores, graphics.is_there(), lambda: Stepping(0.0, 0.0))
  if cheapest.launch == launches.LOCAL_MP:
    return ''
  return (
    f'one process may be faster than these {config.num_actors + 1}, if environments are cheap: '
    f'--launch={launches.AUTO} finds out'
  )


def decide(
  config: config_lib.ExperimentConfig, cores: int, has_gpu: bool, measure: Callable[[], Stepping]
) -> Choice:
  """Applies the rule. measure: called only if the cost of a step matters."""
  reason = _only_processes(config, cores, has_gpu)
  if reason:
    return Choice(launches.LOCAL_MP, reason)
  if _alternates(config):
    return Choice(
      launches.SINGLE_PROCESS,
      'one actor and the learner of inference.strictly_on_policy wait for each other anyway',
    )
  try:
    stepping = measure()
  except _NotMeasured as error:
    return Choice(launches.LOCAL_MP, str(error))
  saved_s = _saved(config, cores, stepping)
  cost_s = _ROW_S + _MESSAGE_S / _rows(config)
  launch = launches.LOCAL_MP if saved_s > cost_s else launches.SINGLE_PROCESS
  return Choice(
    launch,
    f'a step of an environment takes {_shown(stepping.cpu_s + stepping.wait_s)}; processes would '
    f'save {_shown(saved_s)} of it (actors: {config.num_actors}, cores: {cores}) and cost '
    f'{_shown(cost_s)}',
  )


def _only_processes(config: config_lib.ExperimentConfig, cores: int, has_gpu: bool) -> str:
  """Returns why only separate processes can do, whatever the environments cost; or ''."""
  learner = config.learner
  is_dense = config.network.torso == 'mlp' and not config.network.module
  reasons = {
    'a GPU is kept busy only by environments beside it': has_gpu,
    'learner.training_devices or inference_devices are set': bool(
      learner.training_devices or learner.inference_devices
    ),
    'replay.separate_process asks for one': config.replay.separate_process,
    'each of several learner hosts is one': config.num_learner_hosts > 1,
    'transport is set': config.transport != config_lib.TransportConfig(),
    'environments under actor.python are in processes of their own': not interpreter.is_this_one(
      config.actor.python
    ),
    'convolutions, or a network of your own, act and train at once on several cores': (
      cores > 1 and not is_dense and not config.inference.strictly_on_policy
    ),
  }
  return next((reason for reason, holds in reasons.items() if holds), '')


def _alternates(config: config_lib.ExperimentConfig) -> bool:
  """Whether acting and learning of a run can only alternate."""
  is_alone = config.num_actors * config.actor.environment_groups == 1
  return config.inference.strictly_on_policy and is_alone


def _saved(config: config_lib.ExperimentConfig, cores: int, stepping: Stepping) -> float:
  """Returns the seconds per step during which other actors, or the learner, work at the same time.

  CPU work overlaps only on a core of its own; waiting always overlaps.
  """
  lanes = config.num_actors + (0 if config.inference.strictly_on_policy else 1)
  beside = lambda number: 1 - 1 / max(1, number)
  return stepping.cpu_s * beside(min(cores, lanes)) + stepping.wait_s * beside(lanes)


def _rows(config: config_lib.ExperimentConfig) -> int:
  """Returns the number of rows in a message, which are the environments of a group."""
  return config.environments_per_actor // config.actor.environment_groups


def _shown(seconds: float) -> str:
  amount, unit = (1e6 * seconds, 'µs') if seconds < 1e-3 else (1e3 * seconds, 'ms')
  return f'{terminal.number(amount, 3)} {unit}'


def _measured(config: config_lib.ExperimentConfig) -> Stepping:
  given = json.dumps(saved_config.to_json(config))
  try:
    ended = trial_process.run(__name__, given, _TIMEOUT_S)
  except subprocess.TimeoutExpired:
    raise _NotMeasured(
      f'environments take more than {_TIMEOUT_S:g} s to be made and stepped'
    ) from None
  if ended.code:  # the run itself will report the error
    raise _NotMeasured('the environments cannot be stepped for a measurement')
  return Stepping(*json.loads(ended.output.splitlines()[-1]))


def step_environments(config: config_lib.ExperimentConfig) -> Stepping:
  """Makes up to eight environments of a group in this process, and steps them for 0.2 s.

  CPU-seconds are hardly affected by a busy machine. The waiting time is taken from the shortest
  call, the one least disturbed by other processes.
  """
  number = min(_rows(config), _MAX_ENVIRONMENTS)
  environment = environments.make(config, number, config.seed)
  actions = tree.map_structure(
    lambda spec: np.repeat(spec.generate_value()[None], number, axis=0), environment.spec.action
  )
  environment.reset()
  calls_s: list[float] = []
  start_s, start_cpu_s = time.perf_counter(), time.process_time()
  while len(calls_s) < _MIN_CALLS or time.perf_counter() - start_s < _MEASURED_S:
    call_s = time.perf_counter()
    environment.step(actions)
    calls_s.append(time.perf_counter() - call_s)
  cpu_s = (time.process_time() - start_cpu_s) / len(calls_s)
  with closing.told(config.environment.id):
    environment.close()
  return Stepping(cpu_s / number, max(0.0, min(calls_s) - cpu_s) / number)


def _main() -> Any:
  processes.end_with_parent()
  with streams.results_only() as results:
    stepping = step_environments(saved_config.from_json(json.loads(sys.stdin.read())))
    print(json.dumps(stepping), file=results, flush=True)
  leftovers.end(0)  # threads or programs that an environment left running


if __name__ == '__main__':
  _main()
