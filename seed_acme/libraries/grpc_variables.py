"""The environment variables that gRPC reads, in every process that imports seed_acme.

They count for every gRPC in the process: ours, Reverb's, TensorFlow's and courier's. Imports
nothing but the standard library, because `import seed_acme` calls `set_defaults`.
"""

from __future__ import annotations

from collections.abc import Iterable
import os

# gRPC's C++ clients send even these through the proxy of the machine.
_OWN_HOSTS = ('localhost', '127.0.0.1', '::1')
PAST_PROXY = 'no_grpc_proxy'
# gRPC takes the first of these that is set, and does not know the last.
_EXCEPTIONS = (PAST_PROXY, 'no_proxy', 'NO_PROXY')


def set_defaults() -> None:
  """Called before gRPC is loaded."""
  # Where gRPC has channels its fork handlers break the child: video encoders, simulators.
  os.environ.setdefault('GRPC_ENABLE_FORK_SUPPORT', '0')
  reach(_OWN_HOSTS)


def reach(hosts: Iterable[str]) -> None:
  """Has gRPC connect to these hosts past the proxy, in this process and those that it starts.

  Counts for channels that are opened later. What the user has excepted stays excepted, because
  gRPC looks at `no_proxy` only where `no_grpc_proxy` is not set.
  """
  given = next((os.environ[name] for name in _EXCEPTIONS if name in os.environ), '')
  known = [host.strip() for host in given.split(',') if host.strip()]
  wanted = dict.fromkeys([*known, *(host.strip('[]') for host in hosts)])
  if PAST_PROXY not in os.environ or len(wanted) > len(known):
    os.environ[PAST_PROXY] = ','.join(wanted)


def reach_addresses(addresses: Iterable[str]) -> None:
  """As `reach`, for hosts that are given as `host:port`."""
  reach(address.rpartition(':')[0] for address in addresses)
