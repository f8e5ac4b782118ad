"""What README.md and docs/ say is true: commands parse, code runs, links, files and fields exist.

Convention. Each line of a ```bash block is a command that works from the repository's root with
`.venv/bin` on the PATH. A ```python block whose first line is `# name.py` is that file; every
other one is a script. Everything else is ```text.
"""

import ast
import dataclasses
import functools
import importlib
import inspect
import json
import pathlib
import re
import shlex
import sys
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf
import tree

import seed_acme
from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import plot as plot_lib
from seed_acme import saved_config
from seed_acme import types
from seed_acme.agents import registry as agents
from seed_acme.configs import registry as configs
from seed_acme.envs import registry as environments
from seed_acme.networks import build as networks
from seed_acme.programs import bench
from seed_acme.programs import build
from seed_acme.programs import cli
from seed_acme.programs import evaluation
from seed_acme.programs import training_run
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.inspection import command as inspect_command
from seed_acme.programs.sweep import schedule as sweep_schedule

_ROOT = pathlib.Path(__file__).parent.parent
_PAGES = [_ROOT / 'README.md', _ROOT / 'CHANGELOG.md', *sorted((_ROOT / 'docs').glob('*.md'))]
_NAMES = [str(page.relative_to(_ROOT)) for page in _PAGES]
_LANGUAGES = ('bash', 'json', 'python', 'text')
_FENCE = re.compile(r'^```(\w*)\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_LINK = re.compile(r'!?\[[^\]]*\]\(([^)\s]+)\)')
_CODE = re.compile(r'`([^`\n]+)`')
_OVERRIDE = re.compile(r'--config\.([a-z_]+(?:\.[a-z_]+)*)')
_SECTIONS = [
  field.name
  for field in dataclasses.fields(config_lib.ExperimentConfig)
  if field.name in ('agent', 'network', 'environment') or dataclasses.is_dataclass(field.default)
]
_FIELD = re.compile(rf'(?:{"|".join(_SECTIONS)})(?:\.[a-z_]+)+')
_OF_A_MACHINE = re.compile(r'(?<![\w.])/(?:home|root|work|tmp|usr|opt|mnt)/')


class Block(NamedTuple):
  """One fenced block of a page."""

  page: str
  language: str
  text: str


def _blocks(language, page_texts=None):
  texts = page_texts or {name: page.read_text() for name, page in zip(_NAMES, _PAGES)}
  return [
    Block(name, match[1], match[2])
    for name, text in texts.items()
    for match in _FENCE.finditer(text)
    if match[1] == language
  ]


def _commands():
  """(page, arguments) of every line of every ```bash block."""
  return [
    (block.page, tuple(shlex.split(line, comments=True)))
    for block in _blocks('bash')
    for line in block.text.replace('\\\n', ' ').splitlines()
    if shlex.split(line, comments=True)
  ]


def _files():
  """Text of every ```python block that is a file, by its name."""
  found = {}
  for block in _blocks('python'):
    match = re.match(r'# (\w+\.py)\n', block.text)
    if match:
      assert match[1] not in found, f'{match[1]} is shown twice'
      found[match[1]] = block.text
  return found


@pytest.fixture(name='shown_files')
def _shown_files(tmp_path, monkeypatch):
  """A working folder with the files that the pages show, as a reader's would be."""
  for name, text in _files().items():
    (tmp_path / name).write_text(text)
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, 'path', [*sys.path, str(tmp_path)])
  importlib.invalidate_caches()
  yield tmp_path
  for name in _files():
    sys.modules.pop(pathlib.Path(name).stem, None)


class _Parsed(Exception):
  """The command line got as far as the work."""


