"""The cost of a run's work alone, without processes, queues and messages around it.

`python -m ...lower_bound RUN_DIR ROWS_PER_BATCH STEPS_PER_ROW REPLAY_RATIO`, see `measure`.
Measures CPU-seconds per agent step of environment stepping, inference and training, each alone in
one process at the run's own batch sizes, best of three. Their sum is the bound that `bench`
compares the run with. `call_costs` measures single calls at several sizes, for `seed-acme plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import dataclasses
import json
import pathlib
import sys
import time
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.envs import closing
from seed_acme.envs import experiment_environments as environments
from seed_acme.programs.building import build
from seed_acme.programs.system import processes
from seed_acme.programs.system import streams
from seed_acme.programs.trial import door
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from seed_acme.tensors import graph_function
from seed_acme.transport import wire

_TRIES = 3
_MIN_S = 1.0  # CPU time of one try
_CURVE_MIN_S = 0.2  # CPU time of one try for a point of a curve; there are many points


def measure(
  config: config_lib.ExperimentConfig,
  rows_per_batch: int,
  steps_per_row: float,
  replay_ratio: float,
) -> dict[str, float]:
  """Returns CPU-seconds per agent step by kind of work.

  rows_per_batch: mean size of the run's inference batches. steps_per_row: share of rows
  that start a transition (the others are LAST). replay_ratio: how often each is trained.
  """
  acting = build.make_acting(config.agent, config.network, door.environment_spec(config))
  group = layout_lib.Layout.of(config).environments_per_group
  environment = _environment(config, acting, group) / group
  with graph_function.serial_execution():  # as the run does
    inference = _inference(acting, rows_per_batch) / rows_per_batch
    training = _training(config, acting) / (config.agent.batch_size * config.agent.unroll_length)
  costs = {'environment': environment, 'inference': inference, 'training': training * replay_ratio}
  return {kind: seconds / steps_per_row for kind, seconds in costs.items()}


def call_costs(config: config_lib.ExperimentConfig) -> dict[str, Any]:
  """Returns the cost of single calls at several sizes, and the bytes that they move.

  Lists of pairs: `environment_call_s` (environments of a group, CPU-seconds to step them),
  `inference_call_s` (rows, CPU-seconds), `update_s` (unrolls, CPU-seconds), `exchange_bytes`
  (environments of a group, bytes of its request and reply). `unroll_bytes`: size of one unroll,
  with its state. `shared_unroll_bytes`: what a learner host sends another of an unroll that it has
  drawn, in all passes over it. `weights_bytes`: size of the variables that acting reads.
  `gradient_bytes`: of all gradient steps of an update.
  """
  spec = door.environment_spec(config)
  acting = build.make_acting(config.agent, config.network, spec)
  group = layout_lib.Layout.of(config).environments_per_group
  rows = _spread(layout_lib.Layout.of(config).num_training)
  unrolls = _spread(config.agent.batch_size)[-2:]
  with graph_function.serial_execution():
    inference = [(n, _inference(acting, n, _CURVE_MIN_S)) for n in rows]
    update = [(n, _update(config, spec, n)) for n in unrolls]
  weights = build.make_learner(acting, config.seed, config.total_steps).variables().values
  learning = acting.agent.make_learning(acting.agent.acting.make())
  return {
    'environment_call_s': [
      (n, _environment(config, acting, n, _CURVE_MIN_S)) for n in _spread(group)
    ],
    'inference_call_s': inference,
    'update_s': update,
    'exchange_bytes': [(n, _exchange_bytes(acting, n)) for n in _spread(group)],
    'unroll_bytes': _num_bytes(acting.example_unroll()),
    'shared_unroll_bytes': _shared_bytes(acting.example_unroll(), learning),
    'weights_bytes': _num_bytes(weights),
    'gradient_bytes': _gradient_bytes(learning),
  }


def _spread(largest: int) -> Sequence[int]:
  """Returns `largest`, `largest` divided by powers of 4, and 1, in rising order."""
  found = {1, largest}
  while largest >= 8:
    largest //= 4
    found.add(largest)
  return sorted(found)


def _update(
  config: config_lib.ExperimentConfig, spec: types.EnvironmentSpec, num_unrolls: int
) -> float:
  smaller = dataclasses.replace(config, agent=config.agent.with_batch_size(num_unrolls))
  acting = build.make_acting(smaller.agent, smaller.network, spec)  # its passes divide the batch
  return _training(smaller, acting, _CURVE_MIN_S)


def _exchange_bytes(acting: build.Acting, size: int) -> int:
  codec = wire.GroupCodec(acting.spec, size)
  actions = _batch(acting.policy.example_row()[1].action, size)
  return codec.num_request_bytes + len(codec.encode_actions(actions))


def _shared_bytes(unroll: types.Unroll, learning: agent_lib.Learning) -> int:
  """Returns the bytes of an unroll, and of the acting network's predictions for its rows, that a
  learner host sends another in one update, see `agent.Learning.keeps_observations`."""
  kept = (unroll.inputs.observation, unroll.initial_state) if learning.keeps_observations else ()
  num_predictions, passes = 1, learning.passes
  if passes is not None:
    num_prepared = passes.num_epochs if passes.prepares_each_epoch else 1
    num_predictions = num_prepared + passes.num_epochs
  predictions = num_predictions * _num_bytes(unroll.outputs.prediction)
  return _num_bytes(unroll) - _num_bytes(kept) + predictions


def _gradient_bytes(learning: agent_lib.Learning) -> int:
  """Returns the bytes of the gradients of all steps and objectives of an update."""
  passes = learning.passes
  num_steps = 1 if passes is None else passes.num_epochs * passes.num_minibatches
  trained = [v for objective in learning.objectives.values() for v in objective.variables]
  return num_steps * sum(v.shape.num_elements() * v.dtype.size for v in trained)


def _batch(row: types.Nest, size: int) -> Any:
  """Returns a batch of `size` copies of a row."""
  return tree.map_structure(lambda x: np.repeat(np.asarray(x)[None], size, axis=0), row)


def _num_bytes(nest: types.Nest) -> int:
  return sum(np.asarray(leaf).nbytes for leaf in tree.flatten(nest))


def _environment(
  config: config_lib.ExperimentConfig, acting: build.Acting, size: int, min_s: float = _MIN_S
) -> float:
  made = environments.make(config, size, config.seed)
  actions = _batch(acting.policy.example_row()[1].action, size)
  with closing.afterwards(made, config.environment.id) as environment:
    environment.reset()
    return _best(lambda: environment.step(actions), min_s)


def _inference(acting: build.Acting, num_rows: int, min_s: float = _MIN_S) -> float:
  inputs = _batch(acting.policy.example_row()[0], num_rows)
  state, exploration = (
    tree.map_structure(lambda x: np.repeat(x, num_rows, axis=0), of_one)
    for of_one in (acting.policy.initial_state(), acting.policy.example_exploration())
  )
  return _best(lambda: acting.policy(inputs, state, exploration), min_s)


def _training(
  config: config_lib.ExperimentConfig, acting: build.Acting, min_s: float = _MIN_S
) -> float:
  learner = build.make_learner(acting, config.seed, config.total_steps, config.learner.xla)
  sample = _sample(config, acting)
  return _best(lambda: learner.step(sample, agent_steps=0), min_s)


def _sample(config: config_lib.ExperimentConfig, acting: build.Acting) -> types.Sample:
  """Returns a batch of unrolls of zeros, without an episode end, as if drawn uniformly."""
  unroll = acting.example_unroll()
  size = config.agent.batch_size
  batch = lambda x: tf.constant(np.repeat(np.asarray(x)[None], size, axis=0))
  time_major = lambda x: tf.constant(np.repeat(np.asarray(x)[:, None], size, axis=1))
  step_type = np.full_like(unroll.inputs.step_type, types.MID)
  return types.Sample(
    unroll=types.Unroll(
      tree.map_structure(batch, unroll.initial_state),
      tree.map_structure(time_major, unroll.inputs._replace(step_type=step_type)),
      tree.map_structure(time_major, unroll.outputs),
      time_major(unroll.policy_version),
    ),
    keys=tf.zeros([size], tf.uint64),
    probabilities=tf.fill([size], tf.constant(1 / size, tf.float64)),
  )


def _best(work: Callable[[], object], min_s: float) -> float:
  """Returns the CPU-seconds of a call, over all threads of the process, best of three tries."""
  work()  # traces and warms up
  best = float('inf')
  for _ in range(_TRIES):
    start, calls = time.process_time(), 0
    while time.process_time() - start < min_s:
      work()
      calls += 1
    best = min(best, (time.process_time() - start) / calls)
  return best


def main(argv: list[str]) -> int:
  processes.end_with_parent()
  run = run_directory.RunDirectory(pathlib.Path(argv[1]))
  config = saved_config.load(run.config)
  processes.configure_tensorflow(config.learner.tensorflow_threads)
  with streams.results_only() as results:
    bound = measure(config, int(argv[2]), *map(float, argv[3:]))
    print(json.dumps({'bound': bound, 'calls': call_costs(config)}), file=results)
  return 0


if __name__ == '__main__':
  sys.exit(main(sys.argv))
