"""The token by which a server recognises its callers.

Processes started by one program share a token automatically: the first one that imports courier
draws it and puts it into its environment, which child processes inherit. On several hosts, start
all processes with the same `COURIER_TOKEN`.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import contextvars
import hmac
import os
import secrets

TOKEN_VARIABLE = 'COURIER_TOKEN'
HOST_VARIABLE = 'COURIER_HOST'
_HEADER = 'courier-token'
_BYTES = 16

_token: contextvars.ContextVar[str | None] = contextvars.ContextVar('courier_token', default=None)

os.environ.setdefault(TOKEN_VARIABLE, secrets.token_hex(_BYTES))


@contextlib.contextmanager
def credentials(token: str) -> Iterator[None]:
  """Makes new clients and servers within the context use this token, not the environment's."""
  previous = _token.set(_checked(token, 'the token'))
  try:
    yield
  finally:
    _token.reset(previous)


def metadata() -> tuple[tuple[str, str], ...]:
  """Returns the metadata that a client sends with every call."""
  return ((_HEADER, current()),)


def current() -> str:
  """Returns the token for clients and servers that are made now."""
  return _token.get() or _checked(os.environ.get(TOKEN_VARIABLE, ''), TOKEN_VARIABLE)


def _checked(token: str, name: str) -> str:
  if not token:
    raise ValueError(f'{name} is empty: a server without a token would answer everybody')
  if not (token.isascii() and token.isprintable()):  # it is sent in a header
    raise ValueError(f'{name} must consist of printable ASCII characters')
  return token


def admits(token: str, metadata_of_call: tuple[tuple[str, str | bytes], ...]) -> bool:
  """Whether the metadata of a call hold the server's token."""
  given = dict(metadata_of_call).get(_HEADER, '')
  given = given.encode() if isinstance(given, str) else given
  return hmac.compare_digest(given, token.encode())


def host() -> str:
  """Returns where a server listens, by default `localhost` with both of its addresses."""
  return os.environ.get(HOST_VARIABLE) or 'localhost'
