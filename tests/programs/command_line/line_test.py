"""The first pass over a command line."""

import os

import pytest

from seed_acme.programs.command_line import line


@pytest.mark.parametrize(
  ('word', 'expanded'),
  [
    ('--run_dir=~/runs/x', '--run_dir={home}/runs/x'),
    ('--config.environment.settings.level_cache=~/levels', None),
    ('--run_dir=runs/~x', '--run_dir=runs/~x'),
    ('a=~/b', 'a=~/b'),
  ],
)
def test_the_home_folder_is_expanded_in_the_value_of_an_option(word, expanded):
  [found] = line.read(['train', word]).words
  wanted = expanded or word.replace('~', '{home}')
  assert found == wanted.format(home=os.path.expanduser('~'))
