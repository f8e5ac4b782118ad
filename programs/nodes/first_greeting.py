"""A learner on a host without the environments' packages learns of them from its first actor."""

from __future__ import annotations

import contextlib
import threading
from typing import NamedTuple

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.programs.nodes import end_notice
from seed_acme.programs.nodes import shared_settings
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.transport import joining
from seed_acme.transport import sessions

_POLL_S = 0.05


class Greeting(NamedTuple):
  """spec: of the actor's environments. instance: of the server that it has greeted; the one that
  takes its place goes by the same name."""

  spec: types.EnvironmentSpec
  instance: str


def wait_for(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  token: str,
  port: int,
  stop: threading.Event,
) -> Greeting | None:
  """What the first actor says when it connects; None if the learner is stopped first.

  Serves on `port` meanwhile. Actors are told that the server pauses, so they keep their
  environments, and connect again to the learner that takes this server's place.
  """
  layout = layout_lib.Layout.of(config)
  desk = sessions.SessionDesk(
    end_notice.closed_batcher(), None, layout.num_environments, layout.num_training, token
  )
  members = joining.Members(
    shared_settings.by_kind(config), checkpoint.num_resumptions(run_dir.checkpoints)
  )
  transport = end_notice.make_transport(config, layout, desk, port, members)
  transport.start()
  with contextlib.ExitStack() as cleanup:
    cleanup.callback(transport.stop)
    while desk.spec is None and not stop.wait(_POLL_S):
      pass
  return None if desk.spec is None else Greeting(desk.spec, desk.instance)
