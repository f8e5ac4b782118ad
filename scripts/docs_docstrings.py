"""The format of docstrings on the site of `make docs`: a griffe extension, named in mkdocs.yml.

Docstrings of this project explain parameters and fields as lines of `name: meaning`, one below the
other, with indented continuation lines. Markdown would join them into one paragraph, so each
becomes a list item.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

# `values, rewards: ...`, `make() -> network: ...`; a colon within a sentence has words before it.
_ITEM = re.compile(
  r'(?P<names>\*{0,2}\w+(?:\([^)]*\))?(?: -> [\w.]+)?(?:, \*{0,2}\w+)*): (?P<what>.*)'
)


class ListOfNames(griffe.Extension):
  """A griffe extension that rewrites every docstring."""

  def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
    """Rewrites the docstring of an object; griffe calls it for each one that it has read."""
    del kwargs
    if obj.docstring:
      obj.docstring.value = as_markdown(obj.docstring.value, has_summary=obj.name != '__init__')


def as_markdown(docstring: str, has_summary: bool = True) -> str:
  """Returns the docstring with lists instead of lines that name something.

  has_summary: the first paragraph is a summary, and stays as it is.
  """
  paragraphs = re.split(r'\n\s*\n', docstring)
  return '\n\n'.join(
    text if has_summary and number == 0 else _paragraph(text)
    for number, text in enumerate(paragraphs)
  )


def _paragraph(text: str) -> str:
  lines = text.splitlines()
  if lines and lines[0].startswith(' '):  # an equation, or an example of a file
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
