"""Ports for servers that a test starts later, or restarts."""

from __future__ import annotations

import contextlib
import random
import socket

# Linux uses ports from 32768 on for outgoing connections, which could take a free port before its
# server has started.
_RANGE = range(10_000, 32_000)


def unused(number: int = 1) -> int:
  """Returns the first of `number` consecutive ports at which nothing listens."""
  while True:
    first = random.SystemRandom().choice(_RANGE)
    with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
      for port in range(first, first + number):
        stack.enter_context(socket.create_server(('', port), family=socket.AF_INET))
      return first
