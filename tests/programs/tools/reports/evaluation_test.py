"""The parts of a run that are loaded to play it."""

import json
import shutil

import numpy as np
import pytest

from seed_acme.networks import build
from seed_acme.programs.tools.reports import evaluation
from tests.programs import evaluated_runs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_a_policy_is_loaded_in_float32_whatever_it_was_trained_in(tmp_path):
  """The machine or TensorFlow that runs an exported policy may be slow in bfloat16."""
  pytest.importorskip('ale_py')
  run = evaluated_runs.atari(tmp_path / 'run', 'Pong')
  loaded = []
  for precision in ('float32', 'bfloat16'):
    folder = tmp_path / precision
    shutil.copytree(run, folder)
    record = json.loads((folder / 'config.json').read_text())
    record['network']['precision'] = precision
    (folder / 'config.json').write_text(json.dumps(record))
    loaded.append(evaluation.load(str(folder)))
    assert loaded[-1].config.network.precision == precision
  spec = loaded[0].acting.spec
  rng = np.random.default_rng(0)
  inputs = build.zero_inputs(spec, 2)._replace(
    observation=rng.integers(0, 256, (2, *spec.observation.shape)).astype(np.uint8)
  )
  one, other = (x.network(inputs, x.network.initial_state(2))[0].policy_params for x in loaded)
  np.testing.assert_array_equal(one, other)
