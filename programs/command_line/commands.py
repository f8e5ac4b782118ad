"""The command of this folder, for the command line."""

from seed_acme.programs.command_line import command

COMPLETION = command.Command(
  'completion',
  'print the script by which bash or zsh completes seed-acme',
  'This installation',
  arguments='completion:CompletionArguments',
  run='completion:complete',
  runs_beside_actors=True,
)
