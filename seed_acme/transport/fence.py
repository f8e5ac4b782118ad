"""A packet filter for ports without authentication: the kernel drops packets of other machines.

Reverb and TensorFlow's collective server listen on every interface, which cannot be configured.
A socket filter (classic BPF, which needs no privileges) on their listening sockets admits packets
that arrive on the loopback interface or come from a list of addresses. To everybody else the port
looks like one behind a firewall: a connection is never answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import ctypes
import dataclasses
import ipaddress
import os
import socket
import struct
import threading
import time
from typing import Union

RUNS_CODE, ENDS_RUN = 'can run code for whoever reaches it', 'can end this run'

_LOOK_UP_S = 10.0  # between two look-ups of the names' addresses
_SETTLE_S = 0.02  # until a connection that the server has just accepted has a descriptor
_SETTLED_S = 5.0  # limit of the search for connections from before the filter

# Linux: asm-generic/socket.h, linux/filter.h, linux/tcp.h.
_SO_ATTACH_FILTER = 26
_LOAD_WORD, _LOAD_BYTE, _SHIFT_RIGHT = 0x20, 0x30, 0x74  # BPF_LD | BPF_W, BPF_B; BPF_RSH
_JUMP, _JUMP_IF_EQUAL, _RETURN = 0x05, 0x15, 0x06
_INTERFACE = 0xFFFFF000 + 8  # SKF_AD_OFF + SKF_AD_IFINDEX
_NETWORK_HEADER = 0xFFF00000  # SKF_NET_OFF
_LOOPBACK_INTERFACE = 1  # LOOPBACK_IFINDEX, the same in every network namespace
_SOURCE_V4, _SOURCE_V6 = _NETWORK_HEADER + 12, _NETWORK_HEADER + 8
_DROP, _ADMIT = (_RETURN, 0, 0, 0), (_RETURN, 0, 0, 0xFFFFFFFF)
_DESCRIPTORS = '/proc/self/fd'
_BACKLOG = slice(24, 28)  # tcpi_unacked in struct tcp_info: connections not yet accepted

_Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
_Instruction = tuple[int, int, int, int]


@dataclasses.dataclass(frozen=True)
class Fence:
  """The hosts that may connect to this node's ports without authentication.

  hosts: names or addresses that are admitted besides this machine; None = no filter.
  tell: called with a message for the user if the kernel rejects the filter.
  """

  hosts: tuple[str, ...] | None = ()
  tell: Callable[[str], None] = print

  def look_up(self) -> frozenset[_Address]:
    """Returns the addresses of the hosts, and tells of those that are unknown here.

    Must be called before the server listens: a name server may take long to answer, and the port
    would be open meanwhile.
    """
    found: set[_Address] = set()
    for host in self.hosts or ():
      of_host = _resolved(host)
      found |= of_host
      if not of_host:
        self.tell(
          f'the host {host} is unknown here, so it cannot connect until its name can be resolved: '
          'check the name in the cluster file, or write its address'
        )
    return frozenset(found)

  def put_around(self, port: int, danger: str, addresses: frozenset[_Address]) -> None:
    """Filters all sockets of this process that listen on `port`; the server must listen already.

    danger: what an unfiltered port makes possible, for the message to the user. addresses: from
      `look_up`.

    Shuts down existing connections of hosts that are not admitted. A thread looks up names again
    every 10 s.
    """
    if self.hosts is None:
      return
    try:
      if not _attach(port, addresses):
        raise OSError(f'no socket that listens there was found in {_DESCRIPTORS}')
      _shut_strangers(port, addresses)
    except OSError as error:
      self.tell(
        f'port {port} {danger}: it cannot be closed to other machines '
        f'({error.strerror or error}); close it in a firewall'
      )
      return
    if not all(_is_address(host) for host in self.hosts):
      threading.Thread(
        target=_follow_names, args=(port, self.hosts, addresses), name='fence', daemon=True
      ).start()


LOOPBACK = Fence()


def _follow_names(port: int, hosts: Sequence[str], addresses: frozenset[_Address]) -> None:
  """Renews the filter when addresses of the names change, because a host may restart with another
  address. Existing connections are kept."""
  while True:
    time.sleep(_LOOK_UP_S)
    found = _addresses(hosts, addresses)
    if found == addresses:
      continue
    with contextlib.suppress(OSError):  # keep the old filter until the next look-up
      if not _attach(port, found):
        return
      addresses = found


def _addresses(hosts: Iterable[str], before: frozenset[_Address]) -> frozenset[_Address]:
  """Returns the addresses of all hosts, and those of `before` if a name cannot be resolved now."""
  found: set[_Address] = set()
  for host in hosts:
    found |= _resolved(host) or before
  return frozenset(found)


def _resolved(host: str) -> set[_Address]:
  """Returns the addresses of a host; empty if its name cannot be resolved."""
  try:
    answers = socket.getaddrinfo(host.strip('[]'), None, type=socket.SOCK_STREAM)
  except (OSError, UnicodeError):
    return set()
  return {_parsed(str(answer[4][0])) for answer in answers}


def _parsed(address: str) -> _Address:
  """Parses an address; converts an IPv4 address that an IPv6 socket reports to plain IPv4."""
  parsed = ipaddress.ip_address(address.partition('%')[0])
  return getattr(parsed, 'ipv4_mapped', None) or parsed


def _is_address(host: str) -> bool:
  try:
    ipaddress.ip_address(host.strip('[]'))
  except ValueError:
    return False
  return True


def _attach(port: int, addresses: frozenset[_Address]) -> int:
  """Attaches the filter to every socket that listens on `port`; returns their number."""
  program = _program(sorted(addresses, key=str))
  packed = b''.join(struct.pack('=HBBI', *instruction) for instruction in program)
  buffer = ctypes.create_string_buffer(packed)
  number = struct.pack('HL', len(program), ctypes.addressof(buffer))
  sockets = 0
  for one in _sockets(port):
    if _listens(one):
      one.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, number)
      sockets += 1
  return sockets


def _program(addresses: Sequence[_Address]) -> list[_Instruction]:
  """Returns the filter program. Each address has its own return instruction, because conditional
  jumps reach only 255 instructions."""
  v4 = [part for address in addresses if address.version == 4 for part in _if_from_v4(address)]
  v6 = [part for address in addresses if address.version == 6 for part in _if_from_v6(address)]
  start = [(_LOAD_WORD, 0, 0, _INTERFACE), (_JUMP_IF_EQUAL, 0, 1, _LOOPBACK_INTERFACE), _ADMIT]
  if not addresses:
    return [*start, _DROP]
  return [
    *start,
    (_LOAD_BYTE, 0, 0, _NETWORK_HEADER),  # the version of IP is in its upper half
    (_SHIFT_RIGHT, 0, 0, 4),
    (_JUMP_IF_EQUAL, 1, 0, 4),
    (_JUMP, 0, 0, len(v4) + 2),
    (_LOAD_WORD, 0, 0, _SOURCE_V4),
    *v4,
    _DROP,
    *v6,
    _DROP,
  ]


def _if_from_v4(address: _Address) -> list[_Instruction]:
  return [(_JUMP_IF_EQUAL, 0, 1, int(address)), _ADMIT]


def _if_from_v6(address: _Address) -> list[_Instruction]:
  words = struct.unpack('>4I', address.packed)
  made: list[_Instruction] = []
  for i, word in enumerate(words):
    left = 2 * (len(words) - i - 1) + 1  # instructions of this address that a difference skips
    made += [(_LOAD_WORD, 0, 0, _SOURCE_V6 + 4 * i), (_JUMP_IF_EQUAL, 0, left, word)]
  return [*made, _ADMIT]


def _shut_strangers(port: int, addresses: frozenset[_Address]) -> None:
  """Shuts down connections of other hosts from before the filter, which does not apply to them.
  New ones are impossible, so this ends when the server has accepted all pending connections."""
  end_s = time.monotonic() + _SETTLED_S
  has_settled = False
  while not has_settled and time.monotonic() < end_s:
    has_settled = not any(_num_unaccepted(one) for one in _sockets(port) if _listens(one))
    time.sleep(_SETTLE_S)  # a connection leaves the queue just before it has a descriptor
    for one in _sockets(port):
      if not _listens(one) and not _is_admitted(one, addresses):
        with contextlib.suppress(OSError):  # closed meanwhile
          one.shutdown(socket.SHUT_RDWR)


def _is_admitted(connection: socket.socket, addresses: frozenset[_Address]) -> bool:
  try:
    names = connection.getpeername(), connection.getsockname()
  except OSError:  # not connected (any more)
    return True
  peer, own = (_parsed(str(name[0])) for name in names)
  return _is_this_machine(peer, own) or peer in addresses


def _is_this_machine(peer: _Address, own: _Address) -> bool:
  """Whether a connection comes from this machine: its peer has a loopback address or the same
  address as this side. own: this side's address."""
  return peer.is_loopback or peer == own


def _num_unaccepted(listener: socket.socket) -> int:
  information = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
  return int(struct.unpack('I', information[_BACKLOG])[0])


def _listens(one: socket.socket) -> bool:
  return bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _sockets(port: int) -> Iterator[socket.socket]:
  """Yields duplicates of this process's TCP sockets with the local port `port`; each stays open
  until the next one is requested."""
  for entry in os.listdir(_DESCRIPTORS):
    try:
      if not os.readlink(f'{_DESCRIPTORS}/{entry}').startswith('socket:'):
        continue
      duplicate = os.dup(int(entry))
    except OSError:  # closed meanwhile
      continue
    try:
      one = socket.socket(fileno=duplicate)
    except OSError:  # closed meanwhile, and its number given to something else
      os.close(duplicate)
      continue
    with one:
      is_tcp = one.family in (socket.AF_INET, socket.AF_INET6) and one.type == socket.SOCK_STREAM
      if is_tcp and one.getsockname()[1] == port:
        yield one
