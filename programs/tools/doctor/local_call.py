"""A check that a Reverb server on this machine can be called, as a run calls its replay."""

from __future__ import annotations

import os
from typing import NamedTuple

NO_ANSWER_EXIT = 3  # exit code of CODE
_TIMEOUT_S = 20  # to a server in the same process
_PROXIES = ('grpc_proxy', 'https_proxy', 'http_proxy')  # gRPC uses the first that is set
# `import seed_acme` keeps gRPC from using the machine's proxy for local addresses.
CODE = f"""
import tempfile
import seed_acme, reverb
with tempfile.TemporaryDirectory() as folder:  # Reverb would make one and leave it
  checkpointer = reverb.checkpointers.DefaultCheckpointer(folder)
  server = reverb.Server([reverb.Table.queue("doctor", 1)], checkpointer=checkpointer)
  try:
    reverb.Client(f"localhost:{{server.port}}").server_info(timeout={_TIMEOUT_S})
  except (reverb.ReverbError, RuntimeError):
    raise SystemExit({NO_ANSWER_EXIT})
print("imports, and a server on localhost answers")
"""


class Unreachable(NamedTuple):
  """The reason why a local server did not answer, and the fix."""

  reason: str
  fix: str


def why_unreachable() -> Unreachable:
  """Explains an exit of CODE with NO_ANSWER_EXIT."""
  reason = f'a server on localhost did not answer within {_TIMEOUT_S} s'
  # Only names are shown, because the values may hold a password.
  proxies = [name for name in _PROXIES if os.environ.get(name)]
  if not proxies:
    return Unreachable(
      reason, 'allow local TCP connections (firewall, sandbox), and see what /etc/hosts calls so'
    )
  return Unreachable(
    f'{reason}, and {", ".join(proxies)} is set',
    'add localhost to no_grpc_proxy: gRPC sends even localhost through a proxy',
  )
