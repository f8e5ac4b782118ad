"""Checks of a cluster file against this host: can it listen, and which node of the file is it?"""

from __future__ import annotations

import errno
import ipaddress
import socket

import psutil

from seed_acme import types
from seed_acme.programs.cluster import cluster_file


def check_listens(cluster: cluster_file.Cluster, index: int = 0) -> None:
  """Raises `UserError` if learner host `index` cannot listen, or no other host could reach it."""
  for address in cluster.exchange[index : index + 1]:  # its own; none for a single learner host
    check_port(cluster, 'exchange', address)
  listen = cluster.listen_of(index)
  host, port = cluster_file.split(listen)
  where = f'cluster file {cluster.path}: '
  mend = f'or add "listen": "0.0.0.0:{port}"'
  if host.startswith('['):
    raise types.UserError(
      f'{where}the learner cannot listen on {host} alone: add "listen": '
      f'"0.0.0.0:{port}", which takes IPv6, too'
    )
  name = host
  addresses = _look_up(name, where)
  if (
    not cluster_file.is_ip_address(name)
    and name != 'localhost'
    and all(ipaddress.ip_address(address).is_loopback for _, address in addresses)
  ):
    raise types.UserError(
      f'{where}the name {name} means {addresses[0][1]} on this host (/etc/hosts), where no '
      f'other host can reach it: write its address, {mend}'
    )
  failures = [_listening_failure(family, address, port) for family, address in addresses]
  if None in failures:
    return
  error = failures[0]
  assert error is not None
  if error.errno == errno.EADDRNOTAVAIL:
    raise types.UserError(
      f'{where}{host} is no address of this host: start the learner on the host that has it, {mend}'
    )
  raise types.UserError(
    f'{where}cannot listen on {listen} ({error.strerror}): end what '
    'uses the port, or choose another one in the file, on every host'
  )


def check_port(cluster: cluster_file.Cluster, key: str, address: str) -> None:
  """Raises `UserError` if the port under a key of the file is in use on this host."""
  port = cluster_file.split(address)[1]
  error = _listening_failure(socket.AF_INET, '', port)
  if error is not None:
    raise types.UserError(
      f'cluster file {cluster.path}: cannot listen on port {port} of "{key}" ({error.strerror}): '
      'end what uses the port, or choose another one in the file, on every host'
    )


def _look_up(name: str, where: str) -> list[tuple[int, str]]:
  """Returns (family, address) of each address that the name has on this host."""
  try:
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
  except (OSError, UnicodeError) as error:
    reason = getattr(error, 'strerror', None) or error
    raise types.UserError(
      f'{where}the host {name} is unknown here ({reason}): check its name, or write its address'
    ) from None
  return [(family, str(address[0])) for family, _, _, _, address in found]


def _listening_failure(family: int, address: str, port: int) -> OSError | None:
  with socket.socket(family, socket.SOCK_STREAM) as probe:
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
      probe.bind((address, port))
      probe.listen()
    except OSError as error:
      return error
  return None


def own_learner_index(cluster: cluster_file.Cluster) -> int:
  """Returns which learner host this host is, by its address; `UserError` if that is not unique."""
  number = len(cluster.learners)
  names = _own_names()
  hosts = [cluster_file.split(address)[0].strip('[]').lower() for address in cluster.learners]
  indices = [i for i, host in enumerate(hosts) if host in names]
  if number == 1:
    return 0
  if len(indices) != 1:
    raise types.UserError(
      f'which learner host of {cluster.path} is this? Give --index, 0 ... {number - 1}'
    )
  return indices[0]


def own_index(cluster: cluster_file.Cluster, number: int) -> int:
  """Returns which actor this host is, by the hosts listed under `actors`.

  number: of actors, including the one that plays the evaluation environments. Raises `UserError` if
    that is not unique.
  """
  if number == 1:
    return 0
  if not any(cluster.actors):
    raise types.UserError(f'which actor is this? Give --index, 0 ... {number - 1}')
  names = _own_names()
  indices = [i for i, host in enumerate(cluster.actors) if host.lower() in names]
  if not indices:
    raise types.UserError(
      f'none of the hosts under "actors" in {cluster.path} is this one '
      f'({socket.gethostname()}): give --index, 0 ... {number - 1}'
    )
  if len(indices) > 1:
    several = f'actors {", ".join(map(str, indices))} of {cluster.path} are all on this host'
    raise types.UserError(f'{several}: start each with its --index')
  return indices[0]


def _own_names() -> set[str]:
  addresses = {
    address.address.partition('%')[0].lower()
    for of_interface in psutil.net_if_addrs().values()
    for address in of_interface
  }
  return addresses | {socket.gethostname().lower(), socket.getfqdn().lower()}
