"""Addresses as users write them."""

from __future__ import annotations

import ipaddress
import re

from seed_acme import types

_MAX_PORT = 65535


def parse(text: str) -> tuple[str, int]:
  """`host:port` or `[IPv6]:port`; raises `UserError`."""
  match = re.fullmatch(
    r'(\[(?P<v6>[^\[\]]+)\]|(?P<name>[A-Za-z0-9._-]+)):(?P<port>[0-9]{1,5})', text
  )
  if match is None or not 1 <= int(match['port']) <= _MAX_PORT:
    raise types.UserError(
      f'{text!r} is no HOST:PORT: write it as localhost:8000 or [::1]:8000, '
      f'with a port from 1 to {_MAX_PORT}'
    )
  if match['v6'] is not None:
    try:
      ipaddress.IPv6Address(match['v6'])
    except ValueError:
      raise types.UserError(
        f'{match["v6"]!r} in brackets is no IPv6 address: write [::1]:8000'
      ) from None
  return match['v6'] or match['name'], int(match['port'])
