"""The commands of this folder, for the command line."""

from seed_acme.programs.command_line import command

PACK = command.Command(
  'pack',
  'write a run into one zip, with a card that says what it is',
  'Results',
  arguments='command:PackArguments',
  run='command:pack',
)
UNPACK = command.Command(
  'unpack',
  'make the folder of a run from such a zip',
  'Results',
  arguments='command:UnpackArguments',
  run='command:unpack',
)
