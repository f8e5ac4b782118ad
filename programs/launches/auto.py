"""`--launch=auto`: one of the others, by a rule and a short measurement."""

from __future__ import annotations

from collections.abc import Callable

from seed_acme import config as config_lib
from seed_acme.programs.front_end import launch_choice
from seed_acme.programs.front_end import launches
from seed_acme.programs.launches import here
from seed_acme.storage import run_directory


class Launch(here.Here):
  """Only chooses."""

  command = (launches.AUTO,)

  def chosen(
    self,
    config: config_lib.ExperimentConfig,
    run: run_directory.RunDirectory,
    show: Callable[[str], None],
  ) -> here.Here:
    """That of this machine."""
    return launches.load(launch_choice.choose(config, run, show))
