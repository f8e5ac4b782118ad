"""The command of this folder, for the command line."""

from seed_acme.programs.command_line import command

INSPECT = command.Command(
  'inspect',
  'look into a replay server: sizes, rates, who waits, items',
  'Measuring',
  arguments='command:InspectArguments',
  run='command:inspect',
)
