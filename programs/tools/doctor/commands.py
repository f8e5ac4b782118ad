"""The command of this folder, for the command line."""

from seed_acme.programs.command_line import command

DOCTOR = command.Command(
  'doctor',
  'check this machine and installation',
  'This installation',
  arguments='command:DoctorArguments',
  run='command:doctor',
  runs_beside_actors=True,
)
