"""Imports go down or left in the diagram of the rooms in docs/architecture.md."""

import pathlib

from tests import sources

_ROOT = pathlib.Path(__file__).parent.parent
_TOPS = ('seed_acme', 'agents', 'replay', 'programs', 'configs')
_LINKED = _TOPS[1:]


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
  """Returns `networks`, `programs/nodes`, `programs/tools/sweep`, ...; root modules are rooms of
  their own."""
  parts = module.split('.')[1:]
  if parts[:1] != ['programs']:
    return parts[0] if parts else ''
  depth = 3 if parts[1:2] == ['tools'] else 2
  return '/'.join(parts[:-1][:depth]) or 'programs'


def _imported(path):
  """Yields our modules that a file imports, also within functions."""
  for line, name in sources.imports(path):
    found = name if name in _MODULES else name.rpartition('.')[0]
    if found in _MODULES:
      yield line, found


def _drawn():
  """Returns each room's position in the diagram: rows count from below, then from the left."""
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


def test_imports_go_down_or_left():
  drawn = _drawn()
  wrong = []
  for module, path in _MODULES.items():
    if path == _ROOT / 'seed_acme' / '__init__.py':  # the public API imports rooms above it
      continue
    for line, imported in _imported(path):
      here, there = _room(module), _room(imported)
      if here != there and there:
        (row, column), (below, left) = drawn[here], drawn[there]
        if not (below < row or below == row and left < column):
          wrong.append(f'{path.relative_to(_ROOT)}:{line} imports {imported}')
  assert not wrong


def test_no_run_needs_a_tool():
  """A tool is named by the record of its command or by a table, and loaded when it is called."""
  tools = 'seed_acme.programs.tools'
  assert f'{tools}.api' in _MODULES
  assert not [
    f'{path.relative_to(_ROOT)}:{line} imports {imported}'
    for module, path in _MODULES.items()
    if not module.startswith(tools)
    for line, imported in _imported(path)
    if imported.startswith(tools)
  ]


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
