"""The interface between an agent and the runtime: a record of functions, bound to a configuration.

`make_agent(spec, network_config, config) -> Agent` makes it. That is the only time that the runtime
passes the configuration on; the agent's functions are bound to what they need of it. The record
holds functions and no variables. Its users make their own sets of variables: the inference server
to act, the learner to train, an evaluator to play.
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
  """Functions that choose actions.

  make() -> network: a network with its own variables, all of which exist.
  select_actions(prediction, exploration) -> AgentOutput: prediction `[N, ...]` of the network,
    exploration a `types.Exploration`. Pure: all randomness is in its `uniforms`, so the action of
    one row does not depend on other rows.
  num_uniforms: random numbers that `select_actions` needs for one row.
  """

  make: Callable[[], core.RecurrentNetwork]
  select_actions: Callable[[types.Nest, types.Exploration], types.AgentOutput]
  num_uniforms: int


class Prepared(NamedTuple):
  """A sample prepared for the losses.

  batch: a nest of tensors, for the losses or for `Passes.take`.
  mask, policy_version: of equal shape, for the transitions that are learnt: which of them count,
    and the version of the weights that acted. Steps and policy lag are computed from these.
  """

  batch: types.Nest
  mask: tf.Tensor
  policy_version: tf.Tensor


@dataclasses.dataclass(frozen=True)
class Objective:
  """Trainable variables that follow the gradient of one loss, and their optimizer's settings."""

  variables: Sequence[tf.Variable]
  optimizer: config_lib.OptimizerConfig


@dataclasses.dataclass(frozen=True)
class Passes:
  """Settings for several passes over one sample.

  num_epochs: passes over the sample. num_minibatches: gradient steps in one pass.
  num_elements: number of unrolls or transitions that are shuffled and divided into the minibatches;
    a multiple of num_minibatches.
  prepares_each_epoch: call `Learning.prepare` again before each pass, with the current weights.
  take(batch, indices) -> the minibatch of the elements `indices` `[M]`, for the losses. The losses
    must not return priorities then, because a minibatch is not the sample that was drawn.
  of_first, of_last: names of metrics of the losses that are reported as means over the gradient
    steps of the first or the last pass; all others are means over every gradient step.
  variances: maps the name of a metric in `of_first`, a variance within a minibatch, to the name of
    the corresponding mean. The variance of these means is added to it, so that the sum is the
    variance over the whole sample, however many minibatches there are.
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
  """A metric that rises when an agent learns, and a message for the user as long as it does not.

  metric: its name in a row of the log. Rows without it are ignored.
  bound: value that the metric is expected to reach.
  share: share of the run's steps for which the metric may stay below the bound.
  min_steps: agent steps of the run before which no message is shown.
  problem, advice: what a low metric means, and what to try.
  amount(metrics): how much there is to learn, from a row that has the metric. Rows in which it is
    below a tenth of its greatest value so far are ignored, because then little is left. None = all
    rows count.
  """

  metric: str
  bound: float
  share: float
  min_steps: int
  problem: str
  advice: str
  amount: Callable[[Mapping[str, float]], float] | None = None


@dataclasses.dataclass(frozen=True)
class Learning:
  """Functions that train one network that acts, with the learner's set of its variables.

  All functions run in graphs. A key is `[2]` int32 for `tf.random.stateless_*`, from the run's
  seed, the update and the gradient step; `tf.random.experimental.stateless_split` makes several.
  The first gradient step of an update gets the key that `prepare` got: where both draw, fold a
  constant into one of them (`seed_acme.ops.uniforms.fold_in`).

  variables: variables that only training needs, by unique names: critics, targets, learnt weights.
    They are saved, but never published to inference.
  objectives: by name. Each trainable variable is in one of them.
  prepare(sample, key, is_first) -> Prepared: sample is time-major; is_first, a Python bool,
    is True for the first pass. Statistics that no gradient changes are updated only here and in
    `finish`.
  losses(batch, key, progress) -> LossOutput: a scalar for each objective, all at the weights
    before any of them steps. progress: agent steps over those of the whole run, in [0, 1].
  passes: None = one over the whole batch.
  after_update(num_updates): changes variables that have no gradient, a target network for
    instance, after the num_updates-th update (int64, from 1).
  copy_targets(): makes target networks copies of what they follow, as at the start of a run, for a
    warm start from a checkpoint that lacks them. None = there are none.
  finish(sample) -> metrics: called after the last pass.
  of_row(means) -> metrics: additional metrics of a row of the log, computed from the means of all
    metrics over the updates since the last row. Plain numbers, outside any graph.
  watches: one for a metric at most; may name any, including those of `of_row`.
  keeps_observations: with several learner hosts, each keeps the observations and initial states of
    its own unrolls to itself, which saves most of what the hosts would send each other. `prepare`,
    `losses` and `finish` then get those of this host only, `[T+1, B/hosts, ...]` and
    `[B/hosts, ...]`, with all other arrays of the whole batch, so they may select rows in time, and
    pass them to networks, but read nothing else of them. Not possible with `passes`, whose
    minibatches have rows of several hosts.

  Raises ValueError for `keeps_observations` together with `passes`.
  """

  variables: dict[str, tf.Variable]
  objectives: dict[str, Objective]
  prepare: Callable[[types.Sample, tf.Tensor, bool], Prepared]
  losses: Callable[[types.Nest, tf.Tensor, tf.Tensor], types.LossOutput]
  passes: Passes | None = None
  after_update: Callable[[tf.Tensor], None] | None = None
  copy_targets: Callable[[], None] | None = None
  finish: Callable[[types.Sample], dict[str, tf.Tensor]] | None = None
  of_row: Callable[[Mapping[str, float]], dict[str, float]] | None = None
  watches: Sequence[Watch] = ()
  keeps_observations: bool = False

  def __post_init__(self) -> None:
    if self.keeps_observations and self.passes is not None:
      raise ValueError(
        'keeps_observations (True) does not go together with passes, because their minibatches '
        'have observations of all hosts: leave one of them out'
      )


@dataclasses.dataclass(frozen=True)
class Agent:
  """Everything the runtime needs of an agent, except the replay, which its configuration describes.

  make_learning(network) -> Learning, for a network that `acting.make` made.
  initial_priorities(unrolls) -> `[K]`, of unrolls `[K, L, ...]` as recorded when acting. None if
    the replay has no priorities, or if a new unroll is to get the greatest priority that the
    learner's process has written so far, at least 1.
  """

  acting: Acting
  make_learning: Callable[[core.RecurrentNetwork], Learning]
  initial_priorities: Callable[[types.Unroll], Any] | None = None


# spec, network_config, the agent's own configuration -> Agent.
MakeAgent = Callable[[types.EnvironmentSpec, config_lib.NetworkConfig, Any], Agent]


def named(prefix: str, variables: Sequence[tf.Variable]) -> dict[str, tf.Variable]:
  """Names variables for `Learning.variables`: by the prefix and their own names.

  Raises `types.UserError` if two have one name, as two networks made alike do: a checkpoint would
  lack one of them. Give each network a prefix of its own.
  """
  found: dict[str, tf.Variable] = {}
  for variable in variables:
    name = f'{prefix}/{variable.name}'
    if name in found:
      raise types.UserError(
        f'two variables are named {name}, and checkpoints find variables by name: give the modules '
        'different names, or name each of them with a prefix of its own'
      )
    found[name] = variable
  return found
