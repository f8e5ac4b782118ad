"""The command of this folder, for the command line."""

from seed_acme.programs.command_line import command

ACTOR_ENV = command.Command(
  'actor-env',
  'make an environment of another Python, for actors',
  'This installation',
  arguments='command:ActorEnvArguments',
  run='command:make',
  runs_beside_actors=True,
)
