"""TensorBoard event files. TensorFlow is imported when a logger is made, not before."""
from __future__ import annotations

import os
from typing import Any


class TensorBoardLogger:
  """Writes scalars over agent steps. One thread of a process that has TensorFlow anyway.

  resumed_at: agent steps of the checkpoint that a resumed run starts from; TensorBoard then
    drops the points that the killed run had written after it. None for a new run.
  """

  def __init__(self, folder: str | os.PathLike[str], resumed_at: int | None = None):
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    self._summary = tf.summary
    if resumed_at is not None:
      _purge_after(tf, os.fspath(folder), resumed_at)
    self._writer: Any = tf.summary.create_file_writer(os.fspath(folder))

  def write(self, agent_steps: int, metrics: dict[str, float]) -> None:
    """One point on the curve of each metric."""
    with self._writer.as_default(step=int(agent_steps)):
      for name, value in metrics.items():
        self._summary.scalar(name, float(value))
    self._writer.flush()

  def write_text(self, name: str, text: str) -> None:
    """A text under TensorBoard's Text tab, the configuration for example."""
    with self._writer.as_default(step=0):
      self._summary.text(name, '\n'.join(f'    {line}' for line in text.splitlines()))
    self._writer.flush()

  def close(self) -> None:
    """Flushes and closes the event file."""
    self._writer.close()


def _purge_after(tf: Any, folder: str, agent_steps: int) -> None:
  """Writes the event that tells TensorBoard that a run started again at a step.

  Only the writer of TensorFlow 1 can write it, and that only inside a graph. TensorBoard
  reads event files in the order of their names, `<seconds>.<host>.<pid>...`: the suffix
  puts this one before the file that the new run opens in the same second.
  """
  with tf.Graph().as_default():
    writer = tf.compat.v1.summary.FileWriter(folder, filename_suffix='.0.resumed')
    start = tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START)
    writer.add_session_log(start, global_step=agent_steps + 1)
    writer.close()
