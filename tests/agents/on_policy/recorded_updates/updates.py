"""Losses, gradients, metrics and updates of the on-policy agent on fixed batches, in a few numbers.

They are computed through `agents.registry` and the records of `seed_acme.agent`, as in a run.
Weights and projections are drawn by the names that variables have in a checkpoint, so neither the
order in which a network makes them nor the initialisers matter. Learnt penalty weights and running
statistics have their usual initial values.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any
import zlib

import numpy as np
import tensorflow as tf
import tree

from seed_acme import agent as agent_lib
from seed_acme import types
from seed_acme.agents import registry
from seed_acme.learning import learner as learner_lib
from seed_acme.learning import saved_variables
from tests.agents.on_policy.recorded_updates import cases as cases_lib

_KEY = np.array([1, 2], np.int32)
_PROGRESS = np.float32(0.25)
_AGENT_STEPS, _TOTAL_STEPS = 250, 1000


class Run:
  """A learner with fixed weights, and its results on fixed batches."""

  def __init__(self, case: cases_lib.Case):
    self._case = case
    self._agent = registry.get(case.config.agent)(case.spec, case.network, case.config)
    made: list[agent_lib.Learning] = []

    def make_learning(network: Any) -> agent_lib.Learning:
      self._network = network
      made.append(self._agent.make_learning(network))
      return made[-1]

    self._learner = learner_lib.Learner(
      dataclasses.replace(self._agent, make_learning=make_learning),
      published=(),
      total_steps=_TOTAL_STEPS,
      seed=5,
      xla=False,
      devices=['cpu:0'],
    )
    [self._learning] = made
    trained = [v for objective in self._learning.objectives.values() for v in objective.variables]
    names = {name for name in self._names(trained) if name.startswith(saved_variables.ACTING)}
    arrays = self._learner.save()
    self._learner.restore(
      {name: _fixed(name, x) if name in names else x for name, x in arrays.items()}, 0
    )
    self._prediction: types.Nest = None  # of the first sample, only for its shapes

  def gradient(self) -> dict[str, Any]:
    """Returns loss and metrics on a batch, and the gradient of each variable, before any step.

    Running statistics have already seen another batch.
    """
    if self._learning.finish is not None and self._has_statistics():
      before = self._sample(0)
      self._learning.prepare(before, tf.constant(_KEY), True)
      self._learning.finish(before)
    batch = self._learning.prepare(self._sample(1), tf.constant(_KEY), True).batch
    passes = self._learning.passes
    if passes is not None:
      size = passes.num_elements // passes.num_minibatches
      order = np.random.default_rng(4).permutation(passes.num_elements)
      batch = passes.take(batch, tf.constant(order[:size].astype(np.int32)))
    with tf.GradientTape() as tape:
      output = self._learning.losses(batch, tf.constant(_KEY), tf.constant(_PROGRESS))
    [(objective, loss)] = output.losses.items()
    variables = self._learning.objectives[objective].variables
    found = tape.gradient(loss, variables)
    names = self._names(variables)
    return {
      'loss': loss.numpy(),
      'metrics': {name: x.numpy() for name, x in sorted(output.metrics.items())},
      'gradients': {name: g.numpy() for name, g in sorted(zip(names, found))},
    }

  def update(self) -> dict[str, Any]:
    """Makes an update on a third batch; returns its metrics and the change of each variable."""
    before = self._learner.save()
    update = self._learner.step(self._sample(2), _AGENT_STEPS)
    after = self._learner.save()
    metrics = {name: np.float32(x) for name, x in sorted(update.metrics.items())}
    changes = {
      name: after[name] - before[name]
      for name in sorted(after)
      if not name.startswith(saved_variables.OPTIMIZER)
    }
    return {'metrics': metrics, 'trained_steps': update.trained_steps, 'changes': changes}

  def _has_statistics(self) -> bool:
    config = self._case.config
    return {config.values.statistics, config.observations.statistics} != {'none'}

  def _names(self, variables: Any) -> list[str]:
    """Returns the names of variables in a checkpoint."""
    of_learning = {
      id(v): f'{saved_variables.LEARNING}/{name}' for name, v in self._learning.variables.items()
    }
    return [of_learning.get(id(v), f'{saved_variables.ACTING}/{v.name}') for v in variables]

  def _sample(self, seed: int) -> types.Sample:
    """Returns a time-major sample with terminations, truncations and episode starts.

    The policy that acted differs from the network's, so that ratios are clipped on either side.
    """
    config, action_spec = self._case.config, self._case.spec.action
    rng = np.random.default_rng(seed)
    shape = (config.unroll_rows, config.batch_size)
    normal = lambda *size: rng.normal(size=size).astype(np.float32)
    inputs = types.AgentInput(
      step_type=_step_types(*shape, rng),
      reward=normal(*shape),
      discount=rng.choice(np.float32([0, 1, 0.7]), shape),
      previous_action=tree.map_structure(
        lambda x: np.zeros((*shape, *x.shape), x.dtype), action_spec
      ),
      observation=normal(*shape, 4) + np.float32(0.5),
    )
    state = tree.map_structure(
      lambda x: normal(*x.shape), self._network.initial_state(config.batch_size)
    )
    if self._prediction is None:
      self._prediction, _ = self._network.unroll(inputs, state)
    prediction = tree.map_structure(lambda x: np.float32(0.2) * normal(*x.shape), self._prediction)
    actions = self._actions(prediction, rng)
    outputs = types.AgentOutput(actions, prediction)
    versions = np.zeros(shape, np.int64)
    unroll = tree.map_structure(tf.constant, types.Unroll(state, inputs, outputs, versions))
    number = config.batch_size
    return types.Sample(unroll, np.arange(number, dtype=np.uint64), np.ones(number))

  def _actions(self, prediction: types.Nest, rng: np.random.Generator) -> types.Nest:
    """Samples actions from the behaviour's prediction `[L, B, ...]`, row by row as in acting."""
    leaf = tree.flatten(prediction)[0]
    shape, number = leaf.shape[:2], leaf.shape[0] * leaf.shape[1]
    acting = self._agent.acting
    acted = acting.select_actions(
      tree.map_structure(lambda x: tf.constant(x.reshape(number, *x.shape[2:])), prediction),
      types.Exploration(
        uniforms=tf.constant(rng.uniform(size=(number, acting.num_uniforms)).astype(np.float32)),
        place=np.zeros(number, np.float32),
        is_evaluation=np.zeros(number, bool),
        agent_steps=np.zeros(number, np.int64),
      ),
    )
    return tree.map_structure(lambda x: x.numpy().reshape(*shape, *x.shape[1:]), acted.action)


