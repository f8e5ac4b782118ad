"""README.md and the pages of docs/, and the blocks in them."""

import pathlib
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [
  *(ROOT / f'{name}.md' for name in ('README', 'CHANGELOG', 'CONTRIBUTING', 'SECURITY')),
  *sorted((ROOT / 'docs').glob('*.md')),
]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
FENCE = re.compile(r'^```(\w*)\n(.*?)^```$', re.MULTILINE | re.DOTALL)
CODE = re.compile(r'`([^`\n]+)`')


class Block(NamedTuple):
  """One fenced block of a page."""

  page: str
  language: str
  text: str


def blocks(language, page_texts=None):
  texts = page_texts or {name: page.read_text() for name, page in zip(NAMES, PAGES)}
  return [
    Block(name, match[1], match[2])
    for name, text in texts.items()
    for match in FENCE.finditer(text)
    if match[1] == language
  ]


def files():
  """Returns the text of every ```python block that is a file, by name."""
  found = {}
  for block in blocks('python'):
    match = re.match(r'# (\w+\.py)\n', block.text)
    if match:
      assert match[1] not in found, f'{match[1]} is shown twice'
      found[match[1]] = block.text
  return found
