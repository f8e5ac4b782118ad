"""How calls fail.

The class is not in `pybind11_abseil.status`, where the compiled courier had it, because TensorFlow
makes a module of that name itself.
"""

from __future__ import annotations

import grpc


class Status:
  """Code and message, by the methods of absl's."""

  def __init__(self, code: grpc.StatusCode, message: str):
    self._code, self._message = code, message

  def code(self) -> grpc.StatusCode:
    return self._code

  def message(self) -> str:
    return self._message


class StatusNotOk(Exception):
  """Raised by calls. An exception of a method arrives as its traceback, in `message`."""

  def __init__(self, status: Status | str):
    """status: as text without a code, which `client.py` adds."""
    if isinstance(status, str):
      status = Status(grpc.StatusCode.UNKNOWN, status)
    super().__init__(status.message())
    self.status = status
    self.message = status.message()
    self.code = status.code()
