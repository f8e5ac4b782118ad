"""The command of this folder, for the command line."""

from seed_acme.programs.command_line import command

TRAIN = command.Command(
  'train',
  'train, or resume, a run',
  'Training',
  arguments='command:TrainArguments',
  run='command:train',
  config='catch_vtrace',
)
