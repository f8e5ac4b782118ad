"""Runs several commands of `seed-acme` in one process, because each of them loads TensorFlow."""

import json
import re
import subprocess
import sys

_PROGRAM = """
import json, sys
from seed_acme.programs import cli
for command in json.loads(sys.argv[1]):
  code = cli.main(command)
  for stream in (sys.stdout, sys.stderr):
    print(f'exit code {code}', file=stream, flush=True)
"""


def run(folder, *commands):
  """Returns the exit code, standard output and standard error of each command."""
  result = subprocess.run(
    [sys.executable, '-c', _PROGRAM, json.dumps(commands)],
    cwd=folder,
    capture_output=True,
    text=True,
    check=False,
  )
  assert result.returncode == 0, result.stderr
  out, err = (
    re.split(r'^exit code (\d+)\n', text, flags=re.MULTILINE)
    for text in (result.stdout, result.stderr)
  )
  assert out[1::2] == err[1::2] and out[-1] == err[-1] == ''
  return list(zip(map(int, out[1::2]), out[::2], err[::2]))
