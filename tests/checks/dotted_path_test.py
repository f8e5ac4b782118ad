"""Objects that a configuration names by their module."""

import pytest

from seed_acme import types
from seed_acme.checks import dotted_path


@pytest.mark.parametrize(
  ('path', 'said'),
  [
    ('.relative:name', r"field \('.relative:name'\) must be written package.module:Name"),
    ('broken_module:name', "cannot be imported: cannot import name 'nope'"),
    ('nowhere:name', "No module named 'nowhere'. It must be importable .* set PYTHONPATH"),
    ('__main__:name', 'another __main__: put the code into a module'),
  ],
)
def test_what_cannot_be_imported_is_named(tmp_path, monkeypatch, path, said):
  (tmp_path / 'broken_module.py').write_text('from numpy import nope\n')
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(types.UserError, match=said):
    dotted_path.load_object(path, 'field')


@pytest.mark.parametrize(
  ('code', 'said'),
  [
    ('x = (', r"field \('bad:name'\): bad cannot be imported: SyntaxError: .*bad.py, line 1\)"),
    ('\n1 / 0', r'bad cannot be imported: ZeroDivisionError: division by zero \(.*bad.py:2\)'),
  ],
)
def test_an_error_in_a_module_is_one_line_with_its_place(tmp_path, monkeypatch, code, said):
  (tmp_path / 'bad.py').write_text(code)
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(types.UserError, match=said):
    dotted_path.load_object('bad:name', 'field')
