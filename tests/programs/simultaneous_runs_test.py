"""Many runs at once on few cores, each of which ends by itself (slow: `make test-learning`)."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.learning, pytest.mark.timeout(3600)]

_RUNS, _TIMES = 8, 5
_HANG_S = 1800.0


@pytest.mark.parametrize('time', range(_TIMES))
def test_eight_runs_at_once_all_end(runs, time):
  """Here, waits of Reverb's sampler, which last 3 s at most, end before all items of an update have
  arrived: a request for several items lost those that it had, and the run hung."""
  started = [
    runs.start(
      'train',
      '--config=cartpole_ppo',
      '--launch=single_process',
      '--config.total_steps=20000',
      f'--config.seed={number}',
      '--run_dir=run',
      folder=runs.folder(),
    )
    for number in range(1, _RUNS + 1)
  ]
  for run in started:
    assert run.wait(_HANG_S) == 0, run.stderr
    status = run.status()
    assert status['status'] == 'finished' and status['agent_steps'] >= 20_000
    assert status['unrolls_received'] == status['unrolls_learnt']
    waiting = status['unrolls_confirmed'] - status['unrolls_received']
    assert 0 <= waiting < 32  # less than an update needs
