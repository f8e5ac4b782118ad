"""scripts/long_runs.py: how a list is read, when a run is given up, and that a list is resumed."""

import math
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.files import local
from seed_acme.loggers import csv_file
from seed_acme.programs.system import processes
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from tests import sources

_HANG_S = 300.0
_SMALL = (
  'seed-acme train --config=catch_vtrace --launch=single_process --config.num_actors=1 '
  '--config.environments_per_actor=8 --config.agent.unroll_length=9 --config.agent.batch_size=8 '
  '--config.replay.unrolls_per_item=8 --config.replay.queue_size=16 '
  '--config.learner.log_period_s=0.1 --config.checkpoint.period_s=1000'
)


@pytest.fixture(name='script', scope='module')
def _script():
  return sources.script('long_runs')


def test_a_line_is_a_name_a_command_and_rules(script):
  first, second = script.parse(
    '# runs of record\n\n'
    'one: seed-acme train --config=catch_vtrace --config.seed=3\n'
    "two.b-1:  seed-acme train --config catch_vtrace --config.network.mlp_sizes 8 '9' \\\n"
    '   | give up at 1_000 unless loss/value <= -2.5e-3 | give up at 3000\n'
  )
  assert (first.name, first.config.seed, first.rules) == ('one', 3, ())
  assert first.options == ('--config=catch_vtrace', '--config.seed=3')
  assert second.name == 'two.b-1' and second.config.network.mlp_sizes == (8, 9)
  assert second.rules == (script.Rule(1000, 'loss/value', '<=', -0.0025), script.Rule(3000))


_LINE = 'a: seed-acme train --config=catch_vtrace'


@pytest.mark.slow
@pytest.mark.parametrize(
  'text, said',
  [
    ('', 'names no run'),
    ('seed-acme train --config=catch_vtrace', 'write NAME: seed-acme train'),
    ('../a: seed-acme train --config=catch_vtrace', 'write NAME: seed-acme train'),
    ('a: seed-acme evaluate runs/latest', 'write NAME: seed-acme train'),
    ('a: seed-acme train --config.seed=2', 'give --config'),
    (f'{_LINE} --run_dir=x', 'no --run_dir'),
    (f'{_LINE} --launch=vertex_ai', 'choose a launch on this host'),
    (f'{_LINE} --config.sead=2', 'seed'),
    (f'{_LINE} --config.total_steps=0', r'total_steps \(0\) must be >= 1'),
    ('a: seed-acme train --config=catsh', 'catch_vtrace'),
    (f'{_LINE}\n{_LINE}', '2 lines are called a'),
    (f'{_LINE} | give in at 3', "'give in at 3' is no rule"),
    (f'{_LINE} | give up at 3 unless loss/value > 3', 'is no rule'),
    (f'{_LINE} | give up at 3 unless loss/value >= nan', 'is no rule'),
  ],
)
def test_a_wrong_list_is_refused_before_anything_runs(script, text, said, tmp_path, capsys):
  with pytest.raises(types.UserError, match=said):
    script.parse(text)
  path = tmp_path / 'list.txt'
  path.write_text(f'good: seed-acme train --config=catch_vtrace\n{text}' if text else text)
  assert script.main([str(path), f'--folder={tmp_path / "runs"}']) == 2
  assert capsys.readouterr().err.startswith('error: ')
  assert not (tmp_path / 'runs').exists()


@pytest.mark.slow
def test_the_list_of_the_runs_of_record_can_be_run(script):
  pytest.importorskip('ale_py')
  runs = script.parse((sources.ROOT / 'scripts' / 'runs_of_record.txt').read_text())
  first = runs[0]
  assert (first.name, first.config.name, first.config.seed) == (
    'pong_vtrace_8_passes_1',
    'atari_vtrace_small',
    1,
  )


def _metrics(*rows):
  """Returns columns for (steps, return), as csv_file reads them."""
  steps, returns = zip(*rows)
  return {'agent_steps': list(steps), 'episode/return': list(returns)}


@pytest.mark.parametrize(
  'rows, values',
  [
    ([(500, -20.0), (980, -20.0)], None),  # too early
    ([(500, -20.0), (900, -19.0), (1000, -17.0), (1100, 3.0)], [-19.0, -17.0]),
    ([(899, -20.0), (950, math.nan), (990, -18.0), (1001, -20.0)], [-18.0]),
    ([(700, -21.0), (899, -20.0), (1001, -20.0)], [-20.0]),  # seldom logged
    ([(899, math.nan), (1001, -20.0)], []),
  ],
)
def test_a_rule_looks_at_the_tenth_before_its_step(script, rows, values):
  assert script.values_of(script.Rule(1000, 'episode/return'), _metrics(*rows)) == values


def test_a_column_that_is_not_logged_has_no_values_and_keeps_no_run_from_going_on(script):
  rule = script.Rule(1000, 'episode/retrun')
  assert script.values_of(rule, {}) is None
  assert script.values_of(rule, _metrics((1000, 5.0))) == []
  assert script.judge(rule, []) == ''


@pytest.mark.parametrize(
  'sign, bound, gives_up',
  [('>=', -19, False), ('>=', -18.9, True), ('<=', -19, False), ('<=', -19.1, True)],
)
def test_the_mean_decides_and_may_be_at_the_bound(script, sign, bound, gives_up):
  reason = script.judge(script.Rule(1000, 'episode/return', sign, bound), [-20.0, -18.0])
  assert bool(reason) == gives_up
  if gives_up:
    assert reason == f'at 1,000 steps episode/return is -19, not {sign} {bound:g}'


