"""The table of human and random scores."""

import math

import pytest

from seed_acme import types
from seed_acme.envs import atari_games


def test_there_are_57_games_and_people_beat_chance_in_each():
  assert len(atari_games.GAMES) == len(set(atari_games.GAMES)) == 57
  assert list(atari_games.GAMES) == sorted(atari_games.GAMES)
  assert all(scores.human > scores.random for scores in atari_games.SCORES.values())


# Sums of the columns of dqn_zoo/atari_data.py, which show a wrong digit anywhere.
def test_no_number_slipped():
  assert math.isclose(sum(s.random for s in atari_games.SCORES.values()), 50864.9, abs_tol=0.05)
  assert math.isclose(sum(s.human for s in atari_games.SCORES.values()), 606494.2, abs_tol=0.05)


@pytest.mark.parametrize(
  ('game', 'random', 'human'),
  [
    ('Alien', 227.8, 7127.7),
    ('Breakout', 1.7, 30.5),
    ('DoubleDunk', -18.6, -16.4),
    ('MontezumaRevenge', 0.0, 4753.3),
    ('Pitfall', -229.4, 6463.7),
    ('Pong', -20.7, 14.6),
    ('Skiing', -17098.1, -4336.9),
    ('VideoPinball', 16256.9, 17667.9),
    ('Zaxxon', 32.5, 9173.3),
  ],
)
def test_spot_values(game, random, human):
  assert atari_games.SCORES[game] == (random, human)
  assert atari_games.human_normalized_score(game, (random + human) / 2) == pytest.approx(0.5)


@pytest.mark.parametrize('game', atari_games.GAMES)
def test_random_is_0_and_human_is_1(game):
  random, human = atari_games.SCORES[game]
  assert atari_games.human_normalized_score(game, random) == 0
  assert atari_games.human_normalized_score(game, human) == pytest.approx(1)


def test_a_wrong_game_names_near_ones():
  with pytest.raises(types.UserError, match=r"'MontezumasRevenge' \(near: MontezumaRevenge"):
    atari_games.human_normalized_score('MontezumasRevenge', 1)
