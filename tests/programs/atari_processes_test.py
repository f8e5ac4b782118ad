"""A small Atari configuration in Launchpad's processes, a few updates.

`evaluated_runs.atari` trains the other one, `atari_vtrace_small`, in one process.
"""

import pytest

pytest.importorskip('ale_py')
pytest.importorskip('cv2')
pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(600)]

_STEPS = 120


def test_frames_are_steps_times_the_action_repeat(runs, one_json):
  run = runs.start(
    'train',
    '--config=atari_r2d2_small',
    '--run_dir=run',
    '--config.num_actors=1',
    '--config.environments_per_actor=4',
    '--config.num_evaluation_environments=1',
    '--config.network.torso_output_size=16',
    '--config.network.core_size=8',
    '--config.network.head_sizes',
    '8',
    '--config.learner.log_period_s=0.1',
    '--config.agent.unroll_length=8',
    '--config.agent.overlap=2',
    '--config.agent.batch_size=2',
    '--config.agent.replay_min_size=4',
    '--config.agent.replay_capacity=20',
    f'--config.total_steps={_STEPS}',
    '--json',
  )
  assert run.wait() == 0, run.stderr
  summary = one_json(run.stdout)
  assert summary['updates'] >= 2
  assert summary['agent_steps'] >= _STEPS
  assert summary['frames'] == 4 * summary['agent_steps']
  losses = [loss for loss in run.metrics()['loss/total'] if loss == loss]
  assert losses
