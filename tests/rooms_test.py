"""The drawing of the rooms in docs/architecture.md is the tree, and imports go down or left in it.

Also: folders hold few modules, files and functions are short, tests stand where their module's name
says.
"""

import ast
import pathlib
import statistics

import pytest

_ROOT = pathlib.Path(__file__).parent.parent
_TOPS = ('seed_acme', 'agents', 'replay', 'programs', 'configs')
_LINKED = _TOPS[1:]
_MAX_LOOSE = {'seed_acme': 8, 'programs': 8}
_MAX_MODULES = 15
_UNBOUNDED = ('configs', 'seed_acme/ops', 'seed_acme/envs')
_MAX_LINES = 300
_MAX_FUNCTION_P90 = 20


def _sources():
  return sorted(
    path
    for top in _TOPS
    for path in (_ROOT / top).rglob('*.py')
    if not (top == 'seed_acme' and path.relative_to(_ROOT).parts[1] in _LINKED)
  )


def _module(path):
  parts = path.relative_to(_ROOT).with_suffix('').parts
  parts = parts if parts[0] == 'seed_acme' else ('seed_acme', *parts)
  return '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)


_MODULES = {_module(path): path for path in _sources()}


def _room(module):
  """`networks`, `programs/nodes`; modules at the root of the package are rooms by themselves."""
  parts = module.split('.')[1:]
  if parts[:1] == ['programs'] and len(parts) > 2:
    return f'programs/{parts[1]}'
  return parts[0] if parts else ''


def _imported(path):
  """Modules of ours that a file imports, within functions too."""
  for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
    names = []
    if isinstance(node, ast.Import):
      names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
      names = [f'{node.module}.{alias.name}' for alias in node.names]
    for name in names:
      found = name if name in _MODULES else name.rpartition('.')[0]
      if found in _MODULES:
        yield node.lineno, found


def _drawn():
  """Place of each room in the drawing: rows count from below, then from the left."""
  text = (_ROOT / 'docs' / 'architecture.md').read_text(encoding='utf-8')
  rows = [
    line.partition('|')[2].split()
    for line in text.partition('## Rooms')[2]
    .partition('```text\n')[2]
    .partition('```')[0]
    .splitlines()
  ]
  return {
    room: (len(rows) - row, column)
    for row, rooms in enumerate(rows)
    for column, room in enumerate(rooms)
  }


def test_the_drawing_has_every_room_and_no_other():
  assert set(_drawn()) == {
    _room(module) for module, path in _MODULES.items() if path.name != '__init__.py'
  }


def test_imports_go_down_or_left():
  drawn = _drawn()
  wrong = []
  for module, path in _MODULES.items():
    if path == _ROOT / 'seed_acme' / '__init__.py':  # the front door hands out what is above it
      continue
    for line, imported in _imported(path):
      here, there = _room(module), _room(imported)
      if here != there and there:
        (row, column), (below, left) = drawn[here], drawn[there]
        if not (below < row or below == row and left < column):
          wrong.append(f'{path.relative_to(_ROOT)}:{line} imports {imported}')
  assert not wrong


def test_no_module_is_imported_by_what_it_imports():
  edges = {
    module: {name for _, name in _imported(path)} - {module} for module, path in _MODULES.items()
  }
  done, open_ = set(), []

  def visit(module):
    assert module not in open_, f'a circle: {open_[open_.index(module) :]}'
    if module not in done:
      open_.append(module)
      for other in sorted(edges[module]):
        visit(other)
      done.add(open_.pop())

  for module in sorted(edges):
    if module != 'seed_acme':  # as above
      visit(module)


def test_a_circle_is_seen_within_functions_too(tmp_path):
  source = tmp_path / 'late.py'
  source.write_text('def load():\n  from seed_acme.storage import checkpoint\n')
  assert list(_imported(source)) == [(2, 'seed_acme.storage.checkpoint')]


def test_folders_hold_few_modules():
  counts = {}
  for path in _MODULES.values():
    if path.name != '__init__.py':
      folder = path.parent.relative_to(_ROOT).as_posix()
      counts[folder] = counts.get(folder, 0) + 1
  assert not {
    folder: count
    for folder, count in counts.items()
    if folder not in _UNBOUNDED and count > _MAX_LOOSE.get(folder, _MAX_MODULES)
  }


