import pytest

from seed_acme import types
from seed_acme.checks import equal_parts


def test_only_what_does_not_fall_into_equal_parts_is_refused():
  equal_parts.check({'a': 6, 'b': 0}, 3, 'c (3)')
  with pytest.raises(types.UserError, match=r'b \(7\) is not a multiple of c \(3\)'):
    equal_parts.check({'a': 6, 'b': 7}, 3, 'c (3)')
