"""A run with several training and inference devices, on logical devices of the CPU."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(600)]
_STEPS = 800
_TWO = 'cpu:0,cpu:1'


def test_a_run_goes_on_with_other_devices_and_each_serves_its_own_actors(runs):
  """Actor 0 belongs to the first inference device and actor 1 to the second, and both get answers.
  Strictly on-policy updates take the unrolls of both. First it trains on another device than its
  data are on."""
  folder = runs.folder()
  train = lambda steps, training, *more: runs.train(
    *runs.strictly_on_policy,
    '--config.num_actors=2',
    f'--config.learner.training_devices={training}',
    f'--config.learner.inference_devices={_TWO}',
    f'--config.total_steps={steps}',
    *more,
    folder=folder,
  )
  train(_STEPS, 'cpu:1', '--launch=single_process').expect_finished(_STEPS)
  run = train(2 * _STEPS, _TWO, '--config.transport.kind=grpc')
  run.expect_finished(2 * _STEPS)
  status = run.status()
  assert status['resumptions'] == 1
  rows = [actor['rows'] for actor in status['actors']]
  assert len(rows) == 2 and min(rows) > 100
  seconds = status['seconds']
  assert min(seconds[f'inference/{device}']['inference'] for device in (0, 1)) > 0
  lags = run.metrics()['learner/policy_lag']
  assert {lag for lag in lags if lag == lag} == {0.0}  # a row without an update has no lag


def test_a_device_that_is_not_there_is_found_by_the_learner_and_leaves_no_configuration(runs):
  """docs/operations.md says what is left."""
  run = runs.train('--config.learner.training_devices=gpu:99', '--launch=single_process')
  assert run.wait() == 2
  assert 'learner.training_devices: gpu:99 is not there' in run.stderr
  assert run.failure()['is_user_error'] and (run.run_dir.logs / 'launcher').exists()
  assert not run.run_dir.config.exists() and not run.run_dir.specification.exists()
  assert not list(run.run_dir.checkpoints.iterdir())
