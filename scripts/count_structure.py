"""Counts of how much code one has to read to follow one thing: `python scripts/count_structure.py`

Each function of `COUNTS` makes one count of the checkout that contains this file. `--json` prints
them as one object; names after the options select some.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Callable, Iterator
import io
import json
import os
import pathlib
import re
import sys
import tokenize
from types import FrameType
from typing import Any

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
ROOT = pathlib.Path(__file__).resolve().parents[1]
_OURS = tuple(f'{ROOT}/{folder}/' for folder in ('seed_acme', 'agents', 'replay', 'programs'))
_BELOW_THE_NODE = (
  *(f'seed_acme/{room}' for room in ('acting', 'inference', 'learning', 'transport', 'networks')),
  'seed_acme/ops',
  'replay',
  'agents',
)
_OF_A_RUN = (
  *(f'programs/{room}' for room in ('nodes', 'building', 'graph', 'cluster', 'launches')),
  'programs/single_process.py',
)
# These files decide by the number of hosts; in the last one, "hosts" are those that may connect.
_BY_RIGHT = (
  'seed_acme/layout.py',
  'seed_acme/layout_checks.py',
  'seed_acme/learning/peers.py',
  'seed_acme/transport/fence.py',
)
_BY_NUMBER = re.compile(
  r'num_learner_hosts|num_shards|has_several_learners|is_sharded|is_alone|\bhosts is (not )?None'
  r'|(^|[ .])exchange$'
)
_TRAVELLING = frozenset(
  ('config', 'run_dir', 'token', 'address', 'replay_addresses', 'here', 'index', 'exchange')
)
_SETS_HANDLERS = frozenset(
  f'signal.{name}' for name in ('signal', 'sigwait', 'sigwaitinfo', 'sigtimedwait', 'set_wakeup_fd')
)
_ASKS_LAUNCH = re.compile(
  r'is_container|is_thread|others_are_elsewhere|is_beside_learner|has_actors_beside|launch_type\b'
)
_ON_POLICY = ROOT / 'agents/on_policy'
# They make and check the configuration.
_OF_THE_CONFIGURATION = ('config.py', 'presets.py')
_LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT)


def vtrace_loss_files() -> list[str]:
  """Returns the files entered while `losses(batch)` of `catch_vtrace` and its network are
  traced."""
  import numpy as np
  import tensorflow as tf

  from seed_acme import types
  from seed_acme.agents import registry as agents
  from seed_acme.configs import registry as configs
  from seed_acme.envs import registry as envs

  config = configs.load('catch_vtrace')
  spec = envs.environment_spec(config.environment)
  agent = agents.get(config.agent.agent)(spec, config.network, config.agent)
  network = agent.acting.make()
  learning = agent.make_learning(network)
  shape = (config.agent.overlap + config.agent.unroll_length + 1, config.agent.batch_size)
  state = network.initial_state(shape[1])
  zeros = lambda spec: np.zeros((*shape, *spec.shape), spec.dtype)
  inputs = types.AgentInput(
    np.full(shape, types.MID, np.uint8),
    np.zeros(shape, np.float32),
    np.ones(shape, np.float32),
    zeros(spec.action),
    zeros(spec.observation),
  )
  prediction, _ = network.unroll(inputs, state)
  outputs = types.AgentOutput(zeros(spec.action), prediction)
  unroll = types.Unroll(state, inputs, outputs, np.zeros(shape, np.int64))
  sample = types.Sample(unroll, np.zeros(shape[1], np.uint64), np.ones(shape[1]))
  key, progress = tf.zeros([2], tf.int32), tf.zeros([])
  batch = learning.prepare(sample, key, True).batch
  losses = tf.function(lambda x: learning.losses(x, key, progress), autograph=False)
  return _entered(lambda: losses.get_concrete_function(batch))


def _entered(function: Callable[[], Any]) -> list[str]:
  """Returns our files in which a function is called, relative to the checkout."""
  names: set[str] = set()

  def profile(frame: FrameType, event: str, _: Any) -> None:
    if event == 'call':
      names.add(frame.f_code.co_filename)

  sys.setprofile(profile)
  try:
    function()
  finally:
    sys.setprofile(None)
  paths = {os.path.realpath(name) for name in names if not name.startswith('<')}
  return sorted(path[len(str(ROOT)) + 1 :] for path in paths if path.startswith(_OURS))


def on_policy_config_takers() -> list[str]:
  """Returns the on-policy agent's functions that take its configuration, except for its checks."""
  return [
    f'{path.name}:{function.name}'
    for path in sorted(_ON_POLICY.glob('*.py'))
    if path.name not in _OF_THE_CONFIGURATION
    for function in ast.walk(ast.parse(path.read_text(encoding='utf-8')))
    if isinstance(function, ast.FunctionDef) and any(map(_is_config, _arguments(function)))
  ]