def test_files_are_short():
  others = [path for top in ('tests', 'scripts') for path in (_ROOT / top).rglob('*.py')]
  lengths = {
    path.relative_to(_ROOT).as_posix(): len(path.read_text(encoding='utf-8').splitlines())
    for path in [*_MODULES.values(), *others]
  }
  assert not {name: length for name, length in lengths.items() if length > _MAX_LINES}


def test_nine_of_ten_functions_are_short():
  lengths = [
    node.end_lineno - node.lineno + 1
    for path in _MODULES.values()
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8')))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
  ]
  assert statistics.quantiles(lengths, n=10)[-1] <= _MAX_FUNCTION_P90


# Tests of no single module: what they hold together, or a way of running that takes all of it.
# `learner_passes_test.py` beside `learner_test.py` is a part of the latter and needs no entry.
_OF_NO_MODULE = {
  'agents': ['contract', 'law'],
  'agents/on_policy': [  # the preset, the property or the reference that they hold
    'free_deviations',
    'independent',
    'learnt_entropy',
    'popart',
    'preprocess',
    'properties',
    'value_loss',
    'vmpo',
    'vtrace_preset',
    'xla',
  ],
  'agents/r2d2': ['initial_priorities', 'target'],
  'agents/sac': ['gradients', 'recurrent'],
  'configs': [
    'dmlab_values',
    'football_values',
    'mujoco_values',
    'paper_values',
    'returns',
    'script_values',
  ],
  'envs': ['goal_environments', 'mujoco', 'render'],
  'inference': ['strictly_on_policy', 'unroll_replay'],
  'networks': ['value_normalizer'],
  'ops': ['tensorflow_probability'],
  'programs': [  # whole programs
    'actor_failure',
    'atari_processes',
    'devices',
    'evaluate',
    'finished_run',
    'learner_failure',
    'learner_hosts',
    'other_pythons',
    'other_ways',
    'r2d2_evaluate',
    'replay_killed',
    'replay_resume',
    'replay_shards',
    'replayed_q',
    'simultaneous_runs',
    'stop',
    'strictly_on_policy',
    'tensors',
    'wrong_input',
  ],
  'programs/cluster': ['manifest', 'node'],
  'programs/inspection': ['inspect'],
  'programs/planning': ['paper'],
  'programs/vertex': ['dry_run', 'original_plans', 'vertex'],
  'replay': ['lost_samples'],
  'scale': ['hosts'],
  'transport': ['broken_connections'],
  '.': [  # the repository
    'architecture_picture',
    'distributions',
    'docker',
    'docs_site',
    'evidence',
    'find_python',
    'learning',
    'on_policy_learning',
    'packaging',
    'private_fields',
    'readme',
    'repository_files',
    'rooms',
    'sac_learning',
    'tutorial',
  ],
  'examples': ['quickstart'],
}


@pytest.mark.parametrize(
  'test',
  sorted(
    path.relative_to(_ROOT / 'tests').as_posix() for path in (_ROOT / 'tests').rglob('*_test.py')
  ),
)
def test_tests_stand_where_their_module_says(test):
  folder, _, name = test.removesuffix('_test.py').rpartition('/')
  assert _has_a_place(folder, name) or any(_wholes(folder, name)), (
    f'{test} names no module: move it, or say in _OF_NO_MODULE what it is a test of'
  )


def _has_a_place(folder, name):
  """Whether it is the name of a module of the room, or stands in the list."""
  places = [_ROOT / top / folder / f'{name}.py' for top in ('.', 'seed_acme', 'scripts', 'tests')]
  listed = _OF_NO_MODULE.get(folder or '.', ())
  return name in listed or any(place.is_file() for place in places)


def _wholes(folder, name):
  """Names of the test files of which this one is a part: `learner` for `learner_passes`."""
  words = name.split('_')
  for number in range(1, len(words)):
    whole = '_'.join(words[:number])
    if (_ROOT / 'tests' / folder / f'{whole}_test.py').is_file() and _has_a_place(folder, whole):
      yield whole


def test_every_exception_is_a_test():
  missing = [
    f'{folder}/{name}'
    for folder, names in _OF_NO_MODULE.items()
    for name in names
    if not (_ROOT / 'tests' / folder / f'{name}_test.py').is_file()
  ]
  assert not missing
