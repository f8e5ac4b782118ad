"""The configuration with which a saved run is played."""

from __future__ import annotations

import dataclasses

from seed_acme import config as config_lib
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from seed_acme.storage import trust as trust_lib


def load(
  run: run_directory.RunDirectory, trust: bool = False, python: str = ''
) -> config_lib.ExperimentConfig:
  """Returns the configuration of a run.

  trust: run what the run folder names, code outside seed_acme and another Python; `UserError`
    otherwise.
  python: replaces the run's `actor.python`; '' = keep it.
  """
  named = frozenset({'actor.python'} if python else ())
  config = saved_config.load(run.config, trust_lib.Trust(everything=trust, fields=named))
  if not python:
    return config
  return dataclasses.replace(config, actor=dataclasses.replace(config.actor, python=python))
