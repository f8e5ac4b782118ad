"""The Reverb server that a user means, and a check that something listens there.

Imports neither Reverb nor TensorFlow, which take seconds, so that wrong input is answered first.
"""

from __future__ import annotations

from collections.abc import Mapping
import queue
import socket
import threading
import time

from seed_acme import types
from seed_acme.checks import addresses as addresses_lib
from seed_acme.files import local
from seed_acme.storage import opening
from seed_acme.storage import run_directory

_NO_REVERB = 'something else answers there'
# RFC 9113, sections 3.4 and 4.1: a preface, then a SETTINGS frame, here an empty one.
_SETTINGS, _FRAME_TYPE, _FRAME_HEADER = 4, 3, 9
_GREETING = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + bytes([0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0])


def find(server: str, run_dir: str) -> tuple[str, ...]:
  """Returns the addresses that `--server` or `--run_dir` names; raises `UserError`."""
  return parse_all(server) if server else of_run(run_dir)


def parse_all(text: str) -> tuple[str, ...]:
  """Parses one server, or the shards of a replay separated by commas; raises `UserError`."""
  addresses = tuple(text.split(','))
  for address in addresses:
    addresses_lib.parse(address)
  if len(set(addresses)) < len(addresses):
    raise types.UserError(f'{text!r} names a server twice: name each shard once')
  return addresses


def of_run(path: str) -> tuple[str, ...]:
  """Returns the addresses of a live run's replay shards; raises `UserError` if the run is over."""
  run = opening.open_run(path)
  where = f'the run {path}'
  if not run.addresses.is_file():
    raise types.UserError(
      f'{where} has no addresses.json: its servers have not started yet; wait, '
      'or give --server=HOST:PORT'
    )
  found = local.read_json(run.addresses)
  if not isinstance(found, dict):
    found = {}
  earlier_ends = found.get('earlier_ends')
  _check_lives(run, where, earlier_ends if isinstance(earlier_ends, dict) else {})
  replay = found.get('replay')
  addresses = replay if isinstance(replay, list) else [replay]
  if not addresses or not all(isinstance(address, str) for address in addresses):
    raise types.UserError(f'{run.addresses} names no replay server: give --server=HOST:PORT')
  return tuple(addresses)


def _check_lives(
  run: run_directory.RunDirectory, where: str, earlier_ends: Mapping[str, str]
) -> None:
  """Raises `UserError` if the run has ended, as its records show.

  Its port proves nothing, because another program may listen on it by now.
  """
  for name, digest in run.ends().items():
    if digest != earlier_ends.get(name):
      raise types.UserError(
        f'{where} has ended ({name} was written after addresses.json), and '
        'its replay with it: resume it, or give --server=HOST:PORT'
      )


def check_answers(address: str, timeout_s: float) -> None:
  """Connects and waits for an HTTP/2 greeting; raises `UserError` if none comes in time."""
  host, port = addresses_lib.parse(address)
  outcome: queue.Queue[str] = queue.Queue()
  give_up = time.monotonic() + timeout_s

  def connect() -> None:  # in a thread, because name look-ups have no time-out
    try:
      with socket.create_connection((host, port), timeout_s) as connection:
        connection.settimeout(max(0.1, give_up - time.monotonic()))
        outcome.put('' if _speaks_grpc(connection) else _NO_REVERB)
    except TimeoutError:
      outcome.put(f'no answer within {timeout_s:g} s')
    except (OSError, UnicodeError) as error:
      outcome.put(getattr(error, 'strerror', None) or str(error))

  threading.Thread(target=connect, name='probe', daemon=True).start()
  try:
    reason = outcome.get(timeout=timeout_s + 0.1)
  except queue.Empty:
    reason = f'no answer within {timeout_s:g} s'
  if reason:
    raise types.UserError(
      f'no Reverb server at {address} ({reason}): check the address, and that '
      'the program behind it still runs'
    )


def _speaks_grpc(connection: socket.socket) -> bool:
  """Whether the other side greets as an HTTP/2 server, as gRPC's do."""
  connection.sendall(_GREETING)
  answer = b''
  while len(answer) < _FRAME_HEADER:
    received = connection.recv(_FRAME_HEADER - len(answer))
    if not received:
      return False
    answer += received
  return answer[_FRAME_TYPE] == _SETTINGS
