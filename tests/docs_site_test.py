"""`make docs`: the pages link to each other, every public module has a page, dead links fail."""

import ast
import html
import pathlib
import re
import shlex
import subprocess
import sys

import pytest
import yaml

from tests import sources

pytestmark = pytest.mark.slow

_ROOT = pathlib.Path(__file__).parent.parent


def _script(name):
  return sources.script(name)


@pytest.fixture(name='hooks', scope='module')
def _hooks():
  return _script('docs_hooks')


@pytest.mark.parametrize(
  'name, uri',
  [
    ('README.md', 'index.md'),
    ('CHANGELOG.md', 'changelog.md'),
    ('docs/agents.md', 'agents.md'),
    ('docs/images/architecture.svg', 'images/architecture.svg'),
    ('LICENSE', 'files/LICENSE'),
    ('docs/evidence/pong_ppo', 'evidence/pong_ppo/index.md'),
    ('seed_acme/types.py', 'reference/seed_acme/types.md'),
    ('agents/sac/config.py', 'reference/seed_acme/agents/sac/config.md'),
    ('agents/sac', 'reference/seed_acme/agents/sac/index.md'),
    ('seed_acme/agents/sac/__init__.py', 'reference/seed_acme/agents/sac/index.md'),
    ('tests/conftest.py', 'files/tests/conftest.py'),
  ],
)
def test_where_the_site_has_a_file(hooks, name, uri):
  assert (_ROOT / name).exists()
  assert hooks._site_uri(name) == uri


@pytest.mark.parametrize(
  'origin, text, expected',
  [
    ('docs/agents.md', '[x](../agents/registry.py)', '[x](reference/seed_acme/agents/registry.md)'),
    (
      'docs/agents.md',
      '[x](networks.md#a-torso-of-your-own)',
      '[x](networks.md#a-torso-of-your-own)',
    ),
    (
      'README.md',
      '<img src="docs/images/architecture.svg"> [x](https://x.org) [y](#scope)',
      '<img src="images/architecture.svg"> [x](https://x.org) [y](#scope)',
    ),
    (
      'README.md',
      '```text\n[x](LICENSE)\n```\n[x](LICENSE)',
      '```text\n[x](LICENSE)\n```\n[x](files/LICENSE)',
    ),
    ('docs/agents.md', '[x](../agents/nothing.py)', '[x](../agents/nothing.py)'),
  ],
)
def test_links_lead_to_the_pages_of_the_files(hooks, origin, text, expected):
  assert hooks._with_links(text, origin, hooks._site_uri(origin)) == expected


def test_docstrings_become_lists():
  as_markdown = _script('docs_docstrings').as_markdown
  assert as_markdown(
    'What it does: a lot.\n\nvalues, mask: `[T]`, and\n  more.\nmake() -> network: new.\n'
    'Returns it.\n\n  x = y\n\nIn a sentence: no list.'
  ) == (
    'What it does: a lot.\n\n* `values, mask`: `[T]`, and\n    more.\n'
    '* `make() -> network`: new.\n\nReturns it.\n\n      x = y\n\nIn a sentence: no list.'
  )
  assert as_markdown('seed: of the run.', has_summary=False) == '* `seed`: of the run.'


def _settings():
  text = (_ROOT / 'mkdocs.yml').read_text(encoding='utf-8')
  return yaml.safe_load(re.sub(r'!ENV.*', "''", text))


def _build(settings, folder):
  """Builds the site below `folder` with the command of `make docs`."""
  config = folder / 'mkdocs.yml'
  config.write_text(yaml.safe_dump(settings))
  makefile = (_ROOT / 'Makefile').read_text(encoding='utf-8')
  command = re.search(r'^docs: .*\n\t(.*)$', makefile, re.MULTILINE)[1]
  command = command.replace('$(VENV)', shlex.quote(sys.prefix))
  return subprocess.run(
    f'{command} {shlex.join(["--config-file", str(config)])}',
    shell=True,
    cwd=_ROOT,
    capture_output=True,
    text=True,
    check=False,
  )


