"""The commands of this folder, for the command line."""

from seed_acme.programs.command_line import command

EVALUATE = command.Command(
  'evaluate',
  'play greedy episodes from checkpoints, on video too',
  'Results',
  arguments='evaluate_command:EvaluateArguments',
  run='evaluate_command:evaluate',
)
LIST = command.Command(
  'list',
  'configurations, agents, environments',
  'This installation',
  arguments='list_command:ListArguments',
  run='list_command:show',
  runs_beside_actors=True,
)
PLOT = command.Command(
  'plot',
  'draw learning curves of one or more runs',
  'Results',
  arguments='plot_command:PlotArguments',
  run='plot_command:plot',
)
