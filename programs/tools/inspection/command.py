"""`seed-acme inspect`: shows the contents of a Reverb server's tables, and which side waits."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import sys
import textwrap
import threading
import time
from typing import TYPE_CHECKING, Annotated

import tyro

from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.files import local
from seed_acme.libraries import native_output
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.programs.tools.inspection import address as inspect_address
from seed_acme.programs.tools.inspection import items as inspect_items
from seed_acme.programs.tools.inspection import output as inspect_output
from seed_acme.storage import opening

if TYPE_CHECKING:  # takes seconds; wrong arguments are answered first
  from seed_acme.programs.tools.inspection import saved as saved_lib
  from seed_acme.replay import inspection
  from seed_acme.replay.shards import inspection as shards_inspection

_WATCH_S = 2.0  # refresh period of a bare `--watch`
# for the first figures; a missing server is reported within 5 s, with Python's start-up
_DEADLINE_S = 4.0
_PROBE_TIMEOUT_S = 3.0  # part of the deadline, to connect and to recognise gRPC
_ANSWER_TIMEOUT_S = 3  # for the server's figures; whole seconds, as Reverb wants them
_SAMPLE_TIMEOUT_S = 3.0  # longest wait of an item for the rate limiter
_CLEAR = '\x1b[H\x1b[2J'
# A `--watch` without a value uses the default period.
_PERIOD = tyro.constructors.PrimitiveConstructorSpec(
  nargs='*',
  metavar='FLOAT',
  instance_from_str=lambda given: float(' '.join(given)) if given else _WATCH_S,
  is_instance=lambda value: isinstance(value, float),
  str_from_instance=lambda value: [str(value)],
)


@dataclasses.dataclass(frozen=True)
class InspectArguments:
  """Look into a Reverb replay server, of a run or any other. Needs --server or --run_dir.

  server: HOST:PORT, or [IPv6]:PORT; several shards separated by commas. run_dir: folder of a live
    run, instead.
  table: show only this one. interval: seconds over which calls per second are measured.
  watch: seconds between refreshes until Ctrl-C (`--watch` alone: 2); 0 = show once.
  sample: number of items to draw and describe. save: folder for them (.npz) and their pictures,
    without items of an earlier draw.
  consume: allow sampling that changes the server's state (every table but a run's mirror).
  json: print JSON; with --watch, one record a line.
  """

  server: str = ''
  run_dir: str = ''
  table: str = ''
  interval: Annotated[float, bounds.above(0)] = 1.0
  watch: Annotated[float, _PERIOD, bounds.at_least(0)] = 0.0
  sample: Annotated[int, bounds.at_least(0)] = 0
  save: str = ''
  consume: bool = False
  json: bool = False


def inspect(arguments: InspectArguments) -> int | command_lib.Answer:
  """Shows, watches or samples the tables; raises `UserError`."""
  _check(arguments)
  deadline_s = time.monotonic() + _DEADLINE_S
  addresses = inspect_address.find(arguments.server, arguments.run_dir)
  for one in addresses:
    inspect_address.check_answers(one, _PROBE_TIMEOUT_S)
  os.environ['CUDA_VISIBLE_DEVICES'] = '-1'  # otherwise TensorFlow would take the GPU's memory
  processes.load_tensorflow()
  with native_output.without_noise():
    from seed_acme.programs.tools.inspection import saved as saved_lib
    from seed_acme.replay.shards import inspection

    server = inspection.Servers(addresses, _ANSWER_TIMEOUT_S)
    first = server.snapshot(_first_timeout_s(deadline_s - time.monotonic()))
    names = _select(first, arguments.table)
    if arguments.sample:
      return _draw_items(addresses, _table_to_sample(first, names, arguments), arguments)
    view = _View(
      server,
      saved_lib.Saved(opening.open_run(arguments.run_dir) if arguments.run_dir else None),
      arguments,
    )
    if not arguments.watch:
      time.sleep(arguments.interval)
      view.show(first, server.snapshot())
      return 0
    _watch(view, first)
  text = f'error: the server at {", ".join(addresses)} is gone: it no longer answers'
  print(text, file=sys.stderr)
  return processes.FAILURE_EXIT


def _first_timeout_s(left_s: float) -> int:
  """Returns the time-out for the first figures, since loading Reverb has used some of the time."""
  return min(_ANSWER_TIMEOUT_S, max(1, int(left_s)))


def _check(arguments: InspectArguments) -> None:
  if bool(arguments.server) == bool(arguments.run_dir):
    raise types.UserError(
      'inspect needs one of --server=HOST:PORT and --run_dir=DIR: '
      'seed-acme inspect --run_dir=runs/latest'
    )
  if arguments.sample and arguments.watch:
    raise types.UserError('--sample and --watch do not go together: leave one of them out')
  if (arguments.save or arguments.consume) and not arguments.sample:
    raise types.UserError(
      f'--{"save" if arguments.save else "consume"} is about items: say how many with --sample=N'
    )
  local.refuse_url(arguments.save)
  if arguments.save:
    _refuse_items(pathlib.Path(arguments.save))


def _refuse_items(folder: pathlib.Path) -> None:
  """Raises `UserError` if a folder has items already: nothing tells those of two draws apart."""
  try:
    found = sorted(path.name for path in folder.glob('item_*.npz'))
  except OSError:  # whatever it is, writing says so
    return
  if found:
    raise types.UserError(
      f'--save={folder} holds items of an earlier draw ({len(found)}, such as {found[0]}), with '
      'which these would be mixed: choose another folder, or delete them'
    )


def _select(snapshot: inspection.Snapshot, table: str) -> list[str]:
  """Returns the names of the tables to show."""
  if table and table not in snapshot.tables:
    raise types.UserError(
      f'there is no table {table!r}; the server has: {", ".join(snapshot.tables) or "none"}'
    )
  return [table] if table else list(snapshot.tables)


@dataclasses.dataclass(frozen=True)
class _View:
  """The display of a server's tables, with what a run's checkpoints know of their items."""

  server: shards_inspection.Servers
  saved: saved_lib.Saved
  arguments: InspectArguments

  def show(
    self,
    before: inspection.Snapshot,
    after: inspection.Snapshot,
    terminal: os.terminal_size | None = None,
  ) -> None:
    """Prints the tables.

    terminal: size of the terminal to redraw; lines that do not fit are left out.
    """
    from seed_acme.programs.tools.inspection import saved as saved_lib
    from seed_acme.replay import inspection

    address, saved = ', '.join(self.server.addresses), self.saved.look()
    rows = [
      (after.tables[name], inspection.rates(before, after, name))
      for name in _select(after, self.arguments.table)
    ]
    if self.arguments.json:
      tables = {
        table.name: {
          **inspect_output.table_record(table, rates),
          'items': saved_lib.record(saved, table.name),
        }
        for table, rates in rows
      }
      unknown = None if saved else self.saved.reason
      record = {'server': address, 'time_s': time.time(), 'items_unknown': unknown}
      print(json.dumps({**record, 'tables': tables}), flush=True)
      return
    lines = [f'{address} at {time.strftime("%H:%M:%S")}']
    for table, rates in rows:
      lines += ['', *inspect_output.table_lines(table, rates)]
      lines += saved_lib.lines(saved, table.name) if saved else []
    if saved is None:
      lines += ['', inspect_output.UNKNOWN.format(reason=self.saved.reason)]
    if terminal is None:
      print('\n'.join(lines), flush=True)
      return
    wrapped = [
      part
      for line in lines
      for part in textwrap.wrap(line, terminal.columns - 1, subsequent_indent=inspect_output.INDENT)
      or ['']
    ]
    print(_CLEAR + '\n'.join(wrapped[: terminal.lines - 1]), flush=True)


def _watch(view: _View, first: inspection.Snapshot) -> None:
  """Refreshes until the server is gone; Ctrl-C raises KeyboardInterrupt.

  The signal handler only sets a flag, because an exception raised during a call into Reverb's
  library can be lost there, and the watch would never end.
  """
  interrupted = threading.Event()
  with signals.replaced(signal.SIGINT, lambda: signals.set_event(interrupted)):
    _refresh(view, first, interrupted)


def _refresh(view: _View, before: inspection.Snapshot, interrupted: threading.Event) -> None:
  """Shows the tables periodically; raises KeyboardInterrupt once `interrupted` is set."""
  from seed_acme.replay import inspection

  arguments = view.arguments
  redraws = sys.stdout.isatty() and not arguments.json
  pause_s = min(arguments.interval, arguments.watch)  # show the first figures soon
  while True:
    if interrupted.wait(pause_s):
      raise KeyboardInterrupt
    pause_s = arguments.watch
    try:
      after = view.server.snapshot()
    except inspection.NoAnswer:
      return
    view.show(before, after, shutil.get_terminal_size() if redraws else None)
    if not redraws and not arguments.json:
      print(flush=True)  # separates two blocks
    before = after


def _draw_items(
  addresses: Sequence[str], table: inspection.Table, arguments: InspectArguments
) -> command_lib.Answer:
  from seed_acme.replay import inspection_sample
  from seed_acme.replay.shards import inspection as shards_inspection

  items = shards_inspection.draw(addresses, table, arguments.sample, _SAMPLE_TIMEOUT_S)
  try:
    files = inspection_sample.save(items, pathlib.Path(arguments.save)) if arguments.save else []
    sheets = inspect_items.write_sheets(
      table, items, pathlib.Path(arguments.save) if arguments.save else pathlib.Path()
    )
  except OSError as error:
    raise types.UserError(
      f'cannot write {error.filename or arguments.save}: '
      f'{error.strerror or error}; choose another --save'
    ) from error
  shown = (table, items, arguments.sample, sheets, files)
  lines = inspect_items.sample_lines(*shown)
  return command_lib.Answer(inspect_items.sample_record(*shown), '\n'.join(lines))


def _table_to_sample(
  snapshot: inspection.Snapshot, names: list[str], arguments: InspectArguments
) -> inspection.Table:
  """Returns the mirror table if there is one; others need `--consume`, as sampling changes them."""
  harmless = [name for name in names if snapshot.tables[name].is_harmless_to_sample]
  if harmless and not arguments.consume:
    return snapshot.tables[harmless[0]]
  if not arguments.consume:
    which = f'table {names[0]}' if len(names) == 1 else 'this server, which has no mirror table,'
    raise types.UserError(
      f'sampling {which} would change its state (items may leave it, inserts '
      'may be admitted): add --consume if that is right'
    )
  if len(names) != 1:
    raise types.UserError(f'--consume needs --table=NAME, one of: {", ".join(names)}')
  table = snapshot.tables[names[0]]
  if table.is_in_learner:
    raise types.UserError(
      f"table {table.name} has no items to draw, they are in the learner's process: "
      'leave out --table and --consume, and the mirror shows some of them'
    )
  return table
