"""The sources of the package, their imports, and the contents of setup.py."""

import ast
import functools
import importlib.util
import pathlib

ROOT = pathlib.Path(__file__).parent.parent
LINKED = ('agents', 'configs', 'programs', 'replay')
SOURCES = sorted(
  path
  for folder in ('seed_acme', *LINKED, 'tests', 'scripts')
  for path in (ROOT / folder).rglob('*.py')
  if not (
    path.relative_to(ROOT).parts[0] == 'seed_acme' and path.relative_to(ROOT).parts[1] in LINKED
  )
)


def setup():
  return _loaded('seed_acme_setup', ROOT / 'setup.py')


def script(name):
  """Imports `scripts/NAME.py` as a fresh module."""
  return _loaded(name, ROOT / 'scripts' / f'{name}.py')


def _loaded(name, path):
  spec = importlib.util.spec_from_file_location(name, path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


@functools.cache
def imports(path):
  """Returns (line, dotted name) of every import; `from a import b` counts as `a.b`."""
  found = []
  for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
    if isinstance(node, ast.Import):
      found += [(node.lineno, alias.name) for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
      module = f'{"." * node.level}{node.module or ""}'
      found += [(node.lineno, f'{module}.{alias.name}') for alias in node.names]
  return found


def layer(path):
  """Returns `seed_acme`, `agents`, ... or `tests`."""
  return path.relative_to(ROOT).parts[0]


def offences(is_offence):
  return [
    f'{path.relative_to(ROOT)}:{line} imports {name}'
    for path in SOURCES
    for line, name in imports(path)
    if is_offence(path, name)
  ]
