"""TensorBoard event files. TensorFlow is imported when a logger is made, not before."""
from __future__ import annotations

import os
from typing import Any


class TensorBoardLogger:
  """Writes scalars over agent steps. One thread of a process that has TensorFlow anyway.

  A resumed run writes a second event file into the same folder. Where its steps overlap
  those of the killed run, TensorBoard shows the newer points and drops the older ones.
  """

  def __init__(self, folder: str | os.PathLike[str]):
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    self._summary = tf.summary
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
