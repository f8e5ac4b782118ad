"""An agent as the runtime sees it: one record of functions, bound to its configuration once.

`make_agent(spec, network_config, config) -> Agent` makes it, and nothing below is handed the
configuration again. The record binds functions and no variables: whoever needs a set of
variables makes one, the inference server to act, the learner to train, an evaluator to play.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any, NamedTuple

import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types


@dataclasses.dataclass(frozen=True)
class Acting:
  """How actions are chosen.

  make() -> network: with variables of its own, all of which exist.
  select_actions(prediction, exploration) -> AgentOutput: prediction `[N, ...]` of the network,
    exploration a `types.Exploration`. Pure: all randomness is in its `uniforms`, so what one row
    does depends on no other row.
  num_uniforms: random numbers that `select_actions` needs for one row.
  """

  make: Callable[[], core.RecurrentNetwork]
  select_actions: Callable[[types.Nest, types.Exploration], types.AgentOutput]
  num_uniforms: int


class Prepared(NamedTuple):
  """What is learnt of one sample.

  batch: a nest of tensors, for the losses or for `Passes.take`.
  mask, policy_version: of the transitions that are learnt, of one shape: which of them count,
    and the version of the weights that acted. Steps and policy lag are counted on these.
  """

  batch: types.Nest
  mask: tf.Tensor
  policy_version: tf.Tensor


@dataclasses.dataclass(frozen=True)
class Objective:
  """Trainable variables that follow the gradient of one loss, and how they step."""

  variables: Sequence[tf.Variable]
  optimizer: config_lib.OptimizerConfig


@dataclasses.dataclass(frozen=True)
class Passes:
  """How a sample is gone over more than once.

  num_epochs: passes over the sample. num_minibatches: gradient steps in one pass.
  num_elements: what is shuffled and dealt into the minibatches, unrolls or transitions; a
    multiple of num_minibatches.
  prepares_each_epoch: `Learning.prepare` anew before each pass, with the weights as they are by
    then.
  take(batch, indices) -> the minibatch of the elements `indices` `[M]`, for the losses.
  of_first, of_last: names of metrics of the losses that are reported as means over the gradient
    steps of the first or the last pass; all others are means over every gradient step.
  variances: by the name of a metric of `of_first` that is a variance within a minibatch, the name
    of the mean that it is about. The variance of these means is added to it, so that the sum is
    the variance over the whole sample, however many minibatches that is dealt into.
  """

  num_epochs: int
  num_minibatches: int
  num_elements: int
  prepares_each_epoch: bool
  take: Callable[[types.Nest, tf.Tensor], types.Nest]
  of_first: Sequence[str] = ()
  of_last: Sequence[str] = ()
  variances: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Watch:
  """A metric that rises where an agent learns, and what to tell the user as long as it does not.

  metric: its name in a row of the log. Rows without it say nothing.
  bound: the metric is expected to reach it.
  share: of the steps of the whole run that the metric may stay below the bound.
  min_steps: agent steps of the run before which nothing is told.
  problem, advice: what it means, and what to try.
  """

  metric: str
  bound: float
  share: float
  min_steps: int
  problem: str
  advice: str


@dataclasses.dataclass(frozen=True)
class Learning:
  """How a network that acts is learnt, around one set of its variables: the learner's.

  All functions run in graphs. A key is `[2]` int32 for `tf.random.stateless_*`, from the run's
  seed, the update and the gradient step; `tf.random.experimental.stateless_split` makes several.

  variables: what only learning needs, by names that are unique here: critics, targets, learnt
    weights. They are saved, but never published to inference.
  objectives: by name. Each trainable variable is in one of them.
  prepare(sample, key, is_first) -> Prepared: sample is time-major; is_first, a Python bool,
    tells the first pass. Of the statistics that no gradient changes, only this and `finish`
    change any.
  losses(batch, key, progress) -> LossOutput: a scalar for each objective, all at the weights
    before any of them steps. progress: agent steps over those of the whole run, in [0, 1].
  passes: None = one over the whole batch.
  after_update(num_updates): changes variables that no gradient does, a target network for
    instance, after the num_updates-th update (int64, from 1).
  finish(sample) -> metrics: after the last pass.
  of_row(means) -> metrics: what a row of the log has besides, from the means of all metrics over
    the updates since the last row. Plain numbers, in no graph.
  watches: of metrics, those of `of_row` included.
  """

  variables: dict[str, tf.Variable]
  objectives: dict[str, Objective]
  prepare: Callable[[types.Sample, tf.Tensor, bool], Prepared]
  losses: Callable[[types.Nest, tf.Tensor, tf.Tensor], types.LossOutput]
  passes: Passes | None = None
  after_update: Callable[[tf.Tensor], None] | None = None
  finish: Callable[[types.Sample], dict[str, tf.Tensor]] | None = None
  of_row: Callable[[Mapping[str, float]], dict[str, float]] | None = None
  watches: Sequence[Watch] = ()


@dataclasses.dataclass(frozen=True)
class Agent:
  """What the runtime asks of an agent; the replay it wants stands in its configuration.

  make_learning(network) -> Learning, around a network that `acting.make` made.
  initial_priorities(unrolls) -> `[K]`, of unrolls `[K, L, ...]` as they were acted. None where
    the replay has no priorities, or where a new unroll is to get the greatest there was so far.
  """

  acting: Acting
  make_learning: Callable[[core.RecurrentNetwork], Learning]
  initial_priorities: Callable[[types.Unroll], Any] | None = None


# spec, network_config, the agent's own configuration -> Agent.
MakeAgent = Callable[[types.EnvironmentSpec, config_lib.NetworkConfig, Any], Agent]


def named(prefix: str, variables: Sequence[tf.Variable]) -> dict[str, tf.Variable]:
  """For `Learning.variables`: each under the prefix and its own name."""
  return {f'{prefix}/{variable.name}': variable for variable in variables}