@pytest.fixture(name='site', scope='module')
def _site(tmp_path_factory):
  """Makes the pages without menus, colours, signatures and search index, which take longest."""
  folder = tmp_path_factory.mktemp('docs')
  (folder / 'theme').mkdir()
  (folder / 'theme' / 'main.html').write_text('{{ page.content }}')
  settings = _settings()
  settings['docs_dir'] = str(_ROOT / 'docs')
  settings['hooks'] = [str(_ROOT / hook) for hook in settings['hooks']]
  settings['theme']['custom_dir'] = str(folder / 'theme')
  settings['plugins'].remove('search')
  (reference,) = settings['plugins']
  python = reference['mkdocstrings']['handlers']['python']
  options = python['options']
  python['paths'] = [str(_ROOT)]
  options['extensions'] = [str(_ROOT / extension) for extension in options['extensions']]
  options['show_signature'] = False
  extensions = settings['markdown_extensions']
  extensions.remove('pymdownx.highlight')
  extensions.append({'pymdownx.highlight': {'use_pygments': False}})
  result = _build(settings, folder)
  assert result.returncode == 0, result.stderr[-4000:]
  assert 'Warning' not in result.stderr, result.stderr[-4000:]
  return folder / 'site'


@pytest.mark.processes
@pytest.mark.timeout(600)
def test_every_public_module_has_a_page_with_its_names(site, hooks):
  modules = list(hooks._modules(_ROOT / 'seed_acme'))
  assert len(modules) > 200
  for path in modules:
    page = site / hooks._site_uri(hooks._name(path)).removesuffix('.md').removesuffix('index')
    text = html.unescape((page / 'index.html').read_text(encoding='utf-8'))
    source = path / '__init__.py' if path.is_dir() else path
    dotted = hooks._name(path).removesuffix('.py').replace('/', '.')
    for node in ast.parse(source.read_text(encoding='utf-8')).body:
      if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name[0] != '_':
        assert f'id="{dotted}.{node.name}"' in text, f'{dotted} has no {node.name}'


@pytest.mark.processes
@pytest.mark.timeout(600)
def test_the_front_door_and_the_pages_are_there(site, hooks):
  text = (site / 'reference/seed_acme/index.html').read_text(encoding='utf-8')
  for name in hooks._front_door():
    assert f'#{name}"' in text, f'{name} is no link'
  for page in ('tutorial', 'agents', 'scaling', 'changelog', 'evidence/pong_ppo'):
    assert (site / page / 'index.html').is_file()
  assert (site / 'files' / 'LICENSE').read_bytes() == (_ROOT / 'LICENSE').read_bytes()
  # results.md links to it directly
  assert (site / 'evidence' / 'pong_ppo' / 'episode.mp4').is_file()
  listed = (site / 'evidence' / 'pong_ppo' / 'index.html').read_text(encoding='utf-8')
  assert 'metrics.csv' in listed and not (site / 'evidence' / 'pong_ppo' / 'metrics.csv').exists()
  kept = sum(path.stat().st_size for path in (site / 'evidence').rglob('*') if path.is_file())
  assert kept < 5_000_000  # of 43 MB
  architecture = (site / 'architecture' / 'index.html').read_text(encoding='utf-8')
  assert '../reference/seed_acme/programs/' in architecture


@pytest.mark.processes
def test_dead_links_fail(tmp_path):
  """Uses the site's settings on one page, without the reference, which takes long.

  The site itself has links that are not dead.
  """
  (tmp_path / 'docs').mkdir()
  page = tmp_path / 'docs' / 'index.md'
  settings = _settings()
  del settings['hooks'], settings['plugins'], settings['theme']
  page.write_text(
    '# Title\n\n[x](#title) [x](nothing.md) [x](../nothing/x.py) [x](index.md#nothing)\n'
  )
  result = _build(settings, tmp_path)
  assert result.returncode == 1
  for link in ("'nothing.md'", "'../nothing/x.py'", "'index.md#nothing'"):
    assert link in result.stderr, result.stderr
  assert '#title' not in result.stderr, result.stderr
