"""Episodes filmed during training, in the folder `videos` of a run.

```
000000020000.mp4   the episode, named by the run's agent steps when it began
000000020000.gif   a preview of it, for TensorBoard, which plays no .mp4
000000020000.json  its return and length; written last, so what it describes is whole
```
The evaluation actor writes them and the learner reads them: on one machine both see the folder.
"""

from __future__ import annotations

import contextlib
import pathlib

from seed_acme import types
from seed_acme.files import local

METRIC = 'evaluation/video'  # what loggers call an episode
_RETURN, _LENGTH, _IS_CUT = 'return', 'length', 'is_cut'


def video_path(folder: pathlib.Path, agent_steps: int) -> pathlib.Path:
  """Of the episode that began when the run had made so many steps."""
  return folder / f'{agent_steps:012d}.mp4'


def preview_path(folder: pathlib.Path, agent_steps: int) -> pathlib.Path:
  """Of its preview."""
  return video_path(folder, agent_steps).with_suffix('.gif')


def add(recording: types.Recording) -> None:
  """Makes known an episode whose two files are written."""
  record = {_RETURN: recording.episode_return, _LENGTH: recording.length, _IS_CUT: recording.is_cut}
  local.write_json(recording.video.with_suffix('.json'), record)


def steps(folder: pathlib.Path) -> list[int]:
  """Agent steps at which the episodes began that are filmed by now, ascending."""
  return sorted(int(path.stem) for path in _records(folder))


def _records(folder: pathlib.Path) -> list[pathlib.Path]:
  return [path for path in folder.glob('*.json') if path.stem.isdigit()]


class Unseen:
  """Finds the recordings that appear in the folder of a run, which need not be there yet.

  Those of earlier starts count as seen, because they were handed on then. After a resumption an
  episode may be filmed again under the same name; it then appears again.
  """

  def __init__(self, folder: pathlib.Path):
    self._folder = folder
    self._seen = self._written()

  def take(self) -> list[types.Recording]:
    """Those that have appeared since the last call, in the order of their steps."""
    written = self._written()
    fresh = sorted(path for path, time in written.items() if self._seen.get(path) != time)
    self._seen = written
    return [self._read(path) for path in fresh if path.exists()]

  def _written(self) -> dict[pathlib.Path, int]:
    written = {}
    for path in _records(self._folder):
      with contextlib.suppress(FileNotFoundError):  # users may delete what they have watched
        written[path] = path.stat().st_mtime_ns
    return written

  def _read(self, path: pathlib.Path) -> types.Recording:
    record, agent_steps = local.read_json(path), int(path.stem)
    return types.Recording(
      agent_steps,
      video_path(self._folder, agent_steps),
      preview_path(self._folder, agent_steps),
      record[_RETURN],
      record[_LENGTH],
      record[_IS_CUT],
    )
