"""The addresses between learner hosts on Vertex AI. Part of the images, so it needs no xmanager."""

from __future__ import annotations

import json
import os

import launchpad as lp

_VARIABLE = 'CLUSTER_SPEC'  # set by Vertex AI; TF_CONFIG has the same contents and is not read


class NextPort(lp.address.AbstractAddressBuilder):
  """The port after a replica's own: Vertex AI names only one, which serves the actors."""

  def __init__(self, pool: str, replica: int):
    self._pool = pool
    self._replica = replica

  def build(self) -> str:
    """Returns the address, on the host that needs it, from Vertex AI's variable."""
    cluster = json.loads(os.environ[_VARIABLE])['cluster']
    host, _, port = cluster[self._pool][self._replica].rpartition(':')
    return f'{host}:{int(port) + 1}'
