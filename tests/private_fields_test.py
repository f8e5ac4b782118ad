"""Tests check what users see, such as an answer or a count, but no private field of an object.

A private field that a test reads cannot be renamed or removed, even if no user would notice. A test
may call private functions and read constants of the module that it belongs to; in any module it may
replace them, for example to shorten a wait.
"""

import ast
import pathlib

import pytest

_ROOT = pathlib.Path(__file__).parent.parent
_OF_NAMED_TUPLES = ('_asdict', '_fields', '_make', '_replace')

# Private names without a public alternative, by file, and why.
_EXCEPTIONS = {
  # TF-Agents and wandb offer these in no other way.
  'agents/on_policy/tf_agents_numbers.py': ['ppo_agent._normalize_advantages'],
  'loggers/wandb_logger_test.py': ['store._fp'],
  # Python's public way to exit without waiting for threads.
  'mutations/pytest_process.py': ['os._exit'],
  'libraries/forking.py': ['os._exit'],
  # The module it belongs to, a script of mkdocs that is loaded by its path.
  'docs_site_test.py': [
    'hooks._front_door',
    'hooks._modules',
    'hooks._name',
    'hooks._site_uri',
    'hooks._with_links',
  ],
  # The same: a script of this repository, whose commit the test chooses.
  'long_runs_test.py': ['script._commit'],
  # This private module tells the command line about errors; the test removes it.
  'programs/command_line/wrong_arguments_test.py': ['tyro._errors'],
  # Two tables that must have the same names; each is used by its own module alone.
  'networks/requirements_test.py': ['build._CORES', 'build._TORSOS'],
  # A documented time is the sum of these; waiting for it would measure the machine.
  'programs/tools/inspection/inspect_servers_test.py': [
    'inspect_command._DEADLINE_S',
    'inspect_command._PROBE_TIMEOUT_S',
    'inspect_command._first_timeout_s',
  ],
  # A lost machine does not shut down cleanly, as every public way to end does.
  'storage/bucket_copy_starts_test.py': ['lost._end_threads'],
  # A node that never confirms the end: ours always do.
  'transport/joining_test.py': ['members._num_staying'],
}


def _is_private(name):
  return name[:1] == '_' and name[:2] != '__' and name not in _OF_NAMED_TUPLES


def _modules(tree):
  """Returns the imported modules of the project by local name, as dotted paths."""
  found = {}
  for node in ast.walk(tree):
    if isinstance(node, ast.ImportFrom):
      for alias in node.names:
        dotted = f'{node.module}.{alias.name}'
        if (_ROOT / f'{dotted.replace(".", "/")}.py').is_file():
          found[alias.asname or alias.name] = dotted
  return found


def _is_own(test, dotted):
  """Whether `tests/a/b_test.py`, or `b_part_test.py`, belongs to the module `a.b`."""
  module = dotted.removeprefix('seed_acme.').removeprefix('scripts.').removeprefix('tests.')
  return f'{test.removesuffix("_test.py")}_'.startswith(f'{module.replace(".", "/")}_')


def _reads(test, source):
  """Yields private names that the source of `test` reads or sets on objects other than `self`."""
  tree = ast.parse(source)
  modules = _modules(tree)
  for node in ast.walk(tree):
    if isinstance(node, ast.Attribute) and _is_private(node.attr):
      of = ast.unparse(node.value)
      if of not in ('self', 'cls', 'super()') and not _is_own(test, modules.get(of, '')):
        yield f'{test}: {of}.{node.attr}'
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(('attr', 'patch.object')):
      of, *rest = [*node.args[:2], None]
      name = rest[0].value if isinstance(rest[0], ast.Constant) else ''
      if isinstance(name, str) and _is_private(name) and ast.unparse(of) not in modules:
        yield f'{test}: {ast.unparse(of)}.{name}'


def test_no_test_looks_at_private_fields():
  tests = _ROOT / 'tests'
  found = {
    read
    for path in tests.rglob('*.py')
    for read in _reads(path.relative_to(tests).as_posix(), path.read_text(encoding='utf-8'))
  }
  assert found == {f'{test}: {read}' for test, reads in _EXCEPTIONS.items() for read in reads}


_SOURCE = """
from seed_acme.transport import grpc_server
from seed_acme.transport import sessions as sessions_lib
"""


@pytest.mark.parametrize(
  'line, expected',
  [
    ('desk._sessions', ['desk._sessions']),
    ('self.desk._sessions[0]', ['self.desk._sessions']),
    ('desk._token = ""', ['desk._token']),
    ('monkeypatch.setattr(desk, "_token", "")', ['desk._token']),
    ('getattr(desk, "_token")', ['desk._token']),
    ('sessions_lib._POLL_S', ['sessions_lib._POLL_S']),
    ('desk.instance', []),
    ('self._rig', []),
    ('request._replace(env_ids=1)', []),
    ('desk.__class__', []),
    ('grpc_server._max_connections(3)', []),  # its own module
    ('monkeypatch.setattr(sessions_lib, "_POLL_S", 0.0)', []),
  ],
)
def test_a_private_field_is_seen(line, expected):
  found = list(_reads('transport/grpc_server_test.py', _SOURCE + line))
  assert found == [f'transport/grpc_server_test.py: {name}' for name in expected]
