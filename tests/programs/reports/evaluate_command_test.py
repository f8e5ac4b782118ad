"""What the command says of several runs."""

import pytest

from seed_acme.programs.reports import evaluate_command


def _record(environment, score=0.5):
  return {'environment': environment, 'human_normalized_score': score}


@pytest.mark.parametrize(
  'environments, said',
  [
    (['atari:Pong', 'atari:Alien'], '2 of 57 games'),
    (['dmlab:rooms_watermaze', 'dmlab:rooms_keys_doors_puzzle'], '2 of 30 levels'),
    (['atari:Pong', 'dmlab:rooms_watermaze'], '2 games and levels'),
  ],
)
def test_what_a_mean_is_over(environments, said):
  records = [*map(_record, environments), _record('catch', None)]
  assert evaluate_command._how_many(records, 2) == said
