"""The outputs of a run's network for fixed random inputs."""

from __future__ import annotations

import pathlib

import numpy as np
import tree

from seed_acme import types
from seed_acme.programs.tools.reports import evaluation

_ROWS, _STEPS = 16, 12


def play(run_dir: pathlib.Path) -> dict[str, np.ndarray]:
  """Returns outputs and recurrent states of the acting network, each `[T, B, ...]`, by position."""
  loaded = evaluation.load(str(run_dir))
  spec, network = loaded.acting.spec, loaded.network
  random = np.random.default_rng(1)
  state, answers = network.initial_state(_ROWS), []
  for _ in range(_STEPS):
    inputs = types.AgentInput(
      step_type=random.choice([types.FIRST, types.MID, types.LAST], _ROWS).astype(np.uint8),
      reward=random.normal(size=_ROWS).astype(np.float32),
      discount=random.integers(0, 2, _ROWS).astype(np.float32),
      previous_action=tree.map_structure(lambda leaf: _draw(random, leaf), spec.action),
      observation=tree.map_structure(lambda leaf: _draw(random, leaf), spec.observation),
    )
    output, state = network(inputs, state)
    answers.append([np.asarray(leaf) for leaf in tree.flatten((output, state))])
  return {f'output_{i}': np.stack(leaf) for i, leaf in enumerate(zip(*answers))}


def _draw(random, spec):
  if spec.dtype.kind in 'ui':
    return random.integers(0, 2, (_ROWS, *spec.shape)).astype(spec.dtype)
  return random.uniform(-1, 1, (_ROWS, *spec.shape)).astype(spec.dtype)
