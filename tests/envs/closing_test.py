"""Errors of `close`, which come when the result is known."""

import contextlib

import pytest

from seed_acme.envs import closing
from tests.acting import logged


class _Unclosable(logged.LoggedEnvironment):
  def close(self):
    super().close()
    raise RuntimeError('the window\nis gone')


_TOLD = (
  'environment catch: close() raised RuntimeError: the window is gone (closing_test.py:14), which '
  'changes no result'
)


def test_an_error_of_close_is_told_in_one_line_and_the_result_stands(capsys):
  log: logged.Log = []
  with closing.afterwards(_Unclosable('a', log), 'catch') as environment:
    environment.reset()
  assert log == [('a', 'reset'), ('a', 'close environment')]
  assert capsys.readouterr().err == f'Notice: {_TOLD}\n'
  said: list[str] = []
  with closing.told('catch', said.append):
    environment.close()
  assert said == [_TOLD]


def test_an_error_of_the_work_is_raised_whatever_close_does(capsys):
  for kind in (logged.LoggedEnvironment, _Unclosable):
    log: logged.Log = []
    with pytest.raises(ValueError, match='wrong'):
      with closing.afterwards(kind('a', log), 'catch'):
        raise ValueError('wrong')
    assert log == [('a', 'close environment')]
  assert capsys.readouterr().err.count('Notice: ') == 1


def test_an_error_that_cannot_be_told_changes_nothing_either():
  def tell(text):
    raise OSError('No space left on device')

  with closing.told('catch', tell):
    _Unclosable('a', []).close()


@pytest.mark.parametrize('error', [ValueError('wrong'), KeyboardInterrupt('wrong')])
def test_what_was_made_is_closed_on_failure_and_the_error_raised(capsys, error):
  log: logged.Log = []
  with pytest.raises(type(error), match='wrong'):
    with closing.on_failure('catch') as made:
      for environment in (logged.LoggedEnvironment('a', log), _Unclosable('b', log)):
        made.enter_context(contextlib.closing(environment))
      raise error
  assert log == [('b', 'close environment'), ('a', 'close environment')]
  assert capsys.readouterr().err == f'Notice: {_TOLD}\n'


def test_it_is_closed_later_for_who_first_reports_the_error():
  log: logged.Log = []
  later = contextlib.ExitStack()
  with pytest.raises(ValueError, match='wrong'):
    with closing.on_failure('catch', later) as made:
      made.enter_context(contextlib.closing(logged.LoggedEnvironment('a', log)))
      raise ValueError('wrong')
  assert log == []
  later.close()
  assert log == [('a', 'close environment')]


def test_what_is_complete_is_left_to_its_user():
  log: logged.Log = []
  with contextlib.ExitStack() as later, closing.on_failure('catch', later) as made:
    made.enter_context(contextlib.closing(logged.LoggedEnvironment('a', log)))
  assert log == []
