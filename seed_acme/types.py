"""The records that cross the arrows of the program, one type per arrow.

Alignment, once for the whole code base: **row t of an unroll holds what is known
when action t is chosen** (action t-1, the reward and the discount that it brought,
observation t) and the output computed from it (action t and the network's prediction).
`seed_acme.ops.transitions` is the one place that pairs an action with the reward and the discount
that it brought, which are in the next row.

Shapes are written without the leading batch axes unless they are given. `E` is the
number of environments that step together, `N` of rows in one inference batch, `B` of
unrolls in a training batch, `T` of transitions in an unroll, `L = overlap + T + 1`
of its rows.

This module imports neither TensorFlow nor Reverb, because actors use it.
"""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, NamedTuple

import dm_env
from dm_env import specs as dm_specs
import numpy as np

# A nest of arrays or tensors: an array, or (named) tuples, lists and dicts of nests.
Nest = Any

FIRST = int(dm_env.StepType.FIRST)
MID = int(dm_env.StepType.MID)
LAST = int(dm_env.StepType.LAST)


class VectorTimeStep(NamedTuple):
  """Time step of E environments: dm_env's TimeStep with a leading `[E]`.

  step_type: `[E]` uint8, FIRST, MID or LAST.
  reward: `[E]` float32, brought by the previous action; 0 at FIRST.
  discount: `[E]` float32; 0 at LAST means terminated, > 0 at LAST means truncated;
    1 at FIRST.
  observation: nest of `[E, ...]`.
  score: `[E]` float32, the reward that is reported to users. Equal to `reward`
    unless the environment shapes its reward.
  """

  step_type: np.ndarray
  reward: np.ndarray
  discount: np.ndarray
  observation: Nest
  score: np.ndarray


class ActorRequest(NamedTuple):
  """Actor -> inference server: one time step of one environment group.

  request_number: int64 scalar; 0, 1, 2 ... per group and run. A repeated number is
    answered with the stored action; the environments are not stepped twice.
  env_ids: `[E]` int32, global, unique.
  run_ids: `[E]` int64, drawn each time the environments are built; a change
    resets everything the server knows about that environment.
  timestep: the group's `VectorTimeStep`.
  """

  request_number: int
  env_ids: np.ndarray
  run_ids: np.ndarray
  timestep: VectorTimeStep


class AgentInput(NamedTuple):
  """Input of the network: `[N, ...]` when acting, `[T+1, B, ...]` when learning.

  step_type uint8; reward, discount float32 (of the transition into this row);
  previous_action matches the action specification, zero at FIRST; observation nest.
  """

  step_type: Nest
  reward: Nest
  discount: Nest
  previous_action: Nest
  observation: Nest


class AgentOutput(NamedTuple):
  """Output computed from one row: the action taken and the network's prediction.

  prediction is a record of the agent's, `ActorCriticOutput` for example.
  """

  action: Nest
  prediction: Nest


class ActorCriticOutput(NamedTuple):
  """Prediction of an actor-critic.

  policy_params: `[..., P]` parameters of the action distribution; value: `[...]`.
  """

  policy_params: Nest
  value: Nest


class QOutput(NamedTuple):
  """Prediction of a Q network.

  q_values: `[..., A]`, on the scale the network was trained on (R2D2: rescaled).
  """

  q_values: Nest


class Exploration(NamedTuple):
  """Inference server -> `select_actions`: everything random or particular about a row.

  uniforms: `[N, U]` float32 in (0, 1), keyed by seed, environment, run and row.
  place: `[N]` float32 in [0, 1], position of the environment among the training
    environments: 0 the first, 1 the last, so that each may explore differently.
  is_evaluation: `[N]` bool, true for rows of evaluation environments.
  agent_steps: `[N]` int64, steps of the run so far, the same in every row; for schedules.
  """

  uniforms: Nest
  place: Nest
  is_evaluation: Nest
  agent_steps: Nest


class Unroll(NamedTuple):
  """Server -> replay: consecutive rows of one environment.

  initial_state: the recurrent state before row 0 (before any reset at FIRST).
  inputs, outputs: `[L, ...]`.
  policy_version: `[L]` int64, the version of the weights that computed each row.
  """

  initial_state: Nest
  inputs: AgentInput
  outputs: AgentOutput
  policy_version: Nest


