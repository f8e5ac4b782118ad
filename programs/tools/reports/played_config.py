"""The configuration with which a saved run is played."""

from __future__ import annotations

import dataclasses

from seed_acme import config as config_lib
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from seed_acme.storage import trust as trust_lib


def load(
  run: run_directory.RunDirectory, trust: bool = False, python: str = '', plays: bool = True
) -> config_lib.ExperimentConfig:
  """Returns the configuration of a run.

  trust: run what the run folder names, code outside seed_acme and another Python; `UserError`
    otherwise.
  python: replaces the run's `actor.python`; '' = keep it. plays: whether environments are made,
    under that Python; without them it is only started for a specification that is not saved.
  """
  is_harmless = python or (not plays and run.specification.is_file())
  named = frozenset({'actor.python'} if is_harmless else ())
  config = saved_config.load(run.config, trust_lib.Trust(everything=trust, fields=named))
  if not python:
    return config
  return dataclasses.replace(config, actor=dataclasses.replace(config.actor, python=python))
