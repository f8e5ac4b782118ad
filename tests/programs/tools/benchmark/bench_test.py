"""The benchmark's account: a real short run, and inconsistent figures that are refused."""

import contextlib
import dataclasses
import json
import types as python_types

import pytest

from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.programs.tools.benchmark import bench
from seed_acme.programs.tools.benchmark import description
from seed_acme.programs.tools.benchmark import measured_run
from seed_acme.programs.tools.planning import costs as planning_costs
from seed_acme.storage import run_directory

pytestmark = pytest.mark.slow


# The bound in its own process, with a tenth of the time for each cost.
_QUICK_BOUND = """
import sys
from seed_acme.programs.tools.benchmark import lower_bound
best = lower_bound._best
lower_bound._best = lambda work, min_s: best(work, min_s / 10)
sys.exit(lower_bound.main(sys.argv))
"""


def _run_instead(monkeypatch, code):
  """Lets the process that measures the bound run this code, with its own arguments."""
  run = bench.subprocess.run
  monkeypatch.setattr(
    bench.subprocess,
    'run',
    lambda command, **settings: run([command[0], '-c', code, *command[3:]], **settings),
  )


@pytest.fixture(scope='module')
def result():
  config = registry.load('bench_catch_mlp')
  config = dataclasses.replace(
    config,
    environments_per_actor=32,
    agent=dataclasses.replace(config.agent, batch_size=32),
    replay=dataclasses.replace(config.replay, queue_size=64, unrolls_per_item=8),
  )
  with pytest.MonkeyPatch.context() as patch:
    _run_instead(patch, _QUICK_BOUND)
    return bench.bench(config, seconds=2.5, warmup_seconds=0.5, measures_bounds=True)


@pytest.mark.processes
@pytest.mark.timeout(300)
def test_the_account_adds_up(result):
  assert result['agent_steps'] > 0
  cpu_s = sum(result['cpu_s'].values())
  assert result['steps_per_cpu_s'] == pytest.approx(result['agent_steps'] / cpu_s)
  assert result['cores_in_use'] == pytest.approx(cpu_s / result['window_s'])
  assert {'learner', 'actor', 'actor_supervisor', 'launcher'} <= set(result['cpu_s'])
  # In Catch, one of an episode's 10 rows is LAST, which starts no transition. The window may cut
  # through a batch at both ends: rows trained and inserted agree to 2 %, as do steps.
  assert result['steps_per_row'] == pytest.approx(0.9, abs=0.04)
  for shares in result['phase_shares'].values():
    assert sum(shares.values()) == pytest.approx(1.0)
  assert {'environment', 'wait'} <= set(result['phase_shares']['actor'])
  assert {'inference', 'unrolls'} <= set(result['phase_shares']['inference'])
  assert {'sample', 'gradient'} <= set(result['phase_shares']['learner'])
  assert 'insert' in result['phase_shares']['replay_writer']


@pytest.mark.processes
@pytest.mark.timeout(300)
def test_the_bound_is_below_the_measured_cost(result):
  bound = result['bound']
  assert set(bound['cpu_s_per_million_steps']) == {'environment', 'inference', 'training'}
  assert all(cost > 0 for cost in bound['cpu_s_per_million_steps'].values())
  assert 0 < bound['efficiency'] < 1
  json.dumps(result)
  assert 'steps per CPU-second' in description.describe(result)


@pytest.mark.processes
@pytest.mark.timeout(300)
def test_a_plan_can_be_made_from_the_record(result):
  calls = result['calls']
  for name in ('environment_call_s', 'inference_call_s', 'update_s', 'exchange_bytes'):
    sizes = [size for size, _ in calls[name]]
    assert sizes == sorted(set(sizes)) and len(sizes) > 1
    assert all(cost > 0 for _, cost in calls[name])
  assert calls['exchange_bytes'][0][0] == 1
  # In Catch, each row has 50 numbers of observation as float32, and 26 other bytes.
  assert calls['unroll_bytes'] > 20 * 50 * 4 and calls['weights_bytes'] > 64 * 64 * 4
  # Hosts send each other no observations, but predictions of 4 numbers for each row.
  assert calls['shared_unroll_bytes'] == calls['unroll_bytes'] - 21 * (50 * 4 - 4 * 4)
  assert result['setting']['environments_per_actor'] == 32
  costs = planning_costs.fit([result])
  assert costs.row_s > 0 and costs.actor_message_s >= 0


