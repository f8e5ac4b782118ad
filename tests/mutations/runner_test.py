"""The mutation runner itself, on a tree of one module with one test."""

import pytest

from tests.mutations import record
from tests.mutations import runner

_CODE = 'def half(x):\n  return x / 2\n\n\ndef is_large(x):\n  return x > 10\n'
_TESTS = """import time

from seed_acme import small


def test_half():
  assert small.half(4) == 2


def test_large():
  assert small.is_large(11) and not small.is_large(9)


def test_slow():
  time.sleep(0 if small.half(4) == 2 else 60)
"""


def _mutation(name, old, new, test):
  return record.Mutation(
    name, 'seed_acme/small.py', old, new, f'tests/small_test.py{test}', 'the fault of it'
  )


_KILLED = _mutation('killed', 'x / 2', 'x * 2', '::test_half')
_LIVES = _mutation('lives', 'x > 10', 'x >= 10', '::test_large')
_HANGS = _mutation('hangs', 'x / 2', 'x / 4', '::test_slow')


@pytest.fixture(name='root')
def _root(tmp_path):
  root = tmp_path / 'repository'
  for folder in ('seed_acme', 'tests', 'agents'):
    (root / folder).mkdir(parents=True)
  (root / 'seed_acme' / '__init__.py').write_text('')
  (root / 'seed_acme' / 'small.py').write_text(_CODE)
  (root / 'seed_acme' / 'agents').symlink_to('../agents')
  (root / 'tests' / 'small_test.py').write_text(_TESTS)
  return root


def test_one_that_lives_is_named_and_one_that_is_killed_is_not(root, capsys):
  # The second mutant is as long as the first, whose bytecode must not be reused.
  assert runner.main([], [_KILLED, _LIVES], root) == 1
  output = capsys.readouterr().out
  assert 'killed killed' in output and '1 of 2 mutants killed (50.0%), 1 lived, 0 hung' in output
  assert 'LIVED lives, seed_acme/small.py: the fault of it' in output
  assert 'LIVED killed' not in output and 'fewer than 95%' in output
  assert (root / 'seed_acme' / 'small.py').read_text() == _CODE
  assert not list(root.rglob('__pycache__'))


def test_where_all_are_killed_it_ends_with_0(root, capsys):
  assert runner.main(['kil'], [_KILLED, _LIVES], root) == 0
  assert '1 of 1 mutants killed (100.0%), 0 lived, 0 hung' in capsys.readouterr().out


def test_one_that_hangs_counts_apart(root, capsys):
  assert runner.main(['--timeout_s=1'], [_HANGS], root) == 1
  assert '0 of 1 mutants killed (0.0%), 0 lived, 1 hung' in capsys.readouterr().out


@pytest.mark.parametrize('old, times', [('x / 3', 0), ('return x', 2)])
def test_a_stale_one_is_an_error_before_anything_runs(root, capsys, old, times):
  assert runner.main([], [_KILLED, _LIVES._replace(name='stale', old=old)], root) == 2
  output = capsys.readouterr().out
  assert f'mutation stale is stale: its old text occurs {times} times' in output
  assert 'killed' not in output


def test_one_whose_file_is_gone_is_stale(root, capsys):
  assert runner.main([], [_KILLED._replace(file='seed_acme/gone.py')], root) == 2
  assert 'mutation killed is stale: there is no seed_acme/gone.py' in capsys.readouterr().out


def test_tests_that_fail_without_a_mutation_are_an_error(root, capsys):
  (root / 'seed_acme' / 'small.py').write_text(_CODE.replace('x > 10', 'x > 12'))
  assert runner.main([], [_LIVES._replace(old='x > 12', new='x >= 12')], root) == 2
  assert 'the tests do not pass without a mutation' in capsys.readouterr().out


def test_tests_that_are_not_there_are_an_error(root, capsys):
  tests = 'tests/small_test.py::test_gone'
  assert runner.main([], [_KILLED._replace(tests=tests)], root) == 2
  assert 'not found' in capsys.readouterr().out


def test_the_list_runs_nothing_and_an_unknown_name_is_answered_with_near_ones(root, capsys):

  def listed(*names):
    assert runner.main(['--list', *names], [_KILLED, _LIVES], root) == 0
    return [line.split()[0] for line in capsys.readouterr().out.splitlines()]

  assert listed() == ['killed', 'lives'] and listed('liv', 'kil') == ['killed', 'lives']
  assert listed('lives') == ['lives']
  assert runner.main(['lifes'], [_KILLED, _LIVES], root) == 2
  output = capsys.readouterr().out
  assert "no mutation 'lifes'" in output and '(near: lives)' in output