def _check_seed_acme(arguments, monkeypatch):
  """The real command line, up to where the work would begin; `list` and `doctor` really run."""

  def begin(config, *args, **kwargs):
    if isinstance(config, config_lib.ExperimentConfig):
      config_validation.validate(config)
      environments.check(config.environment)
      if ':' in config.network.torso:
        networks.load_object(config.network.torso, 'network.torso')
    if isinstance(config, inspect_command.InspectArguments):
      inspect_command._check(config)
    raise _Parsed

  for module, name in (
    (training_run, 'prepare'),
    (bench, 'bench'),
    (evaluation, 'evaluate_runs'),
    (plot_lib, 'plot'),
    (cluster_file, 'load'),
    (sweep_schedule, 'Scheduler'),
    (inspect_command, 'inspect'),
  ):
    monkeypatch.setattr(module, name, begin)
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  try:
    code = cli.main(list(arguments))
  except _Parsed:
    code = 0
  assert code == 0, f'seed-acme {" ".join(arguments)} ends with {code}'


def _check_make(arguments, monkeypatch):
  del monkeypatch
  makefile = (_ROOT / 'Makefile').read_text()
  targets = re.search(r'^\.PHONY: (.*)$', makefile, re.MULTILINE)[1].split()
  variables = [*re.findall(r'^(\w+) \?=', makefile, re.MULTILINE), 'PYTHON']
  for argument in arguments:
    name, equals, _ = argument.partition('=')
    assert name in (variables if equals else targets), f'make knows no {name!r}'


def _check_tensorboard(arguments, monkeypatch):
  del monkeypatch
  assert all(argument.startswith('--logdir=') for argument in arguments), arguments


def _check_source(arguments, monkeypatch):
  del monkeypatch
  assert arguments == ('.venv/bin/activate',), arguments


_CHECKS = {
  'seed-acme': _check_seed_acme,
  'make': _check_make,
  'tensorboard': _check_tensorboard,
  'source': _check_source,
}


def _check_command(words, monkeypatch):
  assert words[0] in _CHECKS, f'nothing here can check {words[0]!r}: add a check or use ```text'
  _CHECKS[words[0]](words[1:], monkeypatch)


@pytest.mark.parametrize('page', _NAMES)
def test_every_block_has_a_language(page):
  text = (_ROOT / page).read_text()
  fences = re.findall(r'^```.*$', text, re.MULTILINE)
  assert len(fences) % 2 == 0, 'a block is not closed'
  for opening in fences[::2]:
    assert opening[3:] in _LANGUAGES, f'{opening}: expected one of {_LANGUAGES}'


def test_the_cluster_files_that_are_shown_are_good(tmp_path, monkeypatch):
  monkeypatch.setenv('SEED_ACME_TOKEN', 'a-token-of-the-run')
  (tmp_path / 'token').write_text('a-token-of-the-run')
  shown = _blocks('json')
  for block in shown:
    (tmp_path / 'cluster.json').write_text(block.text)
    assert cluster_file.load(str(tmp_path / 'cluster.json')).actors
  assert shown


@pytest.mark.parametrize('command', sorted(set(_commands())), ids=lambda c: ' '.join(c[1])[:60])
def test_command(command, monkeypatch, shown_files):
  _check_command(command[1], monkeypatch)


@pytest.mark.parametrize(
  'line',
  [
    'make trian',
    'make CONFIGS=x',
    'seed-acme trian',
    'seed-acme train --config=catch',
    'seed-acme train --config.agent.discout=1',
    'seed-acme train --config.num_actors=many',
    'seed-acme train --config.num_actors=0',
    'seed-acme evaluate --episodes=1',
    'seed-acme plot',
    'seed-acme train --config=gym_vtrace --config.environment.id=nowhere:make',
    'seed-acme train --config.network.torso=gated:Nothing',
    'seed-acme inspect',
    'seed-acme inspect --server=localhost',
    'seed-acme inspect --run_dir=runs/latest --save=x',
    'tensorboard runs',
    'python x.py',
  ],
)
def test_a_wrong_command_is_found(line, monkeypatch, shown_files):
  with pytest.raises((AssertionError, types.UserError)):
    _check_command(tuple(line.split()), monkeypatch)


def test_the_first_screen_shows_the_two_commands():
  lines = (_ROOT / 'README.md').read_text().splitlines()[:20]
  assert {'make train', 'make test'} <= set(lines)


