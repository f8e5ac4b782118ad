"""Finds out whether this machine has Google Cloud credentials, without using the network."""

from __future__ import annotations

import os
import pathlib
from typing import NamedTuple

_TOKEN = 'GOOGLE_AUTH_TOKEN_FOR_TESTING'  # read by TensorFlow
_LOGIN = 'gcloud auth application-default login'


class Credentials(NamedTuple):
  """Result of the search. where: their place, or why there are none. commands: how to get them."""

  are_there: bool
  where: str
  commands: tuple[str, ...] = (_LOGIN,)


def find() -> Credentials:
  """Looks for credentials where Google's libraries and TensorFlow do."""
  if os.environ.get(_TOKEN):
    return Credentials(True, _TOKEN)
  given = os.environ.get('GOOGLE_APPLICATION_CREDENTIALS')
  if given:
    if pathlib.Path(given).is_file():
      return Credentials(True, f'GOOGLE_APPLICATION_CREDENTIALS={given}')
    return Credentials(
      False,
      f'GOOGLE_APPLICATION_CREDENTIALS={given} is no file',
      ('unset GOOGLE_APPLICATION_CREDENTIALS', _LOGIN),
    )
  folder = os.environ.get('CLOUDSDK_CONFIG') or str(pathlib.Path.home() / '.config' / 'gcloud')
  path = pathlib.Path(folder) / 'application_default_credentials.json'
  if path.is_file():
    return Credentials(True, str(path))
  if _is_google_machine():
    return Credentials(True, 'those of this Google Cloud machine')
  return Credentials(False, f'there is no {path}')


def _is_google_machine() -> bool:
  if os.environ.get('GCE_METADATA_HOST'):
    return True
  try:
    product = pathlib.Path('/sys/class/dmi/id/product_name').read_text(encoding='utf-8')
  except OSError:
    return False
  return product.startswith('Google')