class Sample(NamedTuple):
  """Replay -> learner: B unrolls, time-major (`[L, B, ...]`; initial_state `[B, ...]`).

  keys: `[B]` uint64 item keys; probabilities: `[B]` float64 of being sampled.
  """

  unroll: Unroll
  keys: Nest
  probabilities: Nest


class LossOutput(NamedTuple):
  """Loss -> learner.

  losses: a scalar for each objective, by name. metrics: `{'group/name': scalar}`. priorities:
  `[B]`, NaN for unrolls that keep theirs; None if the agent's replay has none, or it makes several
  passes over a sample.
  """

  losses: dict[str, Any]
  metrics: dict[str, Any]
  priorities: Nest | None = None


class Variables(NamedTuple):
  """Learner -> inference: a published copy of the weights.

  version: number of learner updates that led to it. values: tensors of the variables that acting
  reads, in its order.
  """

  version: int
  values: tuple[Any, ...]


class Recording(NamedTuple):
  """Evaluation actor -> loggers, through the run folder: an episode that was filmed.

  agent_steps: steps of the run when the episode began.
  video: the `.mp4`. preview: a `.gif` of the film, with fewer and smaller pictures.
  episode_return: sum of the scores. length: agent steps. is_cut: whether the film ended before the
  episode did.
  """

  agent_steps: int
  video: pathlib.Path
  preview: pathlib.Path
  episode_return: float
  length: int
  is_cut: bool


@dataclasses.dataclass(frozen=True)
class EnvironmentSpec:
  """Specification of one environment (not of a vector of them).

  observation, action: nests of `dm_env.specs.Array`. frames_per_step: environment
  frames that one agent step lasts (action repeat), an int of 1 or more.
  """

  observation: Nest
  action: Nest
  frames_per_step: int = 1


def num_discrete_actions(spec: EnvironmentSpec) -> int:
  """Returns the number of actions; raises `UserError` if the action is not one discrete choice."""
  action = spec.action
  if isinstance(action, dm_specs.DiscreteArray):
    return int(action.num_values)
  raise UserError(
    f'the environment takes actions {_described(action)}; this agent needs one discrete action '
    f'(dm_env.specs.DiscreteArray): {_mend(action)}'
  )


def _described(action: Nest) -> str:
  if not isinstance(action, dm_specs.BoundedArray) or not np.prod(action.shape):
    return repr(action)
  low, high = np.min(action.minimum), np.max(action.maximum)
  return f'of shape {action.shape}, {np.dtype(action.dtype).name} from {low:g} to {high:g}'


def _mend(action: Nest) -> str:
  other = 'choose an agent that takes such actions, on_policy for one'
  is_float = isinstance(action, dm_specs.BoundedArray) and np.issubdtype(action.dtype, np.floating)
  if is_float and np.prod(action.shape) == 1:
    return f'add --config.environment.settings action_bins 5, which makes it so, or {other}'
  return other


class UserError(Exception):
  """Wrong input from outside (a flag, a level, a file): shown without a traceback.

  The message states the bad value and the fix, in at most four lines. Commands exit with 2, and
  nothing is retried.
  """


class NotFinite(UserError):
  """An environment returned a number that is not a finite float32: NaN, infinity, or too large.

  The next episode may be free of it, so an actor's worker is restarted, as after a failure. Once it
  has failed `actor.max_failures` times in a row, or if there is no worker, this is wrong input like
  any other.
  """


class MissingPackage(UserError):
  """A package that an environment needs is not installed here; it may be on other hosts."""


class Failure(Exception):
  """An error despite correct input: a full disk, damaged data, a NaN loss.

  Shown without a traceback, because the message names the cause. Commands exit with 1, so that
  `--max_restarts` and clusters try again.
  """


class OtherNodeFailed(Failure):
  """Another node has failed or was stopped; this one is not at fault.

  has_begun: whether this node had made an update since its start. If not, it may have been
  restarted after a failure and have met a node that had not ended yet.
  """

  has_begun = True


class TrainingFailed(Failure):
  """A run ended with an error; the text is what the command line shows."""
