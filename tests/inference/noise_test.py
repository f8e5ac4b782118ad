"""Random numbers: range, distribution, and the values that they depend on."""

from __future__ import annotations

import numpy as np
import pytest

from seed_acme.inference import noise


def draw(seed: int, env: int, run: int, row: int, num: int = 4) -> np.ndarray:
  one = lambda x: np.array([x], np.int64)
  return uniforms(seed, one(env), one(run), one(row), num)[0]


def uniforms(
  seed: int, envs: np.ndarray, runs: np.ndarray, rows: np.ndarray, num: int
) -> np.ndarray:
  return noise.uniforms(noise.stream_keys(seed, envs, runs), rows.astype(np.uint64), num)


def grid(num_envs: int, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
  envs, rows = np.meshgrid(np.arange(num_envs), np.arange(num_rows), indexing='ij')
  return envs.ravel(), rows.ravel()


@pytest.mark.parametrize('bits', [0, 2**64 - 1])
def test_the_extremes_lie_inside_the_open_interval(bits, monkeypatch):
  monkeypatch.setattr(noise, '_mix', lambda x: np.full_like(x, bits))
  drawn = draw(1, 2, 3, 4)
  assert drawn.dtype == np.float32
  assert (drawn > 0).all() and (drawn < 1).all(), drawn


def test_the_same_key_gives_the_same_numbers_and_any_other_key_others():
  key = (1, 2, 3, 4)
  base = draw(*key)
  np.testing.assert_array_equal(base, draw(*key))
  seen = [tuple(base)]
  for place in range(4):
    for delta in (1, 2, 2**33):
      other = list(key)
      other[place] += delta
      seen.append(tuple(draw(*other)))
  assert len(set(seen)) == len(seen)
  assert len(set(base)) == base.size


def test_no_number_of_a_stream_is_used_twice():
  rows = np.arange(1000)
  same = lambda x: np.full(1000, x, np.int64)
  stream = uniforms(5, same(6), same(7), rows, 3)
  # 3,000 of 2^23 numbers: half a collision is expected, and twenty never occur.
  assert np.unique(stream).size > 3000 - 20


def test_numbers_do_not_depend_on_the_batch():
  random = np.random.default_rng(0)
  envs, rows = grid(20, 5)
  runs = random.integers(1, 2**62, envs.size)
  together = uniforms(9, envs, runs, rows, 3)
  order = random.permutation(envs.size)
  np.testing.assert_array_equal(
    together[order], uniforms(9, envs[order], runs[order], rows[order], 3)
  )
  for i in (0, 17, 99):
    np.testing.assert_array_equal(together[i], draw(9, envs[i], runs[i], rows[i], 3))


def test_env_ids_of_any_integer_type_are_the_same():
  envs, rows = grid(8, 2)
  runs = np.full(envs.size, 77, np.int64)
  np.testing.assert_array_equal(
    uniforms(3, envs.astype(np.int32), runs, rows, 2),
    uniforms(3, envs.astype(np.int64), runs, rows, 2),
  )


def chi_square(counts: np.ndarray) -> float:
  expected = counts.sum() / counts.size
  return float(((counts - expected) ** 2).sum() / expected)


def test_numbers_are_uniform_over_rows_and_environments():
  envs, rows = grid(64, 400)
  drawn = uniforms(1, envs, np.full(envs.size, 12345), rows, 1)[:, 0]
  # With 99 degrees of freedom, chi-square has mean 99 and deviation 14; the bound is five of them.
  assert chi_square(np.histogram(drawn, 100, (0, 1))[0]) < 99 + 5 * 14.1


@pytest.mark.parametrize('neighbour', ['row', 'environment', 'number'])
def test_neighbours_are_independent(neighbour):
  envs, rows = grid(64, 400)
  drawn = uniforms(2, envs, np.full(envs.size, 99), rows, 2).reshape(64, 400, 2)
  first, second = {
    'row': (drawn[:, :-1, 0], drawn[:, 1:, 0]),
    'environment': (drawn[:-1, :, 0], drawn[1:, :, 0]),
    'number': (drawn[..., 0], drawn[..., 1]),
  }[neighbour]
  counts = np.histogram2d(first.ravel(), second.ravel(), 10, [(0, 1), (0, 1)])[0]
  assert chi_square(counts) < 99 + 5 * 14.1