def _reading(config, trained, inserted, acted):
  status = {
    'trained_steps': trained,
    'agent_steps': acted,
    'updates': trained // 640,
    'unrolls_confirmed': inserted,
    'time_s': 1.0 if trained else 0.0,
    'episodes': 0,
    'seconds': {},
    'inference_batch_size': {'count': 0, 'mean': 0.0, 'p95': 0.0, 'max': 0.0},
    'inference_latency_s': {'count': 0, 'mean': 0.0, 'p95': 0.0, 'max': 0.0},
    'policy_lag_count': 0,
    'policy_lag_mean': 0,
    'policy_lag_p95': 0,
    'policy_lag_max': 0,
  }
  return bench._Reading(status, {'learner': float(bool(trained))}, {})


@pytest.mark.parametrize(
  'inserted, acted, is_refused',
  [
    (3200, 64000, False),
    (3250, 64000, False),
    (3300, 64000, True),
    (3100, 64000, True),
    (3200, 66000, True),
    (3200, 62000, True),
  ],
)
def test_rows_that_were_not_trained_once_are_refused(inserted, acted, is_refused):
  config = registry.load('catch_vtrace')
  config = dataclasses.replace(
    config, agent=dataclasses.replace(config.agent, batch_size=32, unroll_length=20)
  )
  before = _reading(config, 0, 0, 0)
  after = _reading(config, 64000, inserted, acted)
  if is_refused:
    with pytest.raises(measured_run.BenchFailed, match='within 2%'):
      bench._result(config, before, after)
  else:
    assert bench._result(config, before, after)['agent_steps'] == 64000


def test_means_are_of_the_window_and_not_of_what_was_before():
  config = registry.load('catch_vtrace')
  config = dataclasses.replace(
    config, agent=dataclasses.replace(config.agent, batch_size=32, unroll_length=20)
  )
  before, after = _reading(config, 0, 0, 0), _reading(config, 64000, 3200, 64000)
  before.status.update(
    inference_batch_size={'count': 10, 'mean': 4.0, 'p95': 8.0, 'max': 8.0},
    inference_latency_s={'count': 10, 'mean': 2.0, 'p95': 9.0, 'max': 9.0},  # with the tracing
    policy_lag_count=5,
    policy_lag_mean=12.0,
  )
  after.status.update(
    inference_batch_size={'count': 40, 'mean': 7.0, 'p95': 8.0, 'max': 8.0},
    inference_latency_s={'count': 40, 'mean': 0.503, 'p95': 6.0, 'max': 9.0},
    policy_lag_count=20,
    policy_lag_mean=4.5,
    policy_lag_p95=11.0,
  )
  result = bench._result(config, before, after)
  assert result['inference_batch_size'] == {'count': 30, 'mean': 8.0}
  assert result['inference_latency_ms'] == {'count': 30, 'mean': pytest.approx(4.0)}
  assert result['policy_lag'] == {'count': 15, 'mean': 2.0}
  assert result['p95_since_start'] == {
    'inference_batch_size': 8.0,
    'inference_latency_ms': 6000.0,
    'policy_lag': 11.0,
  }
  lines = description.describe({**result, 'launch': 'local_mp'}).splitlines()
  assert 'inference: batches of 8 rows, latency 4.0 ms' in lines
  assert 'policy lag: 2.0 updates' in lines


def test_a_window_may_begin_before_the_first_update():
  config = registry.load('catch_vtrace')
  config = dataclasses.replace(
    config, agent=dataclasses.replace(config.agent, batch_size=32, unroll_length=20)
  )
  before, after = _reading(config, 0, 0, 0), _reading(config, 64000, 3200, 64000)
  before.status.update(policy_lag_count=0, policy_lag_mean=None, policy_lag_p95=None)
  after.status.update(policy_lag_count=4, policy_lag_mean=1.5, policy_lag_p95=3.0)
  assert bench._result(config, before, after)['policy_lag'] == {'count': 4, 'mean': 1.5}


def _run_without_processes(monkeypatch, readings):
  """Lets `bench` read these instead of a run. Returns the list of the times that it watches for."""
  watched, launcher = [], python_types.SimpleNamespace(pid=1)
  monkeypatch.setattr(bench, '_read', lambda *_: next(readings))
  monkeypatch.setattr(measured_run, 'launched', lambda *_: contextlib.nullcontext(launcher))
  monkeypatch.setattr(measured_run, 'wait_for_updates', lambda *_: None)
  monkeypatch.setattr(bench.cpu_account, 'CpuAccount', lambda pid: None)
  monkeypatch.setattr(measured_run.Progress, 'watch', lambda _, seconds: watched.append(seconds))
  return watched


