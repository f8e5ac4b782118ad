"""How long the sentences of README.md and docs/*.md are: `python scripts/sentence_lengths.py`.

Prints the median and the 90th percentile of the words per sentence, and the longest ten sentences
with file and line. Ends with 1 if the 90th percentile is above `--most`.

A sentence is running text up to a full stop, a question mark or an exclamation mark; neither a
colon nor a semicolon ends it. A list item ends its last sentence. Headings, tables, code blocks,
images, comments and the addresses of links are left out. Words in `code` count like others.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
import math
import pathlib
import re
import statistics
import sys
from typing import NamedTuple

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_FENCE = re.compile(r'^ *```.*?^ *```[^\n]*$', re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r'<!--.*?-->', re.DOTALL)
_IMAGE = re.compile(r'!\[[^\]]*\]\([^)]*\)')
_LINK = re.compile(r'\[([^\]]*)\]\([^)]*\)')
_CODE = re.compile(r'`[^`]+`')
_ITEM = re.compile(r' *(?:[-*+]|\d+\.) +')
_WORD = re.compile(r'\w')
# Followed by space and by what may begin a sentence; the stop may stand within brackets or quotes.
_END = re.compile(r'(?<=[.!?])[)"\'*_]*\s+(?=[(\[*_"\']*[A-Z0-9`])')
# A full stop after these ends no sentence.
_ABBREVIATION = re.compile(r'\b(?:al|e\.g|i\.e|vs|cf|Fig|eq|No)\.(?=\s)')


class Sentence(NamedTuple):
  """line: where its paragraph begins, counted from 1. words: how many."""

  file: str
  line: int
  words: int
  text: str


def sentences(text: str, file: str = '') -> list[Sentence]:
  """Those of a page in Markdown, in their order."""
  found = []
  for line, paragraph in _paragraphs(text):
    for sentence in _END.split(_plain(paragraph)):
      words = sum(bool(_WORD.search(word)) for word in sentence.split())
      if words:
        found.append(Sentence(file, line, words, ' '.join(sentence.split())))
  return found


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
  """(line, text) of each paragraph and of each list item."""
  for pattern in (_FENCE, _COMMENT, _IMAGE):
    text = pattern.sub(lambda match: '\n' * match[0].count('\n'), text)
  begin, lines = 0, []
  for number, line in enumerate([*text.splitlines(), ''], start=1):
    item = _ITEM.match(line)
    is_text = bool(line.strip()) and not line.lstrip().startswith(('#', '|'))
    if lines and (item or not is_text):
      yield begin, '\n'.join(lines)
      lines = []
    if is_text:
      begin = begin if lines else number
      lines.append(line[item.end() :] if item else line)


def _plain(paragraph: str) -> str:
  """Without addresses, and without stops that end no sentence."""
  hide = lambda match: re.sub(r'[.!?]', '·', match[0])
  return _ABBREVIATION.sub(hide, _CODE.sub(hide, _LINK.sub(r'\1', paragraph)))


def percentile(words: list[int], share: float) -> int:
  """The least length that at least this share of the sentences does not exceed."""
  return sorted(words)[max(0, math.ceil(share * len(words)) - 1)]


def pages() -> list[pathlib.Path]:
  """README.md and docs/*.md."""
  return [_ROOT / 'README.md', *sorted((_ROOT / 'docs').glob('*.md'))]


def main(arguments: list[str]) -> int:
  """Returns what the command ends with."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('files', nargs='*', type=pathlib.Path, default=pages())
  parser.add_argument('--most', type=int, default=25, help='words of the 90th percentile')
  options = parser.parse_args(arguments)
  found = [
    sentence
    for file in options.files
    for sentence in sentences(file.read_text(encoding='utf-8'), str(file))
  ]
  if not found:
    parser.error('no sentence in these files: name a page of running text')
  words = [sentence.words for sentence in found]
  p90 = percentile(words, 0.9)
  print(f'{len(found)} sentences, median {statistics.median(words):g} words, p90 {p90}')
  for sentence in sorted(found, key=lambda sentence: -sentence.words)[:10]:
    print(f'{sentence.file}:{sentence.line}: {sentence.words} words: {sentence.text[:60]}...')
  if p90 > options.most:
    print(f'p90 is {p90} words, above {options.most}: divide the longest sentences')
  return int(p90 > options.most)


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
