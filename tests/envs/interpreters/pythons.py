"""Programs that stand for interpreters."""

import json
import sys

from seed_acme.envs.interpreters import interpreter


def script(folder, text, name='python'):
  """The path of a shell script."""
  path = folder / name
  path.write_text(f'#!/bin/sh\n{text}\n')
  path.chmod(0o755)
  return str(path)


def this_one(folder):
  """This very Python under a path of another program, which makes it count as another."""
  return script(folder, f'exec {sys.executable} "$@"')


def saying(folder, version, missing=(), name='python'):
  """One that answers the question for its version, and does no more."""
  answer = json.dumps({'version': version, 'missing': list(missing)})
  return script(folder, f"echo; echo '{interpreter.ANSWER}{answer}'", name)


def greeting(folder):
  """This very Python, which prints before and after whatever it runs."""
  return script(folder, f'echo Welcome!; {sys.executable} "$@"; code=$?; echo Bye.; exit $code')
