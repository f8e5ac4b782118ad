"""A Reverb server with an agent's tables, and clients of it."""
from __future__ import annotations

import portpicker
import reverb

from seed_acme import types
from seed_acme.agents import base
from seed_acme.replay import tables


class ReplayServer:
  """Serves tables until `stop`; within this process Reverb bypasses gRPC by itself."""

  def __init__(self, spec: base.ReplaySpec, queue_size: int, unrolls_per_item: int,
               unroll_example: types.Unroll, port: int):
    """port 0 picks a free one; raises `types.UserError` if the port is taken."""
    if port and not portpicker.is_port_free(port):
      raise types.UserError(f'cannot listen on port {port}: it is in use; choose another '
                            '--config.replay.port, or 0 for any free one')
    self._server = reverb.Server(
        tables.make_tables(spec, queue_size, unrolls_per_item, unroll_example),
        port=port or None)
    self.address = f'localhost:{self._server.port}'

  def stop(self) -> None:
    """Ends the service. It wakes nobody within this process, who waits at the table itself."""
    self._server.stop()
