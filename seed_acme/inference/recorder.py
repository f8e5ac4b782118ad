"""Records answered rows in episode statistics and in the unrolls for replay."""

from __future__ import annotations

import numpy as np

from seed_acme import core
from seed_acme import types
from seed_acme.inference import episodes
from seed_acme.inference import rows as rows_lib
from seed_acme.inference import server_statistics
from seed_acme.inference import unroll_quota
from seed_acme.inference import unrolls as unrolls_lib
from seed_acme.progress import counting
from seed_acme.tensors import nests


class Recorder:
  """Counts steps and episodes, and passes on finished unrolls. Used by the inference thread only.

  Evaluation rows are counted separately and never reach replay.
  """

  def __init__(
    self,
    unrolls: unrolls_lib.UnrollAssembler,
    sink: core.UnrollSink,
    counters: counting.Counters,
    num_training: int,
    frames_per_step: int,
    quota: unroll_quota.UnrollQuota | None,
    statistics: server_statistics.ServerStatistics,
  ):
    self._unrolls = unrolls
    self._sink = sink
    self._counters = counters
    self._num_training = num_training
    self._frames_per_step = frames_per_step
    self._quota = quota
    self._training_episodes = statistics.training_episodes
    self._evaluation_episodes = statistics.evaluation_episodes

  def reset(self, env_ids: np.ndarray) -> None:
    """Drops the unfinished episodes and unrolls of these environments."""
    self._unrolls.reset(env_ids[env_ids < self._num_training])
    self._training_episodes.reset(env_ids)
    self._evaluation_episodes.reset(env_ids)

  def record(self, env_ids: np.ndarray, acted: rows_lib.ActedRows, version: int) -> None:
    """Records one row of each environment, `[N, ...]`, acted on with weights of this version."""
    if not acted.is_evaluation.any():
      self._record_training(env_ids, acted, version)
      return
    is_training = ~acted.is_evaluation
    evaluated = nests.map_arrays(lambda x: x[acted.is_evaluation], acted)
    _add_episodes(self._evaluation_episodes, env_ids[acted.is_evaluation], evaluated)
    if is_training.any():
      trained = nests.map_arrays(lambda x: x[is_training], acted)
      self._record_training(env_ids[is_training], trained, version)

  def _record_training(self, env_ids: np.ndarray, acted: rows_lib.ActedRows, version: int) -> None:
    num_ended = _add_episodes(self._training_episodes, env_ids, acted)
    if num_ended:
      self._counters.add(episodes=num_ended)
    self.append(env_ids, acted.inputs, acted.outputs, acted.entering_state, version)

  def append(
    self,
    env_ids: np.ndarray,
    inputs: types.AgentInput,
    outputs: types.AgentOutput,
    entering_state: types.Nest,
    version: int,
  ) -> None:
    """Appends rows to the unrolls of training environments, and passes on finished unrolls."""
    finishing = env_ids[self._unrolls.is_last_row(env_ids)]
    if self._quota is not None:
      self._quota.add(finishing)
    finished = self._unrolls.append(env_ids, inputs, outputs, entering_state, version)
    if finished is not None:
      num_steps = unrolls_lib.num_steps(finished, self._unrolls.overlap)
      self._counters.add(agent_steps=num_steps, frames=num_steps * self._frames_per_step)
      self._sink.put(finishing, finished)


def _add_episodes(
  statistics: episodes.EpisodeStatistics, env_ids: np.ndarray, acted: rows_lib.ActedRows
) -> int:
  """Adds rows to statistics, ignoring the score at FIRST; returns how many episodes ended."""
  step_type = acted.inputs.step_type
  score = np.where(step_type == types.FIRST, np.float32(0), acted.score)
  return statistics.add(env_ids, step_type, acted.inputs.reward, score)
