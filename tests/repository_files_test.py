"""Files for hosts and tools can be parsed, and the files that they name exist."""

import pathlib
import re

import pytest
import yaml

from tests import actor_pythons

_ROOT = pathlib.Path(__file__).parent.parent


def _load(name):
  return yaml.safe_load((_ROOT / name).read_text(encoding='utf-8'))


def test_the_citation_names_the_paper_that_the_readme_cites():
  citation = _load('CITATION.cff')
  assert citation['cff-version'] == '1.2.0' and citation['type'] == 'software'
  assert citation['title'] == 'seed_acme' and citation['message'] and citation['authors']
  paper = citation['references'][0]
  readme = (_ROOT / 'README.md').read_text(encoding='utf-8')
  assert f'{{{paper["title"]}}}' in readme and f'{{{paper["year"]}}}' in readme
  assert paper['url'] in readme
  # `Rapha{\"e}l`, as BibTeX writes it.
  cited = re.search(r'author\s+= \{(.*)\},\n', readme)[1].replace('{\\"e}', 'ë').split(' and ')
  names = [f'{author["given-names"]} {author["family-names"]}' for author in paper['authors']]
  assert names == cited


def test_continuous_integration_runs_what_a_developer_runs():
  job = _load('.github/workflows/ci.yml')['jobs']['test']
  assert job['runs-on'].startswith('ubuntu-')
  python = [step['with']['python-version'] for step in job['steps'] if 'with' in step]
  # The learner's versions come last, so that `python` means the newest of them; actors run under
  # the others.
  assert python[0].split() == [*actor_pythons.VERSIONS, '3.10', '3.11']
  command = [step['run'] for step in job['steps'] if 'run' in step][-1].split()[-1]
  assert (_ROOT / command).stat().st_mode & 0o111, f'{command} cannot be executed'


def test_continuous_integration_plays_on_footballs_real_engine():
  job = _load('.github/workflows/ci.yml')['jobs']['football']
  commands = [step['run'] for step in job['steps'] if 'run' in step]
  assert commands[-2].endswith('make football')
  assert (_ROOT / commands[-1].split()[-1]).is_file()


def test_continuous_integration_builds_the_site():
  job = _load('.github/workflows/ci.yml')['jobs']['docs']
  assert [step['run'] for step in job['steps'] if 'run' in step] == ['make docs']
  assert 'mkdocs build --strict' in (_ROOT / 'Makefile').read_text(encoding='utf-8')


@pytest.mark.parametrize('name', ['bug_report', 'feature_request'])
def test_issue_templates_have_the_header_that_hosts_read(name):
  text = (_ROOT / f'.github/ISSUE_TEMPLATE/{name}.md').read_text(encoding='utf-8')
  _, header, body = text.split('---\n', 2)
  header = yaml.safe_load(header)
  assert header['name'] and header['about'] and body.strip()


def test_the_commit_hooks_are_the_linter_and_the_formatter_of_make_check():
  hooks = [hook for repo in _load('.pre-commit-config.yaml')['repos'] for hook in repo['hooks']]
  entries = [hook['entry'].split()[:2] for hook in hooks]
  assert entries == [['.venv/bin/ruff', 'check'], ['.venv/bin/ruff', 'format']]
  makefile = (_ROOT / 'Makefile').read_text(encoding='utf-8')
  assert '/bin/ruff check' in makefile and '/bin/ruff format --check' in makefile
