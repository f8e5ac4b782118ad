"""The command of this folder, for the command line."""

from seed_acme.programs.command_line import command

BENCH = command.Command(
  'bench',
  'measure throughput and account for it',
  'Measuring',
  arguments='command:BenchArguments',
  run='command:bench',
  config='bench_catch_mlp',
)