@pytest.mark.parametrize('num_too_short, is_enough', [(0, True), (3, True), (4, False)])
def test_a_window_that_is_too_short_is_lengthened(monkeypatch, num_too_short, is_enough):
  config = registry.load('catch_vtrace')
  config = dataclasses.replace(
    config, agent=dataclasses.replace(config.agent, batch_size=32, unroll_length=20)
  )
  # The queue holds rows that are not trained yet, a falling share of the inserted ones.
  ends = [_reading(config, 64000, 3300, 64000)] * num_too_short
  readings = iter([_reading(config, 0, 0, 0), *ends, _reading(config, 64000, 3200, 64000)])
  watched = _run_without_processes(monkeypatch, readings)
  told = []
  run = lambda: bench.bench(config, 5.0, 0.0, measures_bounds=False, tell=told.append)
  if is_enough:
    assert run()['window_asked_s'] == 5.0
  else:
    with pytest.raises(measured_run.BenchFailed, match='choose a longer window'):
      run()
  assert watched == [0.0] + [5.0] * min(num_too_short + 1, 4)
  first = 'catch_vtrace: measuring for 5 s'
  assert told[2:] == [
    'catch_vtrace: warming up for 0 s',
    first,
    *[f'{first} more, because a longer window is needed'] * min(num_too_short, 3),
  ]


def test_the_command_line_reaches_it(monkeypatch, capsys):
  seen = {}
  monkeypatch.setattr(
    bench,
    'bench',
    lambda config, seconds, warmup, measures_bounds, launch, tell: (
      tell('a sign of life')
      or seen.update(name=config.name, seconds=seconds, bounds=measures_bounds, launch=launch)
      or {'config': config.name}
    ),
  )
  monkeypatch.setattr(description, 'describe', lambda record: 'words')
  code = cli.main(['bench', '--config=bench_catch_lstm', '--seconds=3', '--no_bounds', '--json'])
  assert code == 0 and seen == {
    'name': 'bench_catch_lstm',
    'seconds': 3.0,
    'bounds': False,
    'launch': 'local_mp',
  }
  said = capsys.readouterr()
  assert json.loads(said.out) == {'config': 'bench_catch_lstm'}
  assert said.err == 'a sign of life\n'


@pytest.mark.parametrize(
  'code, reason',
  [
    ('import sys; print("Traceback", file=sys.stderr); sys.exit("no such thing")', 'no such thing'),
    ('import os; os.kill(os.getpid(), 9)', 'killed by SIGKILL'),
  ],
)
def test_a_bound_that_cannot_be_measured_is_one_line(monkeypatch, tmp_path, code, reason):
  _run_instead(monkeypatch, code)
  figures = {'inference_batch_size': {'mean': 8.2}, 'steps_per_row': 1.0, 'replay_ratio': 1.0}
  with pytest.raises(
    measured_run.BenchFailed, match=f'^the bound could not .*{reason}; --no_bounds'
  ):
    bench._measured_alone(run_directory.create(tmp_path / 'run'), figures)


def test_a_measurement_of_the_bound_that_hangs_is_given_up(monkeypatch, tmp_path):
  _run_instead(monkeypatch, 'import time; time.sleep(1000)')
  monkeypatch.setattr(bench, '_ALONE_S', 0.1)
  figures = {'inference_batch_size': {'mean': 8.2}, 'steps_per_row': 1.0, 'replay_ratio': 1.0}
  with pytest.raises(
    measured_run.BenchFailed, match='the bound took over 0.1 s; --no_bounds leaves it'
  ):
    bench._measured_alone(run_directory.create(tmp_path / 'run'), figures)


def test_a_bound_that_fails_does_not_cost_the_measurement(monkeypatch, capsys):
  config = registry.load('catch_vtrace')
  steps = config.agent.batch_size * config.agent.unroll_length * 100
  before, after = _reading(config, 0, 0, 0), _reading(config, steps, 0, steps)
  after.status.update(updates=100, unrolls_confirmed=100 * config.agent.batch_size)
  for status, count in ((before.status, 0), (after.status, 4)):
    status['inference_batch_size'] = {'count': count, 'mean': 8.0, 'p95': 8.0, 'max': 8.0}
  _run_without_processes(monkeypatch, iter([before, after]))
  _run_instead(monkeypatch, 'import sys; sys.exit("no such thing")')
  assert cli.main(['bench', '--config=catch_vtrace', '--seconds=1', '--json']) == 0
  said = capsys.readouterr()
  record = json.loads(said.out)
  assert record['agent_steps'] == steps and not {'bound', 'calls'} & set(record)
  assert 'catch_vtrace: the bound could not be measured: no such thing; --no_b' in said.err
