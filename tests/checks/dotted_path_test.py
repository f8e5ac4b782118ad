"""Objects that a configuration names by their module."""

import pytest

from seed_acme import types
from seed_acme.checks import dotted_path


@pytest.mark.parametrize(
  ('path', 'said'),
  [
    ('.relative:name', r"field \('.relative:name'\) must be written package.module:Name"),
    ('broken_module:name', "cannot be imported: cannot import name 'nope'"),
  ],
)
def test_what_cannot_be_imported_is_named(tmp_path, monkeypatch, path, said):
  (tmp_path / 'broken_module.py').write_text('from numpy import nope\n')
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(types.UserError, match=said):
    dotted_path.load_object(path, 'field')
