"""Where learner hosts on Vertex AI reach each other. In the images, so without xmanager."""

from __future__ import annotations

import json
import os

import launchpad as lp

_VARIABLE = 'CLUSTER_SPEC'  # that of Vertex AI; TF_CONFIG says the same and is never read


class NextPort(lp.address.AbstractAddressBuilder):
  """The port after that of a replica: of each, Vertex AI names one only, which serves actors."""

  def __init__(self, pool: str, replica: int):
    self._pool = pool
    self._replica = replica

  def build(self) -> str:
    """On the host that asks, from what Vertex AI says there."""
    cluster = json.loads(os.environ[_VARIABLE])['cluster']
    host, _, port = cluster[self._pool][self._replica].rpartition(':')
    return f'{host}:{int(port) + 1}'
