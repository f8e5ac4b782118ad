"""Parts shared by the loggers of tracking servers: ids in the run folder, the end, extras."""

from __future__ import annotations

import os
import pathlib
import re
from typing import Any

from seed_acme import types
from seed_acme.checks import extras
from seed_acme.files import local
from seed_acme.storage import run_directory

PROJECT = 'seed_acme'  # unless an environment variable names another
CLOSE_S = 30.0  # time limit for the last rows; nodes have 45 s to end


def import_package(name: str) -> Any:
  """Imports the client library; if it is missing, `UserError` names the extra of the same name."""
  return extras.import_module(name, name, f'learner.logger={name}')


def load(path: pathlib.Path) -> dict[str, Any]:
  """Returns what an earlier start saved about the server's run; {} at the first start."""
  if not path.exists():
    return {}
  record = local.read_json(path)
  if not isinstance(record, dict) or not isinstance(record.get('id'), str):
    raise types.UserError(
      f'{path} names no run (it has no id): delete it, and a new run begins on the server'
    )
  return record


def without_password(text: str) -> str:
  """Returns the text without what URLs in it have before `@`, for messages and files."""
  return re.sub(r'://[^/\s]*@', '://', text)


def run_name(config_name: str, run_dir: pathlib.Path) -> str:
  """Returns the run's display name: the configuration and the run folder."""
  return f'{config_name} {os.path.basename(run_dir)}'


def status(run_dir: pathlib.Path) -> str:
  """Returns the run's status at its end: `finished`, `stopped`, or anything else for a failure."""
  path = run_directory.RunDirectory(run_dir).status
  return str(local.read_json(path).get('status')) if path.exists() else ''
