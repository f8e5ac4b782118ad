"""A run with several training and inference devices, on logical devices of the CPU."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(600)]
_STEPS = 4_000
_TWO_EACH = (
  '--config.num_actors=2',
  '--config.learner.training_devices=cpu:0,cpu:1',
  '--config.learner.inference_devices=cpu:0,cpu:1',
)


def _train(runs, *options, steps=_STEPS, **where):
  return runs.train(f'--config.total_steps={steps}', *options, **where)


def _expect_finished(run, steps=_STEPS):
  return run.expect_finished(steps)


@pytest.mark.parametrize('kind', ['auto', 'grpc'])
def test_each_inference_device_serves_its_own_actors(runs, kind):
  """Actor 0 belongs to the first device and actor 1 to the second, and both get answers."""
  run = _train(runs, *_TWO_EACH, f'--config.transport.kind={kind}')
  _expect_finished(run)
  rows = [actor['rows'] for actor in run.status()['actors']]
  assert len(rows) == 2 and min(rows) > 100
  seconds = run.status()['seconds']
  assert min(seconds[f'inference/{device}']['inference'] for device in (0, 1)) > 0


def test_strictly_on_policy_updates_take_the_unrolls_of_both_devices(runs):
  run = _train(runs, *_TWO_EACH, *runs.strictly_on_policy)
  _expect_finished(run)
  lags = run.metrics()['learner/policy_lag']
  assert {lag for lag in lags if lag == lag} == {0.0}  # a row without an update has no lag


def test_a_run_of_one_device_goes_on_with_several_in_one_process(runs):
  folder = runs.folder()
  first = _train(runs, '--config.num_actors=2', '--launch=single_process', folder=folder)
  _expect_finished(first)
  second = _train(runs, *_TWO_EACH, '--launch=single_process', steps=2 * _STEPS, folder=folder)
  _expect_finished(second, 2 * _STEPS)
  assert second.status()['resumptions'] == 1
