"""The meaning of each field of a record, from the `field: meaning` lines of its class docstring."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import re

# At the beginning of the text, or after a sentence: `port: `, `learner, actors: `, `*_cpu: `.
_HEAD = re.compile(r'(?:^|(?<=[.;] ))((?:[a-z*]\w*)(?:, [a-z*]\w*)*): ')


def summary(kind: type) -> str:
  """Returns the first paragraph of the docstring."""
  return ' '.join(inspect.cleandoc(kind.__doc__ or '').partition('\n\n')[0].split())


def meaning(kind: type, name: str) -> str:
  """Returns the meaning of the field `name`, from this class or a base class; '' = none."""
  for base in kind.__mro__:
    for names, text in _entries(base):
      if any(fnmatch.fnmatchcase(name, pattern) for pattern in names):
        return text
  return ''


@functools.cache
def _entries(kind: type) -> tuple[tuple[tuple[str, ...], str], ...]:
  """Returns (fields or patterns, meaning) of each entry below the first paragraph."""
  fields = set(getattr(kind, '__dataclass_fields__', ()))
  text = ' '.join(inspect.cleandoc(kind.__doc__ or '').partition('\n\n')[2].split())
  heads = [
    match
    for match in _HEAD.finditer(text)
    if all(fnmatch.filter(fields, name) for name in match[1].split(', '))
  ]
  ends = [match.start() for match in heads[1:]] + [len(text)]
  return tuple(
    (tuple(match[1].split(', ')), text[match.end() : end].strip())
    for match, end in zip(heads, ends)
  )
