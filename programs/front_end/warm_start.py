"""The run that another starts from, if it is given as `runs/latest`.

This link points to each new run as soon as it begins, so it must be followed before.
"""

from __future__ import annotations

import dataclasses
import pathlib

from seed_acme import config as config_lib
from seed_acme.storage import checkpoint_choice
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config


def fixed(
  config: config_lib.ExperimentConfig, run: run_directory.RunDirectory | None = None
) -> config_lib.ExperimentConfig:
  """Returns the configuration with a run instead of the link in `initial_checkpoint`.

  run: the folder of the run; if it holds one, the same command is to resume it, so the checkpoint
    that it started from is kept. None = the run is new.
  """
  name = config.initial_checkpoint
  start = behind_latest(name)
  if not start:
    return config
  if run is not None and run.holds_run():
    saved = saved_config.load(run.config, saved_config.trust_in(config), only_types=True)
    if saved.initial_checkpoint and _suffix(saved.initial_checkpoint) == _suffix(name):
      start = saved.initial_checkpoint
  return dataclasses.replace(config, initial_checkpoint=start)


def behind_latest(name: str) -> str:
  """Returns what an `initial_checkpoint` names, with the run that `runs/latest` is now instead of
  the link; '' if it does not name the link."""
  place, _ = checkpoint_choice.split(name)
  latest = pathlib.Path(run_directory.ROOT, run_directory.LATEST)
  path = pathlib.Path(place).absolute()
  names_link = any(
    each.name == latest.name and each.parent.resolve() == latest.parent.resolve()
    for each in (path, *path.parents)
  )
  if not name or not latest.is_symlink() or not names_link:
    return ''
  return f'{path.resolve()}{_suffix(name)}'


def _suffix(name: str) -> str:
  """Returns `@best` of `RUN@best`; '' if there is none."""
  place, _ = checkpoint_choice.split(name)
  return name[len(place) :]
