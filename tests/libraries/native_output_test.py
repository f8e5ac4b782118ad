"""C++ output to descriptor 2: what is suppressed and what is shown."""

import os

import pytest

from seed_acme import types
from seed_acme.libraries import native_output


def test_the_lines_that_are_shown_come_after_all_in_their_order(capfd):
  with native_output.held_back(lambda written: written.replace(b'noise\n', b'')):
    os.write(2, b'noise\none\nnoise\ntwo\n')
    assert not capfd.readouterr().err
  assert capfd.readouterr().err == 'one\ntwo\n'
  os.write(2, b'later\n')
  assert capfd.readouterr().err == 'later\n'


@pytest.mark.parametrize(
  'error, is_shown', [(None, False), (types.UserError('x'), False), (ValueError('x'), True)]
)
def test_noise_is_shown_after_all_where_something_unforeseen_happens(error, is_shown, capfd):
  try:
    with native_output.without_noise():
      os.write(2, b'noise\n')
      if error:
        raise error
  except (types.UserError, ValueError):
    pass
  assert ('noise' in capfd.readouterr().err) == is_shown