def _functions(path: pathlib.Path) -> Iterator[ast.FunctionDef]:
  for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
    if isinstance(node, ast.FunctionDef):
      yield node


def _arguments(function: ast.FunctionDef) -> list[ast.arg]:
  return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _annotation(argument: ast.arg) -> str:
  return ast.unparse(argument.annotation) if argument.annotation else ''


def _is_config(argument: ast.arg) -> bool:
  return argument.arg == 'config' or 'OnPolicyConfig' in _annotation(argument)


def experiment_config_below_the_node() -> list[str]:
  """Returns files below the nodes that name `ExperimentConfig`. An agent's `check` may."""
  return [
    _shown(path)
    for path in _sources(*_BELOW_THE_NODE)
    if 'ExperimentConfig' in path.read_text(encoding='utf-8')
  ]


def experiment_config_takers() -> list[str]:
  """Returns functions of nodes and builders that take a whole configuration."""
  return [
    f'{_shown(path)}:{function.name}'
    for path in _sources(*_OF_A_RUN)
    for function in _functions(path)
    if any('ExperimentConfig' in _annotation(argument) for argument in _arguments(function))
  ]


def conditions_on_hosts_and_shards() -> list[str]:
  """Returns lines outside `Layout` and `Peers` that depend on the number of hosts or shards."""
  return [
    f'{_shown(path)}:{node.lineno}: {ast.unparse(condition)}'
    for path in _sources('seed_acme', 'agents', 'replay', 'programs')
    if _shown(path) not in _BY_RIGHT
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8')))
    for condition in _conditions(node)
    if _BY_NUMBER.search(ast.unparse(condition))
  ]


def _conditions(node: ast.AST) -> list[ast.expr]:
  if isinstance(node, (ast.If, ast.IfExp, ast.While)):
    return [node.test]
  return node.ifs if isinstance(node, ast.comprehension) else []


def files_that_set_signal_handlers() -> list[str]:
  """Returns the files that decide how a process handles signals such as SIGTERM, each with a count.

  Code that sends a signal, or passes a function to `signals.answer` and the like, does not count.
  """
  return [
    f'{_shown(path)}: {number}'
    for path in _sources('seed_acme', 'agents', 'replay', 'programs')
    if (number := num_signal_handlers(path.read_text(encoding='utf-8')))
  ]


def num_signal_handlers(source: str) -> int:
  """Returns how many times a module sets a signal handler, or waits for a signal."""
  return sum(
    ast.unparse(node) in _SETS_HANDLERS or node.attr == 'add_signal_handler'
    for node in ast.walk(ast.parse(source))
    if isinstance(node, ast.Attribute)
  )


def travelling_values() -> list[str]:
  """Returns the functions with the most parameters that belong together as values of one node."""
  found = [
    (sum(argument.arg in _TRAVELLING for argument in _arguments(function)), path, function)
    for path in _sources('seed_acme', 'agents', 'replay', 'programs')
    for function in _functions(path)
  ]
  most = max(number for number, _, _ in found)
  return [
    f'{_shown(path)}:{function.name}: '
    + ' '.join(argument.arg for argument in _arguments(function) if argument.arg in _TRAVELLING)
    for number, path, function in found
    if number == most
  ]


