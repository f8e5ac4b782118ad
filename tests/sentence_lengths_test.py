"""scripts/sentence_lengths.py: what a sentence is, and that README and docs keep the limit."""

import pytest

from tests import sources


@pytest.fixture(name='script', scope='module')
def _script():
  return sources.script('sentence_lengths')


@pytest.mark.parametrize(
  'text, words',
  [
    ('One two three. Four five.', [3, 2]),
    ('One two\nthree four.\nFive.', [4, 1]),
    ('Is it? Yes! Good.', [2, 1, 1]),
    ('One, two; three: four - five.', [5]),
    ('Two paragraphs\n\nwithout a stop', [2, 3]),
    ('Two items:\n\n* one two\n  three. Four.\n* five\n1. six', [2, 3, 1, 1, 1]),
    ('See [this page](docs/a_page.md#some-place) first.', [4]),
    ('Run `seed-acme train --config.num_actors=4` now. `x.y` is 0.5 e.g. here.', [5, 5]),
    ('By Mnih et al. 2015, e.g. Section 3. Next.', [8, 1]),
    ('Wait for `logs/actor/0` ... and go on.', [6]),
    ('(In brackets.) "Quoted." **Bold.** End.', [2, 1, 1, 1]),
  ],
)
def test_words_of_each_sentence(script, text, words):
  assert [sentence.words for sentence in script.sentences(text)] == words


@pytest.mark.parametrize(
  'text',
  [
    '# A heading',
    '| a | table |\n|---|---|\n| with | cells |',
    '```bash\nmake train\n```',
    '![A picture of many words](images/a.png)',
    '<!-- a comment\nof two lines -->',
    '',
  ],
)
def test_what_is_not_running_text_is_left_out(script, text):
  assert [sentence.text for sentence in script.sentences(f'Before.\n\n{text}\n\nAfter.')] == [
    'Before.',
    'After.',
  ]


def test_a_sentence_has_the_line_on_which_its_paragraph_begins(script):
  text = '# Title\n\n```text\na\nb\n```\n\nOne.\nTwo.\n\n* Three.\n'
  assert [(sentence.line, sentence.text) for sentence in script.sentences(text)] == [
    (8, 'One.'),
    (8, 'Two.'),
    (11, 'Three.'),
  ]


@pytest.mark.parametrize(
  'words, p90',
  [
    ([7], 7),
    (list(range(1, 11)), 9),
    (list(range(1, 12)), 10),
    ([1] * 9 + [50], 1),
    ([1] * 8 + [50] * 2, 50),
  ],
)
def test_the_percentile_is_that_of_the_nearest_rank(script, words, p90):
  assert script.percentile(words, 0.9) == p90


@pytest.mark.parametrize('length, code', [(25, 0), (26, 1)])
def test_long_sentences_are_named_and_fail(script, tmp_path, capsys, length, code):
  page = tmp_path / 'page.md'
  page.write_text(f'Short.\n\n{"word " * length}end.\n'.replace('word end', 'end'))
  assert script.main([str(page)]) == code
  assert f'{page}:3: {length} words: word word' in capsys.readouterr().out
  assert script.main([str(page), '--most=26']) == 0


def test_readme_and_docs_are_within_the_limit(script, capsys):
  assert len(script.pages()) > 8
  assert script.main([]) == 0, capsys.readouterr().out
