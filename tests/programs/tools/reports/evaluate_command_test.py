"""The output of the command for several runs."""

import pytest

from seed_acme.programs.tools.reports import evaluate_command


def _record(environment, score=0.5):
  return {'environment': environment, 'human_normalized_score': score}


def test_large_returns_are_printed_in_full():
  record = {
    'episodes': 10,
    'greedy': True,
    'checkpoint_agent_steps': 3_000_000,
    'return_mean': 10_330.4,
    'return_standard_error': 1_204.0,
    'return_min': -9.5,
    'return_max': 20_000.0,
    'length_mean': 27_000.0,
    'human_normalized_score': None,
  }
  assert evaluate_command.describe(record) == (
    '10 greedy episodes of the checkpoint at 3,000,000 steps: return 10,330 +- 1,204 '
    '(standard error), from -9.5 to 20,000, 27,000 steps long'
  )


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
