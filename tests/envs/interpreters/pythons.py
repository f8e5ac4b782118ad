"""Stand-ins for interpreters."""

import json
import sys

from seed_acme.envs.interpreters import interpreter


def script(folder, text, name='python'):
  """Writes a shell script and returns its path."""
  path = folder / name
  path.write_text(f'#!/bin/sh\n{text}\n')
  path.chmod(0o755)
  return str(path)


def this_one(folder):
  """Returns another path of this Python, which makes it count as another interpreter."""
  return script(folder, f'exec {sys.executable} "$@"')


def saying(folder, version, missing=(), name='python'):
  """Returns a stand-in that answers the question for its version, and does nothing else."""
  answer = json.dumps({'version': version, 'missing': list(missing)})
  return script(folder, f"echo; echo '{interpreter.ANSWER}{answer}'", name)


def greeting(folder):
  """Returns a stand-in for this Python that prints text before and after its work."""
  return script(folder, f'echo Welcome!; {sys.executable} "$@"; code=$?; echo Bye.; exit $code')
