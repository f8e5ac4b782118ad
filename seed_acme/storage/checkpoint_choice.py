"""The choice of a run's checkpoint: `newest`, `best`, the number of an update, or a path."""

from __future__ import annotations

from collections.abc import Sequence
import os
import pathlib
import re

from seed_acme import types
from seed_acme.files import bucket
from seed_acme.storage import checkpoint

NEWEST, BEST = 'newest', 'best'
Choice = str | int | os.PathLike[str]
_AT_END = re.compile(rf'(.+)@({NEWEST}|{BEST}|\d+)', re.DOTALL)
_WHY_NO_BEST = (
  'one is kept where evaluation environments play (num_evaluation_environments, '
  'checkpoint.keep_best), as soon as enough of their episodes have ended'
)


def number(choice: Choice) -> int | None:
  """Returns the update that is chosen; None for the other kinds of choice."""
  text = os.fspath(choice) if not isinstance(choice, int) else str(choice)
  return int(text) if re.fullmatch('[0-9]{1,18}', text) else None


def is_path(choice: Choice) -> bool:
  """Whether a checkpoint is chosen by its path. Raises `types.UserError` for an invalid choice."""
  if isinstance(choice, int):
    is_wrong = isinstance(choice, bool) or choice < 0
  else:
    is_wrong = not isinstance(choice, (str, os.PathLike)) or choice == ''
  if is_wrong:
    raise types.UserError(
      f'the checkpoint {choice!r} must be {NEWEST}, {BEST}, the number of an update or a path'
    )
  return choice not in (NEWEST, BEST) and number(choice) is None


def split(text: str) -> tuple[str, str]:
  """Splits `RUN@best` into `RUN` and `best`. Without a suffix the newest is meant, and an existing
  path is never split, whatever its name is."""
  match = _AT_END.fullmatch(text)
  if match is None or not bucket.is_url(text) and os.path.exists(text):
    return text, NEWEST
  return match[1], match[2]


def find(folder: pathlib.Path, choice: Choice, of: str) -> pathlib.Path:
  """Finds the best checkpoint in the `checkpoints` of a run, or that of an update; unchecked.

  of: the run's name. Raises `types.UserError`, which names the existing checkpoints.
  """
  wanted = best_updates(folder) if choice == BEST else number(choice)
  path = None if wanted is None else checkpoint.at(folder, wanted)
  if path is None:
    there = [checkpoint.updates_of(path) for path in checkpoint.all_whole(folder)]
    raise absent(choice, of, wanted, there, best_updates(folder))
  return path


def best_updates(folder: pathlib.Path) -> int | None:
  """Returns the update of a run's best checkpoint; None if it is not known."""
  for path in reversed(checkpoint.all_whole(folder)):
    try:
      best = checkpoint.best_of(checkpoint.load_meta(path))
    except checkpoint.Damaged:
      continue
    return None if best is None else best.updates
  return None


def absent(
  choice: Choice, of: str, wanted: int | None, there: Sequence[int], best: int | None
) -> types.UserError:
  """Returns the error for a checkpoint that a run does not have. wanted: its update, if known.
  there: updates of the run's checkpoints, oldest first. best: the best one's update, if known."""
  if not there:
    return types.UserError(f'no checkpoint in {of}: give a run folder that has one')
  if choice != BEST:
    what = f'{of} has no checkpoint of update {wanted}'
  elif wanted is None:
    what = f'{of} knows no best checkpoint: {_WHY_NO_BEST}'
  else:
    what = f'{of} names the checkpoint of update {wanted} as its best, which is not there'
  return types.UserError(f'{what}. {_listed(there, best)}')


def there_are(folder: pathlib.Path) -> str:
  """Returns a sentence that names the checkpoints in the `checkpoints` of a run."""
  there = [checkpoint.updates_of(path) for path in checkpoint.all_whole(folder)]
  return _listed(there, best_updates(folder))


def _listed(there: Sequence[int], best: int | None) -> str:
  words = []
  for updates in there:
    notes = [BEST] * (updates == best) + [NEWEST] * (updates == there[-1])
    words.append(f'{updates} ({", ".join(notes)})' if notes else str(updates))
  return f'Its checkpoints are {", ".join(words)}' if words else 'It has no checkpoint'
