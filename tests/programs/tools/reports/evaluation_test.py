"""The parts of a run that are loaded to play it."""

import dataclasses

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme.configs import registry
from seed_acme.learning import saved_variables
from seed_acme.networks import build
from seed_acme.programs.tools.reports import evaluation
from seed_acme.progress import counting
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from tests import built

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_a_policy_is_loaded_in_float32_whatever_it_was_trained_in(tmp_path):
  """The machine or TensorFlow that runs an exported policy may be slow in bfloat16."""
  pytest.importorskip('ale_py')
  config = registry.load('atari_vtrace_small')
  of_network = dataclasses.replace(config.network, torso_output_size=8, precision='float32')
  config = dataclasses.replace(
    config, environment=config_lib.EnvironmentConfig('atari:Pong'), network=of_network
  )
  acting = built.make_acting(config)
  network = acting.agent.acting.make()
  run = run_directory.create(tmp_path)
  trained_in = dataclasses.replace(of_network, precision='bfloat16')
  saved_config.save(dataclasses.replace(config, network=trained_in), run.config)
  arrays = {name: x.numpy() for name, x in saved_variables.acting(network).items()}
  meta = {'counts': counting.Counts()._asdict(), 'resumptions': 0}
  checkpoint_writer.save(run.checkpoints, 0, arrays, meta, keep=1)

  loaded = evaluation.load(str(run.path))
  assert loaded.config.network.precision == 'bfloat16'
  rng = np.random.default_rng(0)
  inputs = build.zero_inputs(acting.spec, 2)._replace(
    observation=rng.integers(0, 256, (2, *acting.spec.observation.shape)).astype(np.uint8)
  )
  wanted, found = (
    x(inputs, x.initial_state(2))[0].policy_params for x in (network, loaded.network)
  )
  np.testing.assert_array_equal(found, wanted)
