"""With equal weights, replay reproduces acting: state, burn-in, frames and Q values.

Catch tests unrolls on their way into replay, without an overlap and with one that is longer than an
unroll; Pong tests samples from it, with an overlap in between. Nothing is learnt.
"""

import dataclasses

import numpy as np
import pytest
import tree

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.learning import saved_variables
from seed_acme.programs import single_process
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from tests import built

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def _learnt(config, program, run):
  """Returns a network with the learner's weights."""
  program.loop.save()
  arrays = checkpoint.load(checkpoint.newest(run.checkpoints)).arrays
  network = built.make_acting(config).agent.acting.make()
  saved_variables.assign(saved_variables.acting(network), arrays)
  return network


@pytest.mark.parametrize('overlap', [0, 40])
def test_replayed_q_values_equal_those_that_were_acted(tmp_path, overlap):
  config = registry.load('catch_r2d2')
  agent = dataclasses.replace(
    config.agent, unroll_length=12, overlap=overlap, batch_size=4, replay_min_size=8
  )
  config = dataclasses.replace(
    config, total_steps=10**6, num_actors=1, environments_per_actor=4, agent=agent
  )
  run = run_directory.create(tmp_path / 'run')
  program = single_process.SingleProcess(config, run)
  unrolls, put = [], program.writer.put

  def put_and_keep(env_ids, finished):
    unrolls.extend(
      tree.map_structure(lambda x: np.copy(x[k]), finished)  # noqa: B023
      for k in range(len(finished.policy_version))
    )
    put(env_ids, finished)

  program.writer.put, program.loop.train = put_and_keep, lambda sample: None
  while len(unrolls) < 40:
    program.step()
  network = _learnt(config, program, run)
  batch = tree.map_structure(lambda *leaves: np.stack(leaves, axis=1), *unrolls)
  state = tree.map_structure(
    lambda *leaves: np.stack(leaves), *[unroll.initial_state for unroll in unrolls]
  )
  replayed = network.unroll(batch.inputs, state)[0].q_values.numpy()
  acted = batch.outputs.prediction.q_values
  program.close()
  # Padding precedes a run's first row, which is the first FIRST row.
  first = np.argmax(batch.inputs.step_type == types.FIRST, axis=0)
  is_padded = np.array([not unroll.inputs.observation[0].any() for unroll in unrolls])
  is_real = np.arange(len(acted))[:, None] >= np.where(is_padded, first, 0)
  assert is_real[overlap:].all()
  np.testing.assert_allclose(replayed[is_real], acted[is_real], rtol=0, atol=1e-5)
  assert np.ptp(acted[is_real]) > 0.05
  assert (batch.inputs.step_type == types.LAST)[overlap:].any()  # across episode ends


def test_what_reverb_samples_of_pong_with_stacked_frames_is_what_was_acted(tmp_path):
  pytest.importorskip('ale_py')
  pytest.importorskip('cv2')
  config, overlap = registry.load('atari_r2d2_small'), 5
  assert (config.network.frame_stack, config.network.core) == (4, 'lstm')
  config = dataclasses.replace(
    config,
    total_steps=10**6,
    num_actors=1,
    environments_per_actor=2,
    num_evaluation_environments=0,
    # Episodes end within unrolls, and stacks of frames must not cross these ends.
    environment=dataclasses.replace(
      config.environment, settings={**config.environment.settings, 'max_frames': 4 * 13}
    ),
    network=dataclasses.replace(
      config.network, torso_output_size=32, core_size=16, head_sizes=(16,)
    ),
    agent=dataclasses.replace(
      config.agent, unroll_length=8, overlap=overlap, batch_size=4, replay_min_size=4
    ),
  )
  run = run_directory.create(tmp_path / 'run')
  program = single_process.SingleProcess(config, run)
  samples = []
  program.loop.train = lambda sample: samples.append(tree.map_structure(np.array, sample))
  while len(samples) < 4:
    program.step()
  network = _learnt(config, program, run)
  state = tree.flatten(samples[0].unroll.initial_state)
  assert sorted(leaf.dtype.name for leaf in state) == ['float32', 'float32', 'uint8']  # the screens
  num_ends = 0
  for sample in samples:
    unroll = sample.unroll
    replayed = network.unroll(unroll.inputs, unroll.initial_state)[0].q_values.numpy()
    acted = unroll.outputs.prediction.q_values
    is_padded = ~unroll.inputs.observation[0].any(axis=(1, 2, 3))
    first = np.argmax(unroll.inputs.step_type == types.FIRST, axis=0)
    is_real = np.arange(len(acted))[:, None] >= np.where(is_padded, first, 0)
    assert is_real[overlap:].all()
    np.testing.assert_allclose(replayed[is_real], acted[is_real], rtol=0, atol=1e-5)
    assert np.ptp(acted[is_real]) > 0.01
    num_ends += (unroll.inputs.step_type == types.LAST)[overlap:].sum()
  program.close()
  assert num_ends > 0