def test_every_command_of_the_program_is_in_the_readme():
  text = (_ROOT / 'README.md').read_text()
  for name in cli._COMMANDS:
    assert f'`seed-acme {name}`' in text, name


@pytest.mark.parametrize('page', _NAMES)
def test_links_lead_somewhere(page):
  text = _FENCE.sub('', (_ROOT / page).read_text())
  for target in _LINK.findall(text):
    if not re.match(r'https?://', target):
      assert _leads_somewhere(_ROOT / page, target), f'{page}: {target}'


def _leads_somewhere(page, target):
  path, _, anchor = target.partition('#')
  linked = (page.parent / path).resolve() if path else page
  if not linked.exists() or _ROOT not in (linked, *linked.parents):
    return False
  return not anchor or anchor in _anchors(linked.read_text())


def _anchors(text):
  """As GitHub makes them of headings."""
  headings = re.findall(r'^#+ (.*)$', _FENCE.sub('', text), re.MULTILINE)
  return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in headings}


def test_a_dead_link_is_found():
  readme = _ROOT / 'README.md'
  assert _leads_somewhere(readme, 'LICENSE') and _leads_somewhere(readme, '#commands')
  for target in ('docs/nothing.md', 'docs/networks.md#nothing', '../..'):
    assert not _leads_somewhere(readme, target)


@pytest.mark.parametrize('page', _NAMES)
def test_files_and_fields_that_are_named_exist(page):
  text = (_ROOT / page).read_text()
  for code in _CODE.findall(_FENCE.sub('', text)):
    if re.fullmatch(r'(seed_acme|agents|replay|programs|configs|tests|docs|scripts)/[\w/.]*', code):
      assert (_ROOT / code).exists(), code
    if _FIELD.fullmatch(code.partition('=')[0]) and not code.endswith('.py'):
      assert _is_field(code.partition('=')[0]), code
  for field in _OVERRIDE.findall(text):
    assert _is_field(field), field


@functools.cache
def _fields():
  flat = [saved_config._flatten(configs.load(name)) for name in configs.names()]
  return frozenset().union(*flat) | {'environment.settings'}


def _is_field(name):
  return name in _fields()


def test_a_wrong_field_is_found():
  assert _is_field('agent.discount') and not _is_field('agent.discout')


@pytest.mark.parametrize('page', _NAMES)
def test_no_page_names_a_folder_of_somebodys_machine_or_holds_a_gap(page):
  text = (_ROOT / page).read_text()
  assert not _OF_A_MACHINE.findall(text)
  assert '@@' not in text and 'TODO' not in text


def test_the_fields_that_may_change_on_resume_are_all_named():
  text = (_ROOT / 'docs/operations.md').read_text()
  listed = text.partition('<!-- may change on resume -->')[2].partition('<!-- end -->')[0]
  assert set(_CODE.findall(listed)) == saved_config.MAY_CHANGE_ON_RESUME


def test_list_as_json_names_the_configurations_of_the_changelog(capsys, monkeypatch):
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  assert cli.main(['list', '--json']) == 0
  known = json.loads(capsys.readouterr().out)['configs']
  text = (_ROOT / 'CHANGELOG.md').read_text()
  assert {name for name in known if not name.startswith('bench_')} <= set(_CODE.findall(text))


@pytest.mark.parametrize(
  'block', [b for b in _blocks('python') if b.text[0] != '#'], ids=lambda b: b.page
)
def test_scripts_call_what_exists(block):
  _check_script(block.text)


def _check_script(text):
  """Imports what it imports; checks each call of seed_acme's functions, calling nothing."""
  module = ast.parse(text)
  names = {}
  for node in module.body:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
      exec(compile(ast.Module([node], []), 'script', 'exec'), names)
  for node in ast.walk(module):
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
      owner = names.get(getattr(node.func.value, 'id', None))
      if owner is not None:
        function = getattr(owner, node.func.attr)
        if function.__module__.startswith('seed_acme'):
          inspect.signature(function).bind(
            *node.args, **{keyword.arg: None for keyword in node.keywords}
          )


