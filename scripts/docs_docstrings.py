"""Docstrings on the site of `make docs`: an extension of griffe, which mkdocs.yml names.

Docstrings of this project explain parameters and fields as lines of `name: what it is`, below
one another and with an indent where they go on. Markdown would make one paragraph of them; here
each becomes an item of a list.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

# `values, rewards: ...`, `make() -> network: ...`; before a colon in a sentence there are spaces.
_ITEM = re.compile(
  r'(?P<names>\*{0,2}\w+(?:\([^)]*\))?(?: -> [\w.]+)?(?:, \*{0,2}\w+)*): (?P<what>.*)'
)


class ListOfNames(griffe.Extension):
  """Rewrites the docstring of everything that has one."""

  def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
    """Called by griffe with each module, class, function and attribute that it has read."""
    del kwargs
    if obj.docstring:
      obj.docstring.value = as_markdown(obj.docstring.value, has_summary=obj.name != '__init__')


def as_markdown(docstring: str, has_summary: bool = True) -> str:
  """With lists in place of lines that name something.

  has_summary: the first paragraph says what the whole is, and stays as it is.
  """
  paragraphs = re.split(r'\n\s*\n', docstring)
  return '\n\n'.join(
    text if has_summary and number == 0 else _paragraph(text)
    for number, text in enumerate(paragraphs)
  )


def _paragraph(text: str) -> str:
  lines = text.splitlines()
  if lines and lines[0].startswith(' '):  # an equation, or what a file looks like
    return '\n'.join(f'    {line}' for line in lines)
  done: list[str] = []
  in_item = False
  for line in lines:
    item = _ITEM.match(line)
    if item and (in_item or not done):
      line = f'* `{item["names"]}`: {item["what"]}'
      in_item = True
    elif in_item and line.startswith(' '):
      line = f'    {line.strip()}'
    elif in_item:  # such as `Returns ...` right below the last item
      line, in_item = f'\n{line}', False
    done.append(line)
  return '\n'.join(done)
