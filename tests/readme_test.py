"""README.md and docs/ are true: links, files and fields exist.

The convention: each line of a ```bash block is a command that works from the repository's root with
`.venv/bin` on the PATH. A ```python block whose first line is `# name.py` is that file; every
other one is a script. Everything else is ```text.
"""

import ast
import dataclasses
import functools
import inspect
import json
import re

import pytest

import seed_acme
from seed_acme import config as config_lib
from seed_acme.configs import registry as configs
from seed_acme.loggers import csv_file
from seed_acme.programs import cli
from seed_acme.programs.cluster import cluster_file
from seed_acme.storage import saved_config
from tests import command_names
from tests import pages

_LANGUAGES = ('bash', 'json', 'python', 'text')
_LINK = re.compile(r'!?\[[^\]]*\]\(([^)\s]+)\)')
# Names such as replay/priority_mean, which look like a path.
_METRICS = csv_file.read(pages.ROOT / 'docs/evidence/pong_r2d2/metrics.csv').keys()
_DICTIONARIES = frozenset({'environment.settings', 'network.torso_settings'})
_OVERRIDE = re.compile(r'--config\.([a-z_]+(?:\.[a-z_]+)*)')
_SECTIONS = [
  field.name
  for field in dataclasses.fields(config_lib.ExperimentConfig)
  if field.name in ('agent', 'network', 'environment') or dataclasses.is_dataclass(field.default)
]
_FIELD = re.compile(rf'(?:{"|".join(_SECTIONS)})(?:\.[a-z_]+)+')
_OF_A_MACHINE = re.compile(r'(?<![\w.])/(?:home|root|work|tmp|usr|opt|mnt)/')


@pytest.mark.parametrize('page', pages.NAMES)
def test_every_block_has_a_language(page):
  text = (pages.ROOT / page).read_text()
  fences = re.findall(r'^```.*$', text, re.MULTILINE)
  assert len(fences) % 2 == 0, 'a block is not closed'
  for opening in fences[::2]:
    assert opening[3:] in _LANGUAGES, f'{opening}: expected one of {_LANGUAGES}'


def test_the_cluster_files_that_are_shown_are_good(tmp_path, monkeypatch):
  monkeypatch.setenv('SEED_ACME_TOKEN', 'a-token-of-the-run')
  (tmp_path / 'token').write_text('a-token-of-the-run')
  shown = pages.blocks('json')
  for block in shown:
    (tmp_path / 'cluster.json').write_text(block.text)
    assert cluster_file.load(str(tmp_path / 'cluster.json')).actors
  assert shown


def test_the_first_screen_shows_two_commands_a_picture_and_a_table():
  lines = (pages.ROOT / 'README.md').read_text().splitlines()[:30]
  assert {'make train', 'make test'} <= set(lines)
  assert sum(line.startswith('![') and 'shields.io' not in line for line in lines) == 1
  assert sum(line.startswith('|---') for line in lines) == 1


def test_the_readme_leads_to_every_page():
  text = (pages.ROOT / 'README.md').read_text()
  for page in (pages.ROOT / 'docs').glob('*.md'):
    assert f'(docs/{page.name}' in text, page.name


def test_every_command_of_the_program_has_its_row():
  text = (pages.ROOT / 'docs/commands.md').read_text()
  for name in command_names.listed():
    assert f'`seed-acme {name}`' in text, name


@pytest.mark.parametrize('page', pages.NAMES)
def test_links_lead_somewhere(page):
  text = pages.FENCE.sub('', (pages.ROOT / page).read_text())
  for target in _LINK.findall(text):
    if not re.match(r'https?://', target):
      assert _leads_somewhere(pages.ROOT / page, target), f'{page}: {target}'


def _leads_somewhere(page, target):
  path, _, anchor = target.partition('#')
  linked = (page.parent / path).resolve() if path else page
  if not linked.exists() or pages.ROOT not in (linked, *linked.parents):
    return False
  return not anchor or anchor in _anchors(linked.read_text())


def _anchors(text):
  """Returns the anchors that GitHub makes from headings."""
  headings = re.findall(r'^#+ (.*)$', pages.FENCE.sub('', text), re.MULTILINE)
  return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in headings}


def test_a_dead_link_is_found():
  readme = pages.ROOT / 'README.md'
  assert _leads_somewhere(readme, 'LICENSE') and _leads_somewhere(readme, '#citation-licence')
  for target in ('docs/nothing.md', 'docs/networks.md#nothing', '../..'):
    assert not _leads_somewhere(readme, target)


@pytest.mark.parametrize('page', pages.NAMES)
def test_files_and_fields_that_are_named_exist(page):
  text = (pages.ROOT / page).read_text()
  for code in pages.CODE.findall(pages.FENCE.sub('', text)):
    if re.fullmatch(r'(seed_acme|agents|replay|programs|configs|tests|docs|scripts)/[\w/.]*', code):
      assert (pages.ROOT / code).exists() or code in _METRICS, code
    if _FIELD.fullmatch(code.partition('=')[0]) and not code.endswith(('.py', '.json')):
      assert _is_field(code.partition('=')[0]), code
  # Fields of a custom agent, whose record the page shows.
  shown = {f'agent.{name}' for name in re.findall(r'^  ([a-z_]+): \w+ = ', text, re.MULTILINE)}
  for field in _OVERRIDE.findall(text):
    assert _is_field(field) or field in shown, field


@functools.cache
def _fields():
  flat = [saved_config.flatten(configs.load(name)) for name in configs.names()]
  return frozenset().union(*flat) | _DICTIONARIES


def _is_field(name):
  # Any setting may be named, even if no configuration has it: `new_settings`.
  return name in _fields() or name.rpartition('.')[0] in _DICTIONARIES


def test_a_wrong_field_is_found():
  assert _is_field('agent.discount') and not _is_field('agent.discout')


@pytest.mark.parametrize('page', pages.NAMES)
def test_no_page_names_a_folder_of_somebodys_machine_or_holds_a_gap(page):
  text = (pages.ROOT / page).read_text()
  assert not _OF_A_MACHINE.findall(text)
  assert '@@' not in text and 'TODO' not in text


def test_the_fields_that_may_change_on_resume_are_all_named():
  text = (pages.ROOT / 'docs/operations.md').read_text()
  listed = text.partition('<!-- may change on resume -->')[2].partition('<!-- end -->')[0]
  assert set(pages.CODE.findall(listed)) == saved_config.MAY_CHANGE_ON_RESUME


def test_list_as_json_names_the_configurations_of_the_changelog(capsys, monkeypatch):
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  assert cli.main(['list', '--json']) == 0
  known = json.loads(capsys.readouterr().out)['configs']
  text = (pages.ROOT / 'CHANGELOG.md').read_text()
  assert {name for name in known if not name.startswith('bench_')} <= set(pages.CODE.findall(text))


@pytest.mark.parametrize(
  'block', [b for b in pages.blocks('python') if b.text[0] != '#'], ids=lambda b: b.page
)
def test_scripts_call_what_exists(block):
  _check_script(block.text)


def _check_script(text):
  """Runs the imports, and checks the arguments of each call of seed_acme without calling it."""
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


def test_everything_exported_is_explained():
  text = (pages.ROOT / 'docs/operations.md').read_text()
  for name in seed_acme.__all__:
    assert re.search(rf'\bseed_acme\.{name}\b', text), name
