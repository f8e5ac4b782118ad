"""Random numbers: range, distribution, and what they depend on."""
from __future__ import annotations

import numpy as np
import pytest

from seed_acme.inference import noise


def draw(seed: int, env: int, run: int, row: int, num: int = 4) -> np.ndarray:
  one = lambda x, dtype: np.array([x], dtype)
  return noise.uniforms(seed, one(env, np.int64), one(run, np.int64), one(row, np.int64), num)[0]


def grid(num_envs: int, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
  envs, rows = np.meshgrid(np.arange(num_envs), np.arange(num_rows), indexing='ij')
  return envs.ravel(), rows.ravel()


@pytest.mark.parametrize('bits', [0, 2**64 - 1])
def test_the_extremes_lie_inside_the_open_interval(bits, monkeypatch):
  monkeypatch.setattr(noise, '_mix', lambda x: np.full_like(x, bits))
  uniforms = draw(1, 2, 3, 4)
  assert uniforms.dtype == np.float32
  assert (uniforms > 0).all() and (uniforms < 1).all(), uniforms


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


def test_fewer_numbers_are_a_prefix_of_more():
  np.testing.assert_array_equal(draw(5, 6, 7, 8, 2), draw(5, 6, 7, 8, 5)[:2])


def test_numbers_do_not_depend_on_the_batch():
  random = np.random.default_rng(0)
  envs, rows = grid(20, 5)
  runs = random.integers(1, 2**62, envs.size)
  together = noise.uniforms(9, envs, runs, rows, 3)
  order = random.permutation(envs.size)
  np.testing.assert_array_equal(
      together[order], noise.uniforms(9, envs[order], runs[order], rows[order], 3))
  for i in (0, 17, 99):
    np.testing.assert_array_equal(together[i], draw(9, envs[i], runs[i], rows[i], 3))


def test_env_ids_of_any_integer_type_are_the_same():
  envs, rows = grid(8, 2)
  runs = np.full(envs.size, 77, np.int64)
  np.testing.assert_array_equal(
      noise.uniforms(3, envs.astype(np.int32), runs, rows, 2),
      noise.uniforms(3, envs.astype(np.int64), runs, rows, 2))


def chi_square(counts: np.ndarray) -> float:
  expected = counts.sum() / counts.size
  return float(((counts - expected)**2).sum() / expected)


def test_numbers_are_uniform_over_rows_and_environments():
  envs, rows = grid(64, 400)
  uniforms = noise.uniforms(1, envs, np.full(envs.size, 12345), rows, 1)[:, 0]
  # Degrees of freedom 99: the mean of chi-square is 99, its deviation 14; five of them.
  assert chi_square(np.histogram(uniforms, 100, (0, 1))[0]) < 99 + 5 * 14.1


@pytest.mark.parametrize('neighbour', ['row', 'environment', 'number'])
def test_neighbours_are_independent(neighbour):
  envs, rows = grid(64, 400)
  uniforms = noise.uniforms(2, envs, np.full(envs.size, 99), rows, 2).reshape(64, 400, 2)
  first, second = {
      'row': (uniforms[:, :-1, 0], uniforms[:, 1:, 0]),
      'environment': (uniforms[:-1, :, 0], uniforms[1:, :, 0]),
      'number': (uniforms[..., 0], uniforms[..., 1]),
  }[neighbour]
  counts = np.histogram2d(first.ravel(), second.ravel(), 10, [(0, 1), (0, 1)])[0]
  assert chi_square(counts) < 99 + 5 * 14.1
