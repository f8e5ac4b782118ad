"""Mutations apply to the current code, the tests that they name exist, and the tests kill them."""

import collections
import pathlib
import re

import pytest

from tests.mutations import catalogue
from tests.mutations import record
from tests.mutations import runner

_ROOT = pathlib.Path(__file__).parents[2]


def _fault(mutation):
  """Returns what is wrong with a mutation; '' = nothing."""
  text = (_ROOT / mutation.file).read_text(encoding='utf-8')
  try:
    faulty = mutation.applied_to(text)
    compile(faulty, mutation.file, 'exec')
  except (record.Stale, SyntaxError) as error:
    return f'{mutation.name}: {error}'
  return '' if faulty != text else f'{mutation.name} changes nothing'


def test_all_apply_and_what_comes_out_compiles():
  assert not [fault for fault in map(_fault, catalogue.MUTATIONS) if fault]


def _missing(test):
  """Returns the names in a node id that its file does not define."""
  path, *names = test.split('::')
  text = (_ROOT / path).read_text(encoding='utf-8')
  return [name for name in names if not re.search(rf'^ *(def|class) {name}\b', text, re.MULTILINE)]


def test_the_tests_that_they_name_exist():
  for mutation in catalogue.MUTATIONS:
    assert mutation.tests and mutation.fault, mutation.name
    for test in mutation.tests.split():
      assert not _missing(test), f'{mutation.name} names {test}, which is not there'


def test_there_are_many_from_everywhere_and_no_two_are_the_same():
  assert len(catalogue.MUTATIONS) >= 60
  names = collections.Counter(mutation.name for mutation in catalogue.MUTATIONS)
  assert names.most_common(1)[0][1] == 1, names.most_common(1)
  changes = collections.Counter(
    (mutation.file, mutation.old, mutation.new) for mutation in catalogue.MUTATIONS
  )
  assert changes.most_common(1)[0][1] == 1, changes.most_common(1)
  found = {
    mutation.file.removeprefix('seed_acme/').partition('/')[0] for mutation in catalogue.MUTATIONS
  }
  assert {'agents', 'envs', 'inference', 'networks', 'ops', 'programs', 'replay'} <= found


@pytest.mark.learning
@pytest.mark.timeout(4 * 3600)
def test_nearly_all_are_killed(capsys):
  code = runner.main([], catalogue.MUTATIONS, _ROOT)
  output = capsys.readouterr().out
  assert code == 0, output
