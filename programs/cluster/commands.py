"""The commands of this folder, for the command line."""

from seed_acme.programs.command_line import command

NODE = command.Command(
  'node',
  'run one node of a run on this host, the others on other hosts',
  'Training',
  arguments='node_command:NodeArguments',
  run='node_command:node',
  config='catch_vtrace',
  runs_beside_actors=True,
)
MANIFEST = command.Command(
  'manifest',
  'write the Kubernetes objects that start all nodes of a run',
  'Training',
  arguments='manifest_command:ManifestArguments',
  run='manifest_command:manifest',
  config='catch_vtrace',
)
