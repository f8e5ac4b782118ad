"""Which checkpoint of a run is meant: `newest`, `best`, the number of an update, or a path."""

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
  """The update that is meant; None of the other kinds of choice."""
  text = os.fspath(choice) if not isinstance(choice, int) else str(choice)
  return int(text) if re.fullmatch('[0-9]{1,18}', text) else None


def is_path(choice: Choice) -> bool:
  """Whether a checkpoint is named by where it lies. Raises `types.UserError` for no choice."""
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
  """`RUN@best` -> (`RUN`, `best`); what says nothing means the newest, and a path that exists is
  what it says, whatever it is called."""
  match = _AT_END.fullmatch(text)
  if match is None or not bucket.is_url(text) and os.path.exists(text):
    return text, NEWEST
  return match[1], match[2]


def find(folder: pathlib.Path, choice: Choice, of: str) -> pathlib.Path:
  """The best checkpoint in the `checkpoints` of a run, or that of an update; not checked.

  of: what the run is called. Raises `types.UserError` that names those that there are.
  """
  wanted = best_updates(folder) if choice == BEST else number(choice)
  path = None if wanted is None else checkpoint.at(folder, wanted)
  if path is None:
    there = [checkpoint.updates_of(path) for path in checkpoint.all_whole(folder)]
    raise absent(choice, of, wanted, there, best_updates(folder))
  return path


def best_updates(folder: pathlib.Path) -> int | None:
  """The update of the best checkpoint that a run knows of; None if it knows none."""
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
  """What to say where a run lacks the checkpoint that is asked for. wanted: its update, if known.
  there: updates of those that it has, oldest first. best: that of the best one, if known."""
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
  """A sentence that names the checkpoints in the `checkpoints` of a run."""
  there = [checkpoint.updates_of(path) for path in checkpoint.all_whole(folder)]
  return _listed(there, best_updates(folder))


def _listed(there: Sequence[int], best: int | None) -> str:
  words = []
  for updates in there:
    notes = [BEST] * (updates == best) + [NEWEST] * (updates == there[-1])
    words.append(f'{updates} ({", ".join(notes)})' if notes else str(updates))
  return f'Its checkpoints are {", ".join(words)}' if words else 'It has no checkpoint'