def _step_types(num_rows: int, num_unrolls: int, rng: np.random.Generator) -> np.ndarray:
  """Columns of episodes: LAST is always followed by FIRST."""
  rows = np.full((num_rows, num_unrolls), types.MID, np.uint8)
  rows[0] = rng.choice([types.FIRST, types.MID, types.LAST], num_unrolls)
  for t in range(1, num_rows):
    ends = (rng.random(num_unrolls) < 0.15) & (rows[t - 1] != types.LAST)
    rows[t] = np.where(
      rows[t - 1] == types.LAST, types.FIRST, np.where(ends, types.LAST, types.MID)
    )
  rows[1, 0], rows[2, 0] = types.LAST, types.FIRST
  return rows


def _fixed(name: str, initial: np.ndarray) -> np.ndarray:
  """Returns random weights of a network, without symmetries."""
  return _rng(name).normal(0, 0.2, initial.shape).astype(np.float32)


def _rng(name: str) -> np.random.Generator:
  return np.random.default_rng(zlib.crc32(name.encode()))


def digest(name: str, array: np.ndarray) -> list[float]:
  """Returns norm, sum and three projections, scaled so that none exceeds the norm.

  The sum is divided by the root of the number of elements; the projections are on fixed directions
  of length 1.
  """
  flat = array.astype(np.float64).ravel()
  directions = _rng(name).normal(size=(3, flat.size))
  directions /= np.linalg.norm(directions, axis=1, keepdims=True)
  values = [np.linalg.norm(flat), flat.sum() / flat.size**0.5, *(directions @ flat)]
  return [float(f'{x:.7g}') for x in values]


def numbers(case: cases_lib.Case) -> dict[str, Any]:
  """Returns the recorded numbers of a case: floats, and a `digest` of each gradient and change."""
  run = Run(case)
  gradient, update = run.gradient(), run.update()
  return {
    'loss': _float(gradient['loss']),
    'metrics': {key: _float(x) for key, x in gradient['metrics'].items()},
    'gradients': {key: digest(key, x) for key, x in gradient['gradients'].items()},
    'update metrics': {key: _float(x) for key, x in update['metrics'].items()},
    'update steps': update['trained_steps'],
    'update changes': {key: digest(key, x) for key, x in update['changes'].items()},
  }


def checksums(case: cases_lib.Case) -> dict[str, Any]:
  """Returns checksums of every bit of the arrays that `numbers` summarises."""
  run = Run(case)
  made = {'gradient': run.gradient(), 'update': run.update()}
  return tree.map_structure(_checksum, made)


def _float(value: np.ndarray) -> float:
  """Rounds to the significant digits."""
  return float(f'{float(value):.7g}')


def _checksum(value: Any) -> str:
  array = np.asarray(value)
  return f'{array.dtype} {list(array.shape)} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}'
