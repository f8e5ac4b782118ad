"""The command of this folder, for the command line."""

from seed_acme.programs.command_line import command

MANIFEST = command.Command(
  'manifest',
  'write the Kubernetes objects that start all nodes of a run',
  'Training',
  arguments='command:ManifestArguments',
  run='command:manifest',
  config='catch_vtrace',
  needs_config='must be given',
)
