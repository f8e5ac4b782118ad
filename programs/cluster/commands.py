"""The command of this folder, for the command line."""

from seed_acme.programs.command_line import command

NODE = command.Command(
  'node',
  'run one node of a run on this host, the others on other hosts',
  'Training',
  arguments='node_command:NodeArguments',
  run='node_command:node',
  config='catch_vtrace',
  needs_config='must be given, the same on every host',
  runs_beside_actors=True,
)
