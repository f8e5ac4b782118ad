"""Episodes filmed during training, in the folder `videos` of a run.

```
000000020000.mp4   the episode, named by the run's agent steps when it began
000000020000.gif   a preview of it, for TensorBoard, which plays no .mp4
000000020000.json  its return and length; written last, so the other files are then complete
```
The evaluation actor writes them and the learner reads them, so both must be on one machine.
"""

from __future__ import annotations

import contextlib
import pathlib
import re

from seed_acme import types
from seed_acme.files import local

METRIC = 'evaluation/video'  # name of an episode in the loggers
_RETURN, _LENGTH, _IS_CUT = 'return', 'length', 'is_cut'
# The names that `video.Writer` and `local.replacing` write under.
_UNFINISHED = re.compile(r'\.\d+\.\d+\.(mp4|gif)|\.[0-9a-f]+\.\d+\.(gif|json)')


def video_path(folder: pathlib.Path, agent_steps: int) -> pathlib.Path:
  """Returns the path of the film of the episode that began at this number of steps."""
  return folder / f'{agent_steps:012d}.mp4'


def preview_path(folder: pathlib.Path, agent_steps: int) -> pathlib.Path:
  """Returns the path of that episode's preview."""
  return video_path(folder, agent_steps).with_suffix('.gif')


def add(recording: types.Recording) -> None:
  """Registers an episode whose two files are written."""
  record = {_RETURN: recording.episode_return, _LENGTH: recording.length, _IS_CUT: recording.is_cut}
  local.write_json(recording.video.with_suffix('.json'), record)


def delete_unfinished(folder: pathlib.Path) -> None:
  """Deletes the files that a killed process was still writing; other hidden files stay."""
  for path in folder.iterdir():
    if _UNFINISHED.fullmatch(path.name):
      path.unlink(missing_ok=True)


def steps(folder: pathlib.Path) -> list[int]:
  """Returns the agent steps at which the filmed episodes began, in ascending order."""
  return sorted(int(path.stem) for path in _records(folder))


def _records(folder: pathlib.Path) -> list[pathlib.Path]:
  return [path for path in folder.glob('*.json') if path.stem.isdigit()]


class Unseen:
  """Finds new recordings in the folder of a run, which need not exist yet.

  Those of earlier starts count as seen, because they were logged then. After a resumption an
  episode may be filmed again under the same name; it is then new again.
  """

  def __init__(self, folder: pathlib.Path):
    self._folder = folder
    self._seen = self._written()

  def take(self) -> list[types.Recording]:
    """Returns the recordings that are new since the last call, in the order of their steps."""
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
