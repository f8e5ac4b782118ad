"""The eight `gcp/train_*.sh` of SEED RL: sizes, frames, metrics, and the table that shows them.

dmlab_values_test.py and football_values_test.py check the tuned values for DMLab and Football.
"""

import dataclasses

import pytest

from seed_acme import layout as layout_lib
from seed_acme.configs import registry
from seed_acme.envs import atari
from seed_acme.envs import dmlab
from seed_acme.inference import episodes as episodes_lib
from seed_acme.learning import metrics
from seed_acme.loggers import tensorboard
from tests import pages
from tests.configs import original_scripts

_REPEATS = {'atari': 4, 'dmlab': 4, 'football': 1, 'mujoco': 1}  # of an action; D1
_IDS = [script.name for script in original_scripts.SCRIPTS]
_EACH = pytest.mark.parametrize('script', original_scripts.SCRIPTS, ids=_IDS)


def test_there_are_eight_with_a_configuration_of_its_own_each():
  assert len({script.config for script in original_scripts.SCRIPTS}) == 8
  assert len(set(_IDS)) == 8


@_EACH
def test_actors_environments_inference_and_frames(script):
  config = registry.load(script.config)
  assert (config.num_actors, config.environments_per_actor) == (script.workers, script.environments)
  # D19: the original's launcher forgot a factor.
  assert layout_lib.Layout.of(config).num_training == script.workers * script.environments
  assert layout_lib.Layout.of(config).batch_rows(0, 1)[0] == script.inference_batch_size
  suite = script.name.partition('_')[0]
  assert _num_repeats(suite, config.environment.settings) == _REPEATS[suite]
  assert config.total_steps * _REPEATS[suite] == script.frames


def _num_repeats(suite, settings):
  """Returns the frames of a step, for environments in which that can be more than one."""
  if suite == 'atari':
    return atari.Settings(**settings).frames_per_step
  return dmlab.Settings(**settings).num_action_repeats if suite == 'dmlab' else 1


def test_atari_is_the_papers_but_for_the_sizes_of_the_script():
  script, paper = registry.load('atari_r2d2_gcp'), registry.load('atari_r2d2')
  differing = {
    field.name
    for field in dataclasses.fields(script)
    if getattr(script, field.name) != getattr(paper, field.name)
  }
  assert differing == {'name', 'num_actors', 'environments_per_actor', 'total_steps', 'inference'}
  agent = script.agent
  # Values that the script sets, and flags that it leaves at their defaults.
  assert (agent.unroll_length, agent.overlap, agent.batch_size) == (80, 40, 64)
  assert (agent.replay_capacity, agent.replay_min_size, agent.replay_ratio) == (100_000, 5000, 0.75)
  assert (agent.optimizer.learning_rate, agent.optimizer.max_gradient_norm) == (1e-4, 80)
  assert (agent.optimizer.name, agent.optimizer.epsilon) == ('adam', 1e-3)
  assert (agent.priority_exponent, agent.importance_exponent) == (0.9, 0.6)
  assert (agent.discount, agent.num_bootstrap_steps, agent.target_period) == (0.997, 5, 2500)
  assert script.num_evaluation_environments == 30  # D20: set by a flag that no longer exists


def test_mujoco_is_the_tuned_one_but_for_the_sizes_of_the_script():
  script, tuned = (
    registry.load('mujoco_ppo_halfcheetah_gcp'),
    registry.load('mujoco_ppo_halfcheetah'),
  )
  same = {
    'name': tuned.name,
    'num_actors': tuned.num_actors,
    'environments_per_actor': tuned.environments_per_actor,
    'total_steps': tuned.total_steps,
  }
  assert dataclasses.replace(script, **same) == tuned  # mujoco_values_test.py has its numbers
  assert layout_lib.Layout.of(script).unrolls_per_update * script.num_actors * 16 == 2048


@_EACH
def test_the_metric_to_tune_is_one_that_is_written(script, tmp_path):
  group = script.our_metric.partition('/')[0]
  config = registry.load(script.config)
  assert group == 'episode' or config.num_evaluation_environments
  row = metrics.of_episodes(
    group, episodes_lib.EpisodeSummary(num_episodes=1, score=2.0, return_=3.0, length=4.0)
  )
  assert script.our_metric in row
  assert ('training' in script.our_metric) == ('checkpoints' in script.name)
  logger = tensorboard.TensorBoardLogger(tmp_path)
  logger.write(1, row)
  logger.close()
  assert f'Returns/{script.our_metric}' in _tags(tmp_path)


def _tags(folder):
  from tensorboard.backend.event_processing import event_accumulator

  events = event_accumulator.EventAccumulator(str(folder))
  events.Reload()
  return events.Tags()['scalars']


def test_the_page_has_a_line_for_each():
  text = (pages.ROOT / 'docs' / 'scaling.md').read_text()
  rows = [line.split('|')[1:-1] for line in text.splitlines() if line.startswith('| train_')]
  assert [tuple(cell.strip(' `') for cell in row) for row in rows] == [
    (
      f'train_{script.name}.sh',
      f'{script.workers} × {script.environments}',
      script.config,
      script.learner,
      script.metric,
      script.our_metric,
    )
    for script in original_scripts.SCRIPTS
  ]
