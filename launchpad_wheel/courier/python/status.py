"""The status and exception of failed calls.

The class is not in `pybind11_abseil.status`, where the compiled courier had it, because TensorFlow
creates a module of that name itself.
"""

from __future__ import annotations

import grpc


class Status:
  """A code and a message, with the methods of absl's Status."""

  def __init__(self, code: grpc.StatusCode, message: str):
    self._code, self._message = code, message

  def code(self) -> grpc.StatusCode:
    return self._code

  def message(self) -> str:
    return self._message


class StatusNotOk(Exception):
  """The exception of failed calls. A method's exception arrives as a traceback in `message`."""

  def __init__(self, status: Status | str):
    """status: may be text without a code, as `client.py` passes it."""
    if isinstance(status, str):
      status = Status(grpc.StatusCode.UNKNOWN, status)
    super().__init__(status.message())
    self.status = status
    self.message = status.message()
    self.code = status.code()