def test_a_wrong_script_is_found():
  _check_script('import seed_acme\nseed_acme.train(1, run_dir=2)')
  for text in (
    'import seed_acme\nseed_acme.trian(1)',
    'import seed_acme\nseed_acme.train()',
    'import seed_acme\nseed_acme.train(1, folder=2)',
    'import seed_acne',
  ):
    with pytest.raises((AttributeError, TypeError, ImportError)):
      _check_script(text)


def test_everything_exported_is_in_the_readme():
  text = (_ROOT / 'README.md').read_text()
  for name in seed_acme.__all__:
    assert f'seed_acme.{name}(' in text, name


def test_the_custom_torso_is_built_and_runs(shown_files):
  spec = environments.environment_spec(config_lib.EnvironmentConfig('catch'))
  config = config_lib.NetworkConfig(torso='gated:GatedMLP', core='lstm', core_size=8)
  network = networks.make_actor_critic(config, spec, num_policy_params=3)
  prediction, _ = network(networks.zero_inputs(spec, 5), network.initial_state(5))
  assert prediction.policy_params.shape == (5, 3)
  assert {'hidden', 'gate', 'output'} <= {v.name.split('/')[-2] for v in network.variables}
  assert len(_files()['gated.py'].splitlines()) <= 22


def test_the_custom_environment_keeps_the_contract(shown_files):
  test_class = importlib.import_module('my_environment_test').TestMyEnvironment
  checks = [name for name in dir(test_class) if name.startswith('test_')]
  assert len(checks) > 5
  for name in checks:
    getattr(test_class(), name)()


def test_the_custom_environment_takes_the_setting_shown(shown_files):
  config = config_lib.EnvironmentConfig('corridor:make', {'length': 8})
  environment = environments.make(config, num_environments=2, seed=1)
  environment.reset()
  for _ in range(8):
    timestep = environment.step(np.ones(2, np.int32))
  environment.close()
  np.testing.assert_array_equal(timestep.step_type, types.LAST)
  np.testing.assert_array_equal(timestep.reward, 1)
  np.testing.assert_array_equal(timestep.discount, 0)


def test_the_custom_agent_learns_from_a_sample(shown_files, monkeypatch):
  a2c = importlib.import_module('a2c')
  monkeypatch.setitem(agents.AGENTS, 'a2c', a2c.AGENT)
  config = dataclasses.replace(
    configs.load('catch_vtrace'),
    agent=a2c.A2CConfig(unroll_length=4, batch_size=2),
    replay=config_lib.ReplayConfig(unrolls_per_item=1),
  )
  config_validation.validate(config)
  acting = build.make_acting(config)
  learner = build.make_learner(config, acting)
  before = learner.variables().values
  update = learner.step(_sample(acting.example_unroll(config), batch_size=2), agent_steps=0)
  assert update.trained_steps == 2 * 3  # of 4 transitions the one out of LAST is none
  assert np.isfinite(list(update.metrics.values())).all()
  for old, new in zip(before, update.variables.values):
    assert not np.array_equal(old, new), 'a variable got no gradient'


def _sample(unroll, batch_size):
  """FIRST MID LAST FIRST MID, random observations, a reward at the end of the episode."""
  random = np.random.default_rng(1)
  time_major = lambda x: tf.constant(np.repeat(x[:, None], batch_size, axis=1))
  step_type = np.array([types.FIRST, types.MID, types.LAST, types.FIRST, types.MID], np.uint8)
  reward = np.array([0, 0, 1, 0, 0], np.float32)
  observation = random.random(unroll.inputs.observation.shape, np.float32)
  inputs = unroll.inputs._replace(step_type=step_type, reward=reward, observation=observation)
  initial_state, inputs, outputs, version = tree.map_structure(
    time_major, unroll._replace(initial_state=(), inputs=inputs)
  )
  return types.Sample(
    types.Unroll(initial_state, inputs, outputs, version),
    tf.zeros([batch_size], tf.uint64),
    tf.zeros([batch_size], tf.float64),
  )
