"""One learner host as a process of this machine; the other nodes are started on hosts of their own
(`seed-acme node`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.front_end import launches
from seed_acme.programs.launches import local
from seed_acme.storage import run_directory

if TYPE_CHECKING:
  import launchpad as lp


class Launch(local.Launch):
  """Of the learner host `index` of the cluster file at `path`."""

  def __init__(self, path: str, index: str):
    self.command = (launches.HOSTS, path, index)

  def refuse(self, layout: layout_lib.Layout) -> None:
    """Several replay nodes."""
    launches.refuse_shards_elsewhere(layout)

  def program(
    self, config: config_lib.ExperimentConfig, run: run_directory.RunDirectory
  ) -> lp.Program:
    """That part of it."""
    from seed_acme.programs.cluster import program as cluster_program

    _, path, index = self.command
    cluster = cluster_file.load(path)
    return cluster_program.make_part(config, run, cluster, 'learner', int(index))
