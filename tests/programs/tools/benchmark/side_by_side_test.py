"""Two configurations alternately: their order, the ratio, and refusals before anything runs."""

import json
import re
import types as python_types

import pytest

from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.programs.tools.benchmark import bench
from seed_acme.programs.tools.benchmark import side_by_side

_SPEEDS = {'bench_catch_mlp': [100.0, 400.0, 100.0], 'bench_catch_lstm': [50.0, 300.0, 80.0]}


@pytest.fixture(name='measured', autouse=True)
def _measured(monkeypatch):
  """Returns the names and launches that were measured, in order. No run is made."""
  names, launches = [], []

  def measure(config, seconds, warmup_seconds, measures_bounds, launch, tell):
    assert (seconds, warmup_seconds, measures_bounds) == (2.0, 8.0, False)
    speed = _SPEEDS[config.name][names.count(config.name)]
    names.append(config.name)
    launches.append(launch)
    costs = {'learner': 0.75e6 / speed, 'actor': 0.25e6 / speed}
    return {'steps_per_cpu_s': speed, 'steps_per_s': speed, 'cpu_s_per_million_steps': costs}

  monkeypatch.setattr(bench, 'bench', measure)
  return python_types.SimpleNamespace(names=names, launches=launches)


def _bench(*options):
  return cli.main(['bench', '--config=bench_catch_mlp', '--seconds=2', *options])


def test_each_round_begins_with_the_other_one(measured):
  assert _bench('--against=bench_catch_lstm') == 0
  first, second = 'bench_catch_mlp', 'bench_catch_lstm'
  assert measured.names == [first, second, second, first, first, second]


def test_the_ratio_is_of_the_same_round(capsys):
  assert _bench('--against=bench_catch_lstm', '--json') == 0
  printed = capsys.readouterr()
  record = json.loads(printed.out)
  assert record['configs'] == ['bench_catch_mlp', 'bench_catch_lstm']
  assert record['ratios'] == [0.5, 0.75, 0.8] and record['median_ratio'] == 0.75
  assert [line.split(':')[0] for line in printed.err.splitlines()] == [
    f'round {i} of 3' for i in (1, 2, 3)
  ]
  text = side_by_side.describe(record)
  assert 'bench_catch_lstm / bench_catch_mlp: median 0.750, all 0.500 0.750 0.800' in text
  assert 'learner 7500.0, actor 2500.0' in text


def test_two_ways_to_launch_one_configuration(measured, capsys):
  assert _bench('--against_launch=single_process', '--rounds=1', '--json') == 0
  assert measured.launches == ['local_mp', 'single_process']
  record = json.loads(capsys.readouterr().out)
  assert record['configs'] == ['bench_catch_mlp (local_mp)', 'bench_catch_mlp (single_process)']
  assert record['ratios'] == [4.0]


def test_both_are_launched_as_the_first_unless_it_is_said(measured):
  assert _bench('--launch=single_process', '--against=bench_catch_lstm', '--rounds=1') == 0
  assert measured.launches == ['single_process', 'single_process']


@pytest.mark.parametrize(
  'options, words',
  [
    (['--against=bench_catch_mpl'], 'unknown config .*did you mean bench_catch_mlp'),
    (['--against=bench_catch_lstm', '--rounds=-1'], '--rounds'),
    (['--rounds=2'], '--rounds=2 is for --against: add it'),
    (['--against_launch=single_process', '--soak_steps=5'], '--against'),
    (['--against_launch=threads'], 'single_process'),
    (['--against=bench_catch_lstm', '--soak_steps=5'], '--against'),
    (['--launch=single_process', '--soak_steps=5'], '--soak_steps.*--launch=single_process'),
    (['--no_bounds', '--soak_steps=5'], '--soak_steps.*--seconds=2.0, --no_bounds'),
  ],
)
def test_what_is_wrong_is_said_before_anything_runs(measured, capsys, options, words):
  assert _bench(*options) == 2
  assert re.search(words, capsys.readouterr().err) and not measured.names


def test_the_second_one_is_checked_before_the_first_runs(measured, tmp_path, capsys):
  wrong = tmp_path / 'wrong.py'
  wrong.write_text(
    'import dataclasses\n'
    'from seed_acme import config\n'
    'from seed_acme.configs import bench_catch_mlp\n\n\n'
    'def experiment():\n'
    '  wrong = config.EnvironmentConfig(id="cathc")\n'
    '  return dataclasses.replace(bench_catch_mlp.experiment(), environment=wrong)\n'
  )
  assert _bench(f'--against={wrong}') == 2
  assert 'cathc' in capsys.readouterr().err and not measured.names


def test_pong_is_the_same_for_both_adapters():
  ours, envpool = (registry.load(f'bench_pong_cnn{end}') for end in ('', '_envpool'))
  assert (ours.network, ours.agent) == (envpool.network, envpool.agent)
  assert ours.environments_per_actor == envpool.environments_per_actor
