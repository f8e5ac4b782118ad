"""The command of this folder, for the command line."""

from seed_acme.programs.command_line import command

PLAN = command.Command(
  'plan',
  'plan a run at any scale from what bench measured',
  'Measuring',
  arguments='command:PlanArguments',
  run='command:plan',
  runs_beside_actors=True,
)
