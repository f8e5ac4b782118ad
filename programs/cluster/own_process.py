"""A node of a cluster in this process, without Launchpad, which actors' installations lack."""

from __future__ import annotations

from collections.abc import Callable
import pathlib
import shutil
import threading
from typing import Any

from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.cluster import membership
from seed_acme.programs.nodes import lives
from seed_acme.programs.nodes import node as node_lib
from seed_acme.programs.system import leftovers
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.storage import run_directory


class Life(lives.OnOwnHost):
  """A node's life that ends with Ctrl-C, SIGTERM or SIGHUP; a second one kills the process tree."""

  def __init__(self, cluster: cluster_file.Cluster):
    super().__init__(threading.Event(), cluster.admitted())
    self._signal: int | None = None
    self._error: Exception | None = None
    self._folder: pathlib.Path | None = None  # the node's, temporary
    signals.answer(self._set)

  def _set(self, number: int) -> None:
    if self._signal is not None:
      if self._folder is not None:
        shutil.rmtree(self._folder, ignore_errors=True)
      leftovers.leave(128 + self._signal)
    self._signal = number
    signals.set_event(self.stop)

  def end_after(self, wait: Callable[[], None]) -> None:
    """Also ends the node when `wait`, which runs in a thread of its own, returns or raises."""

    def wait_and_end() -> None:
      try:
        wait()
      except Exception as error:  # raised again by `lived`
        self._error = error
      self.stop.set()

    threading.Thread(target=wait_and_end, name='members', daemon=True).start()

  def lived(
    self, sections: Any, links: node_lib.Links[str], folder: run_directory.RunDirectory
  ) -> int:
    """Runs the node; returns the exit code, with the reason of a failure on standard error.

    folder: temporary; deleted if a second signal ends the process.
    """
    self._folder = folder.path
    node = node_lib.Node(sections, links, folder, self)
    try:
      getattr(self, sections.kind)(node)
      if self._error is not None and self._signal is None:
        with processes.reported_failures(folder, node.name, node.name):
          raise self._error
    except SystemExit as exit_:
      failure = processes.read_failure(folder)
      membership.say('error', failure['message'] if failure else str(exit_))
      return int(exit_.code or 0)
    if self._signal is not None:
      return 128 + self._signal
    membership.say(node.name, 'the run is over')
    return 0
