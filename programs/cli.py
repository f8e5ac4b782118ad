"""The command line: `seed-acme COMMAND ...`. Finds the command, calls it, and maps errors to exit
codes. Each command is defined in a file `commands.py` beside its code."""

from __future__ import annotations

from collections.abc import Callable
import json
import os
import signal
import sys

import seed_acme
from seed_acme import types
from seed_acme.checks import distribution
from seed_acme.files import local
from seed_acme.libraries import matplotlib_loading
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.command_line import given as given_lib
from seed_acme.programs.command_line import help_text
from seed_acme.programs.command_line import line as line_lib
from seed_acme.programs.command_line import parsing
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.programs.system import streams

_MAX_ERROR_LINES = 4


def main(argv: list[str] | None = None) -> int:
  """Returns the exit code: 0, 1 (failure), 2 (wrong input), 129, 130 or 143 (signals)."""
  streams.accept_any_text()
  return _exit_code(lambda: _run(line_lib.read(sys.argv[1:] if argv is None else argv)))


def _run(line: line_lib.Line) -> int:
  if line.is_version_asked:
    print(f'seed-acme {seed_acme.__version__}')
    return 0
  if line.command in ('', 'help'):
    print(help_text.overview())
    return processes.USER_ERROR_EXIT if line.command == '' and line.topic is None else 0
  command = command_lib.find(line.command)
  matplotlib_loading.use_own_backend()
  # A run that is under way installs better handlers. Ctrl-C raises KeyboardInterrupt.
  signals.answer(_terminated, signal.SIGINT)
  if not command.runs_beside_actors:
    distribution.require_whole(command.name)
  sys.path.append(_working_folder())  # where the user's own environment or network may be
  if line.topic is None:
    return _call(command, line)
  print(help_text.describe(*given_lib.described(command, line.config), command.name, line.topic))
  return 0


def _working_folder() -> str:
  try:
    return os.getcwd()
  except FileNotFoundError as error:
    raise types.UserError('the working folder has been deleted: cd to another') from error


def _call(command: command_lib.Command, line: line_lib.Line) -> int:
  run = command.load(command.run)
  if command.config:
    arguments, given = given_lib.split(command, line)
    answer = run(arguments, given)
  else:
    if line.config:
      raise types.UserError(f'{command.name} takes no --config={line.config}: leave it out')
    arguments = parsing.parse(command.load(command.arguments), line.words, command.name)
    answer = run(arguments)
  if isinstance(answer, int):
    return answer
  print(json.dumps(answer.record) if arguments.json else answer.text)
  return answer.exit_code


def _exit_code(act: Callable[[], int]) -> int:
  """Runs one command and maps its exceptions to exit codes."""
  try:
    with local.explained_length():
      return act()
  except types.UserError as error:
    _show_error(error)
    return processes.USER_ERROR_EXIT
  except types.Failure as error:
    _show_error(error)
    return processes.FAILURE_EXIT
  except KeyboardInterrupt:
    return 128 + signal.SIGINT
  except BrokenPipeError:  # as in `seed-acme list | head`
    sys.stderr.close()
    return 128 + signal.SIGPIPE


def _show_error(error: Exception) -> None:
  lines = f'error: {error}'.splitlines()[:_MAX_ERROR_LINES]
  print('\n'.join(streams.printable(line) for line in lines), file=sys.stderr)


def _terminated(number: int) -> None:
  raise SystemExit(128 + number)


if __name__ == '__main__':
  sys.exit(main())