def node_takers() -> list[str]:
  """Returns functions outside `programs/nodes` that take a `Node` or a `NodeSpec`."""
  return [
    f'{_shown(path)}:{function.name}'
    for path in _sources('seed_acme', 'agents', 'replay', 'programs')
    if not _shown(path).startswith('programs/nodes/')
    for function in _functions(path)
    if any(re.search(r'\bNode(Spec)?\b', _annotation(one)) for one in _arguments(function))
  ]


def questions_of_the_launch() -> list[str]:
  """Returns lines in which a node asks how it was started."""
  return [
    f'{_shown(path)}:{number}: {line.strip()}'
    for path in _sources(*(room for room in _OF_A_RUN if room != 'programs/launches'))
    for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1)
    if _ASKS_LAUNCH.search(line)
  ]


def all_code_lines() -> int:
  """Counts the package's lines of code, without blank lines, comments and docstrings."""
  folders = _sources('seed_acme', 'agents', 'replay', 'programs', 'configs')
  return sum(code_lines(path.read_text(encoding='utf-8')) for path in folders)


def _sources(*names: str) -> Iterator[pathlib.Path]:
  """Yields the Python files of folders or files, without those behind links."""
  for name in names:
    root = ROOT / name
    for path in [root] if root.suffix else sorted(root.rglob('*.py')):
      if path.resolve() == path:
        yield path


def _shown(path: pathlib.Path) -> str:
  return path.relative_to(ROOT).as_posix()


def on_policy_code_lines() -> int:
  """Counts lines of code of `agents/on_policy`, without blank lines, comments and docstrings."""
  return sum(code_lines(path.read_text(encoding='utf-8')) for path in _ON_POLICY.glob('*.py'))


def code_lines(source: str) -> int:
  """Counts the lines of a module that have code."""
  docstrings = {line for node in _docstrings(source) for line in _lines(node)}
  lines = {
    line
    for token in tokenize.generate_tokens(io.StringIO(source).readline)
    if token.type not in _LAYOUT and token.string
    for line in range(token.start[0], token.end[0] + 1)
  }
  return len(lines - docstrings)


def _docstrings(source: str) -> Iterator[ast.Expr]:
  owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
  for node in ast.walk(ast.parse(source)):
    if isinstance(node, owners) and node.body and ast.get_docstring(node) is not None:
      first = node.body[0]
      assert isinstance(first, ast.Expr)
      yield first


def _lines(node: ast.Expr) -> range:
  assert node.end_lineno is not None
  return range(node.lineno, node.end_lineno + 1)


# A list counts as its length, and shows what was counted.
COUNTS: dict[str, Callable[[], int | list[str]]] = {
  'vtrace_loss_files': vtrace_loss_files,
  'on_policy_config_takers': on_policy_config_takers,
  'on_policy_code_lines': on_policy_code_lines,
  'experiment_config_below_the_node': experiment_config_below_the_node,
  'experiment_config_takers': experiment_config_takers,
  'conditions_on_hosts_and_shards': conditions_on_hosts_and_shards,
  'travelling_values': travelling_values,
  'node_takers': node_takers,
  'questions_of_the_launch': questions_of_the_launch,
  'files_that_set_signal_handlers': files_that_set_signal_handlers,
  'all_code_lines': all_code_lines,
}


def main(arguments: list[str] | None = None) -> None:
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawTextHelpFormatter
  )
  parser.add_argument('names', nargs='*', metavar='NAME', help=f'of {", ".join(COUNTS)}')
  parser.add_argument('--json', action='store_true', help='print one object')
  parsed = parser.parse_args(arguments)
  unknown = sorted(set(parsed.names) - set(COUNTS))
  if unknown:
    parser.error(f'{", ".join(unknown)}: choose of {", ".join(COUNTS)}')
  found = {name: COUNTS[name]() for name in parsed.names or COUNTS}
  if parsed.json:
    print(json.dumps(found, indent=1))
    return
  for name, value in found.items():
    print(f'{name}: {len(value) if isinstance(value, list) else value}')
    for line in value if isinstance(value, list) else ():
      print(f'  {line}')


if __name__ == '__main__':
  main()
