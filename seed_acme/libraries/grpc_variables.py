"""Environment variables that gRPC reads, set in every process that imports seed_acme.

They apply to every copy of gRPC in the process: grpcio's, Reverb's, TensorFlow's and courier's.
Imports nothing but the standard library, because `import seed_acme` calls `set_defaults`.
"""

from __future__ import annotations

from collections.abc import Iterable
import os

# By default, gRPC's C++ clients connect even to these through the machine's proxy.
_OWN_HOSTS = ('localhost', '127.0.0.1', '::1')
PAST_PROXY = 'no_grpc_proxy'
# gRPC uses the first of these that is set, but ignores NO_PROXY.
_EXCEPTIONS = (PAST_PROXY, 'no_proxy', 'NO_PROXY')


def set_defaults() -> None:
  """Sets the defaults; must be called before gRPC is loaded."""
  # With open channels, gRPC's fork handlers break child processes such as video encoders and
  # simulators.
  os.environ.setdefault('GRPC_ENABLE_FORK_SUPPORT', '0')
  reach(_OWN_HOSTS)


def reach(hosts: Iterable[str]) -> None:
  """Makes gRPC connect to these hosts without the proxy, in this process and its children.

  Applies to channels that are opened later. Hosts that the user excepts in `no_proxy` are copied,
  because gRPC reads `no_proxy` only if `no_grpc_proxy` is not set.
  """
  given = next((os.environ[name] for name in _EXCEPTIONS if name in os.environ), '')
  known = [host.strip() for host in given.split(',') if host.strip()]
  wanted = dict.fromkeys([*known, *(host.strip('[]') for host in hosts)])
  if PAST_PROXY not in os.environ or len(wanted) > len(known):
    os.environ[PAST_PROXY] = ','.join(wanted)


def reach_addresses(addresses: Iterable[str]) -> None:
  """Calls `reach` for the hosts of addresses `host:port`."""
  reach(address.rpartition(':')[0] for address in addresses)
