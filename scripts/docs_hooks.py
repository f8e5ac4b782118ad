"""The mkdocs hooks that complete the site of `make docs`, named in mkdocs.yml.

The pages in docs/ are written for readers of the repository, so their links point to its files. On
the site, such a link points to a page for the file:

* README.md is the first page, and the other Markdown files of the root are pages, too;
* a module has a page of the API reference, and a package has a page that lists its modules;
* any other file is copied, and a folder gets a page that lists its files.

The evidence behind the results, tens of megabytes of logs and checkpoints, stays in the repository.
Pages name it, and only files that a page links to directly, such as a video, are copied.

A link to a missing file is left unchanged, and mkdocs rejects it. No module is named here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
import pathlib
import posixpath
import re
from typing import Any

from mkdocs.config import defaults
from mkdocs.structure import files as files_lib
from mkdocs.structure import pages as pages_lib

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_PACKAGE = _ROOT / 'seed_acme'
_REFERENCE = 'reference'
_EVIDENCE = 'evidence/'  # within docs/
_FIRST = ('README.md', 'docs/tutorial.md')  # in the menu
_FENCE = re.compile(r'(^ *```.*?^ *```[^\n]*$)', re.MULTILINE | re.DOTALL)
# In Markdown or HTML: the text before a target, its path, its anchor.
_LINK = re.compile(r'(\]\(|(?:src|href)=")([^)"\s#]+)(#[^)"\s]*)?(?=[)"\s])')


def on_config(config: defaults.MkDocsConfig) -> defaults.MkDocsConfig:
  """Makes the menu: README and tutorial, the other pages of docs/, the reference, the root's."""
  guides = [f'docs/{path.name}' for path in sorted((_ROOT / 'docs').glob('*.md'))]
  home, *others = _root_pages()
  config.nav = [
    {'Home': _site_uri(home)},
    *([{'Tutorial': _site_uri(_FIRST[1])}] if _FIRST[1] in guides else []),
    {'Guide': [_site_uri(page) for page in guides if page not in _FIRST]},
    {'API reference': _menu(_PACKAGE)},
    {'Project': [_site_uri(page) for page in others]},
  ]
  return config


def on_files(files: files_lib.Files, config: defaults.MkDocsConfig) -> files_lib.Files:
  """Adds pages of the root, the reference, and linked files; removes files that no page needs."""
  linked = sorted(_linked())
  for file in [file for file in files if file.src_uri.startswith(_EVIDENCE)]:
    if f'docs/{file.src_uri}' not in linked:
      files.remove(file)
  for name in _root_pages():
    text = (_ROOT / name).read_text(encoding='utf-8')
    files.append(files_lib.File.generated(config, _site_uri(name), content=text))
  for path in _modules(_PACKAGE):
    content = _reference_page(path)
    files.append(files_lib.File.generated(config, _site_uri(_name(path)), content=content))
  for name in linked:
    if files.get_file_from_path(_site_uri(name)) is None:
      files.append(_copy_or_list(name, linked, config))
  return files


def on_page_markdown(markdown: str, page: pages_lib.Page, **kwargs: Any) -> str:
  """Turns links to files of the repository into links to their pages."""
  del kwargs
  return _with_links(markdown, _origin(page.file.src_uri), page.file.src_uri)


def _root_pages() -> list[str]:
  names = {path.name for path in _ROOT.glob('*.md')}
  return [_FIRST[0], *sorted(names - {_FIRST[0]})]


def _origin(site_uri: str) -> str:
  """Returns the repository's file for a page, to which its links are relative."""
  at_root = {_site_uri(name): name for name in _root_pages()}
  return at_root.get(site_uri, f'docs/{site_uri}')


def _with_links(markdown: str, origin: str, site_uri: str) -> str:
  def link(match: re.Match[str]) -> str:
    name = _target(origin, match[2])
    if name is None:
      return match[0]
    target = posixpath.relpath(_site_uri(name), posixpath.dirname(site_uri) or '.')
    return f'{match[1]}{target}{match[3] or ""}'

  parts = _FENCE.split(markdown)  # every second part is a code block
  return ''.join(part if number % 2 else _LINK.sub(link, part) for number, part in enumerate(parts))


def _target(origin: str, link: str) -> str | None:
  """Returns a link's target relative to the root; None = not a file of the repository."""
  if re.match(r'[a-z]+:', link):
    return None
  path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))
  return path if not path.startswith('..') and (_ROOT / path).exists() else None


def _linked() -> set[str]:
  """Returns all link targets of the repository's pages."""
  origins = [*_root_pages(), *(f'docs/{path.name}' for path in (_ROOT / 'docs').glob('*.md'))]
  return {
    name
    for origin in origins
    for part in _FENCE.split((_ROOT / origin).read_text(encoding='utf-8'))[::2]
    for match in _LINK.finditer(part)
    if (name := _target(origin, match[2]))
  }


