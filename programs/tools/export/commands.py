"""The command of this folder, for the command line."""

from seed_acme.programs.command_line import command

EXPORT = command.Command(
  'export',
  'write the policy of a checkpoint as a TensorFlow SavedModel',
  'Results',
  arguments='command:ExportArguments',
  run='command:export',
)