def test_a_rule_without_a_column_ends_a_run_in_any_case(script):
  assert 'as the list says' in script.judge(script.Rule(1000), [])


class _Child:
  """A training process that ends at once: `bad` fails, and others have finished."""

  def __init__(self, command, stdout, **_):
    path = pathlib.Path(command[-1].removeprefix('--run_dir='))
    self.returncode = int(path.name == 'bad')
    if self.returncode:
      stdout.write('error: no room\n')
      return
    run = run_directory.create(path)
    saved_config.save(registry.load('catch_vtrace'), run.config)
    record = {'status': 'finished', 'agent_steps': 300_000}
    local.write_json(run.status, record)
    local.write_json(run.summary, record)

  def poll(self):
    return self.returncode


def test_a_run_that_fails_is_tried_again_and_one_that_is_finished_is_not(
  script, tmp_path, monkeypatch, capsys
):
  monkeypatch.setattr(script, '_commit', lambda: 'commit')
  monkeypatch.setattr(script.subprocess, 'Popen', _Child)
  (tmp_path / 'list.txt').write_text(f'bad{_LINE[1:]}\ngood{_LINE[1:]}\n')
  for good in ('started at 0 steps', 'finished before, 300,000 steps'):
    assert script.main([str(tmp_path / 'list.txt'), f'--folder={tmp_path / "runs"}']) == 1
    output = capsys.readouterr().out
    assert 'bad: started at 0 steps' in output and 'bad: failed, error: no room' in output
    assert f'good: {good}' in output
    assert ('good: finished, 300,000 steps' in output) == ('started' in good)


def test_a_run_that_is_refused_is_not_blamed_for_an_earlier_failure(
  script, tmp_path, monkeypatch, capsys
):
  run = run_directory.create(tmp_path / 'runs' / 'bad')
  saved_config.save(registry.load('catch_vtrace'), run.config)
  processes.report_failure(run, 'learner/0', 'the disk was full yesterday', 'learner/0')
  monkeypatch.setattr(script.subprocess, 'Popen', _Child)
  monkeypatch.setattr(script, '_commit', lambda: 'commit')
  (tmp_path / 'list.txt').write_text(f'bad{_LINE[1:]}\n')
  assert script.main([str(tmp_path / 'list.txt'), f'--folder={tmp_path / "runs"}']) == 1
  output = capsys.readouterr().out
  assert 'bad: failed, error: no room' in output and 'yesterday' not in output


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.timeout(600)
def test_a_stopped_run_goes_on_until_it_is_given_up_and_counts_no_step_twice(
  script, tmp_path, monkeypatch, capsys
):
  path, folder = tmp_path / 'list.txt', tmp_path / 'runs'
  line = f'one: {_SMALL} --config.total_steps=1000000000'
  path.write_text(line)
  program = subprocess.Popen(
    [sys.executable, sources.ROOT / 'scripts' / 'long_runs.py', f'--folder={folder}', path],
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )
  try:
    _wait_for_updates(folder / 'one' / 'status.json', 20)
    program.send_signal(signal.SIGINT)
    output, _ = program.communicate(timeout=_HANG_S)
  finally:
    program.kill()  # its run ends with it
    program.wait()
  assert program.returncode == 128 + signal.SIGINT, output
  assert 'one: started at 0 steps' in output and 'one: stopped, ' in output
  stopped = local.read_json(folder / 'one' / 'summary.json')
  assert stopped['status'] == 'stopped' and stopped['agent_steps'] > 0

  end = stopped['agent_steps'] + 2000
  path.write_text(
    f'{line} | give up at 1400 unless episode/return >= -9 '
    f'| give up at {end} unless episode/return >= 9\n'
  )
  monkeypatch.setattr(sys, 'path', [*sys.path])
  assert script.main([str(path), f'--folder={folder}']) == 0
  output = capsys.readouterr().out
  assert f'one: resumed at {stopped["agent_steps"]:,} steps' in output
  assert f'one: given up, at {end:,} steps episode/return is ' in output and 'not >= 9' in output
  summary = local.read_json(folder / 'one' / 'summary.json')
  assert summary['status'] == 'stopped' and summary['agent_steps'] >= end
  assert local.read_json(folder / 'one' / 'status.json')['resumptions'] == 1
  # An episode of Catch has nine steps. Each start leaves an episode and an unroll of nine steps
  # unfinished in each environment; steps are counted when their unroll is finished.
  assert summary['trained_steps'] <= summary['agent_steps']
  assert abs(9 * summary['episodes'] - summary['agent_steps']) <= 2 * 8 * 9
  metrics = csv_file.read(folder / 'one' / 'metrics.csv')
  for name in ('agent_steps', 'updates', 'episodes', 'trained_steps'):
    assert metrics[name] == sorted(metrics[name]), name
    assert metrics[name][-1] == summary[name]
  assert metrics['agent_steps'][0] < stopped['agent_steps'] < metrics['agent_steps'][-1]

  kept = (folder / 'one' / 'metrics.csv').read_bytes()
  assert script.main([str(path), f'--folder={folder}']) == 0
  assert 'one: given up before' in capsys.readouterr().out
  assert (folder / 'one' / 'metrics.csv').read_bytes() == kept


def _wait_for_updates(path, number):
  give_up = time.monotonic() + _HANG_S
  while not path.exists() or local.read_json(path).get('updates', 0) < number:
    assert time.monotonic() < give_up, path
    time.sleep(0.05)
