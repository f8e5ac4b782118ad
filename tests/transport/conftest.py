"""Fixtures of the transport tests."""

from __future__ import annotations

from collections.abc import Callable
import functools

import pytest

from tests import random_policy

pytest.register_assert_rewrite('tests.transport.contract')


@pytest.fixture(scope='session')
def acting() -> Callable[[str], random_policy.Acting]:
  """`acting('lstm')`, shared by all tests. Do not publish other weights to it."""
  return functools.cache(random_policy.make_acting)
