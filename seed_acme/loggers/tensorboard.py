"""TensorBoard event files, written by TensorBoard's own writer: no TensorFlow needed."""

from __future__ import annotations

import os
import struct
import time

from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto import summary_pb2
from tensorboard.plugins.text import summary_v2 as text_summary
from tensorboard.summary.writer import event_file_writer

from seed_acme import types
from seed_acme.storage import recordings


class TensorBoardLogger:
  """Writes scalars over agent steps, all of a row in one event.

  One event per row costs a hundredth of one `tf.summary.scalar` per metric, which took a tenth of
  the training thread's time on small networks.

  A resumed run writes a second event file into the same folder. From the step of its first row on,
  TensorBoard drops the points of the start before, because each file says where it starts.
  """

  def __init__(self, folder: str | os.PathLike[str]):
    self._writer = event_file_writer.EventFileWriter(os.fspath(folder))
    self._has_started = False

  def write(self, agent_steps: int, metrics: dict[str, float]) -> None:
    """Adds one point to the curve of each metric."""
    if not self._has_started:
      self._has_started = True
      start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
      self._writer.add_event(
        event_pb2.Event(wall_time=time.time(), step=int(agent_steps), session_log=start)
      )
    values = [
      summary_pb2.Summary.Value(tag=tag(name), simple_value=float(value))
      for name, value in metrics.items()
    ]
    self._add(int(agent_steps), summary_pb2.Summary(value=values))

  def write_text(self, name: str, text: str) -> None:
    """Adds a text to TensorBoard's Text tab, the configuration for example."""
    indented = '\n'.join(f'    {line}' for line in text.splitlines())
    self._add(0, text_summary.text_pb(name, indented))

  def write_video(self, recording: types.Recording) -> None:
    """Adds a film to TensorBoard's Images tab, which can play GIFs only."""
    with open(recording.preview, 'rb') as file:
      content = file.read()
    # Bytes 6 to 9 of a GIF are its size.
    width, height = struct.unpack('<HH', content[6:10])
    image = summary_pb2.Summary.Image(
      height=height, width=width, colorspace=3, encoded_image_string=content
    )
    value = summary_pb2.Summary.Value(tag=tag(recordings.METRIC), image=image)
    self._add(recording.agent_steps, summary_pb2.Summary(value=[value]))

  def _add(self, step: int, summary: summary_pb2.Summary) -> None:
    self._writer.add_event(event_pb2.Event(wall_time=time.time(), step=step, summary=summary))
    self._writer.flush()

  def close(self) -> None:
    """Flushes and closes the event file."""
    self._writer.close()


def tag(metric: str) -> str:
  """Returns a metric's tag, by which TensorBoard sorts its page, capitals first.

  Returns, which users look for, are in the first group, with their whole names after it. Counters
  share a group, because each would otherwise be a section of the page.
  """
  group, _, name = metric.rpartition('/')
  if 'return' in name.split('_'):
    return f'Returns/{metric}'
  return metric if group else f'counts/{metric}'
