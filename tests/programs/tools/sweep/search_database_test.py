"""The database of a search is in the folder of its sweep, whatever that is called."""

import contextlib
import sqlite3

import pytest

from seed_acme.configs import registry
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import search as sweep_search
from seed_acme.programs.tools.sweep import search_space

pytest.importorskip('optuna')
pytestmark = pytest.mark.slow

_BASE = registry.load('catch_vtrace')


@pytest.fixture(name='plan', scope='module')
def _plan():
  space = search_space.parse('agent.optimizer.learning_rate=1e-5..1e-2:log', _BASE)
  return sweep_plan.make_search(_BASE, sweep_plan.Search(space, 3), 1, None)


def _num_trials(out):
  with contextlib.closing(sqlite3.connect(out / sweep_search.FILE)) as database:
    [[count]] = database.execute('select count(*) from trials')
  return count


@pytest.mark.parametrize(
  'names',
  [('lr?1', 'lr?2'), ('{lr}', '{}'), ('50%', '%7B'), ('a#1', 'a#2'), ('zwei Räume&=+', "it's @:;")],
)
def test_a_folder_may_have_any_name(tmp_path, plan, names):
  for name in names:
    out = tmp_path / name
    out.mkdir()
    search = sweep_search.Search(plan, out, lambda drawn: None)
    first = search.next()
    again = sweep_search.Search(search.plan, out, lambda drawn: None)
    assert again.next().run_dir.path == first.run_dir.path
    assert _num_trials(out) == 1
  assert {path.name for path in tmp_path.iterdir()} == set(names)


def test_a_folder_may_be_named_from_here(tmp_path, plan, monkeypatch):
  monkeypatch.chdir(tmp_path)
  relative = tmp_path.relative_to(tmp_path)
  sweep_search.Search(plan, relative, lambda drawn: None).next()
  assert _num_trials(tmp_path) == 1