def _copy_or_list(name: str, linked: list[str], config: defaults.MkDocsConfig) -> files_lib.File:
  """Returns a copy of a file, or a page that lists a folder's files. linked: files on the site."""
  path = _ROOT / name
  if path.is_file():
    return files_lib.File.generated(config, _site_uri(name), abs_src_path=str(path))
  below = sorted(
    file for file in path.rglob('*') if file.is_file() and '__pycache__' not in file.parts
  )
  uri = posixpath.dirname(_site_uri(name))
  entries = [
    f'* [{file.relative_to(path)}]({posixpath.relpath(_site_uri(_name(file)), uri)})'
    if _name(file) in linked
    else f'* `{file.relative_to(path)}` ({_size(file)})'
    for file in below
  ]
  where = f'`{name}`'
  if config.repo_url:
    where = f'[{where}]({config.repo_url.rstrip("/")}/tree/main/{name})'
  text = [f'# {path.name}', '', f'Files of {where} in the repository:', '', *entries, '']
  return files_lib.File.generated(config, _site_uri(name), content='\n'.join(text))


def _size(file: pathlib.Path) -> str:
  size = file.stat().st_size
  return f'{size / 1e6:.1f} MB' if size >= 100_000 else f'{max(1, round(size / 1e3))} kB'


def _name(path: pathlib.Path) -> str:
  return path.relative_to(_ROOT).as_posix()


def _site_uri(name: str) -> str:
  """Returns the site's path for a file or folder, given relative to the repository's root."""
  path = _ROOT / name
  if module := _module_path(path):
    below = _name(module)
    return f'{_REFERENCE}/{below}/index.md' if module.is_dir() else f'{_REFERENCE}/{below[:-3]}.md'
  if name == _FIRST[0]:
    return 'index.md'
  if '/' not in name and name.endswith('.md'):
    return name.lower()
  below = name.removeprefix('docs/') if name.startswith('docs/') else f'files/{name}'
  return f'{below}/index.md' if path.is_dir() else below


def _module_path(path: pathlib.Path) -> pathlib.Path | None:
  """Returns a module's path within seed_acme/, following its links; None = no part of it."""
  is_module = path.suffix == '.py' or (path / '__init__.py').is_file()
  if not is_module:
    return None
  if path.name == '__init__.py':
    path = path.parent
  if path.is_relative_to(_PACKAGE):
    return path
  linked = _PACKAGE / path.relative_to(_ROOT)
  return linked if linked.exists() else None


def _children(package: pathlib.Path) -> list[pathlib.Path]:
  """Returns the public modules and packages directly within a package, by name."""
  return sorted(
    path
    for path in package.iterdir()
    if not path.name.startswith('_') and (path.suffix == '.py' or (path / '__init__.py').is_file())
  )


def _modules(package: pathlib.Path) -> Iterator[pathlib.Path]:
  """Yields a package and everything below it, following links."""
  yield package
  for path in _children(package):
    if path.is_dir():
      yield from _modules(path)
    else:
      yield path


def _menu(package: pathlib.Path) -> list[Any]:
  """Returns a package's menu with its own page first, as `navigation.indexes` expects it."""
  return [
    _site_uri(_name(package)),
    *(
      {path.name: _menu(path)} if path.is_dir() else {path.stem: _site_uri(_name(path))}
      for path in _children(package)
    ),
  ]


def _reference_page(path: pathlib.Path) -> str:
  """Returns the page of a module: its public names; for a package, also its modules."""
  dotted = _name(path).removesuffix('.py').replace('/', '.')
  lines = [f'# `{dotted}`', '', f'::: {dotted}', '']
  if path == _PACKAGE:
    lines += [
      '## From Python',
      '',
      *(f'* [`seed_acme.{name.rpartition(".")[2]}`][{name}]' for name in _front_door()),
      '',
      '## Modules',
      '',
    ]
  if path.is_dir():
    lines += ['| | |', '|---|---|', *map(_row, _children(path)), '']
  return '\n'.join(lines)


def _row(path: pathlib.Path) -> str:
  source = path / '__init__.py' if path.is_dir() else path
  docstring = ast.get_docstring(ast.parse(source.read_text(encoding='utf-8'))) or ''
  first = docstring.partition('\n\n')[0].replace('\n', ' ').replace('|', '&#124;')
  target = f'{path.name}/index.md' if path.is_dir() else f'{path.stem}.md'
  return f'| [`{path.stem}`]({target}) | {first} |'


def _front_door() -> list[str]:
  """Returns where the lazy names of the package are defined; griffe sees no `__getattr__`."""
  tree = ast.parse((_PACKAGE / '__init__.py').read_text(encoding='utf-8'))
  (public,) = (
    ast.literal_eval(node.value)
    for node in tree.body
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == '_PUBLIC'
  )
  return [f'{_PACKAGE.name}.{module}.{name}' for name, module in public.items()]
