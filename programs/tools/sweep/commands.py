"""The command of this folder, for the command line."""

from seed_acme.programs.command_line import command

SWEEP = command.Command(
  'sweep',
  'run combinations of settings over several seeds: one table, two figures',
  'Training',
  arguments='command:SweepArguments',
  run='command:sweep',
  config='catch_vtrace',
  needs_config='must be given for a new sweep',
)
