"""Both small Atari configurations in Launchpad's processes, a few updates each."""

import pytest

pytest.importorskip('ale_py')
pytest.importorskip('cv2')
pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(600)]

_STEPS = 1_000  # more steps than are queued while the first update is traced
_SMALL = (
  '--config.num_actors=1',
  '--config.environments_per_actor=4',
  '--config.network.torso_output_size=16',
  '--config.learner.log_period_s=0.1',
  '--config.agent.unroll_length=8',
  f'--config.total_steps={_STEPS}',
  '--json',
)
_OF_CONFIG = {
  'atari_vtrace_small': (
    '--config.agent.batch_size=4',
    '--config.agent.minibatch_size=2',
    '--config.replay.queue_size=8',
  ),
  'atari_r2d2_small': (
    '--config.agent.batch_size=2',
    '--config.agent.overlap=2',
    '--config.agent.replay_min_size=4',
    '--config.agent.replay_capacity=20',
    '--config.network.core_size=8',
    '--config.network.head_sizes',
    '8',
    '--config.num_evaluation_environments=1',
  ),
}


@pytest.mark.parametrize('name', sorted(_OF_CONFIG))
def test_frames_are_steps_times_the_action_repeat(runs, one_json, name):
  run = runs.start('train', f'--config={name}', '--run_dir=run', *_SMALL, *_OF_CONFIG[name])
  assert run.wait() == 0, run.stderr
  summary = one_json(run.stdout)
  assert summary['updates'] >= 2
  assert summary['agent_steps'] >= _STEPS
  assert summary['frames'] == 4 * summary['agent_steps']
  losses = [loss for loss in run.metrics()['loss/total'] if loss == loss]
  assert losses
