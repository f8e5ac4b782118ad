"""`--launch=auto`: one of the others, by a rule and a short measurement."""

from __future__ import annotations

from collections.abc import Callable

from seed_acme.programs.front_end import launch_choice
from seed_acme.programs.front_end import launches
from seed_acme.programs.launches import here


class Launch(here.Here):
  """Only chooses."""

  def chosen(self, run: launches.Run, show: Callable[[str], None]) -> tuple[str, ...]:
    """That of this machine."""
    assert run.folder is not None
    return (launch_choice.choose(run.config, run.folder, show),)
