"""`--launch=auto`: chooses one of the other launches by a rule and a short measurement."""

from __future__ import annotations

from collections.abc import Callable

from seed_acme.programs.front_end import launch_choice
from seed_acme.programs.front_end import launches
from seed_acme.programs.launches import here


class Launch(here.Here):
  """A launch that only chooses another one."""

  def chosen(self, run: launches.Run, show: Callable[[str], None]) -> tuple[str, ...]:
    """Returns the command of the launch that suits this machine."""
    assert run.folder is not None
    return (launch_choice.choose(run.config, run.folder, show),)
