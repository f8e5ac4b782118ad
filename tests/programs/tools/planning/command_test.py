"""`seed-acme plan`: its output and its refusals."""

import json

import pytest

from seed_acme.programs import cli
from tests.programs.tools.planning import made_up


@pytest.fixture(name='bench_file')
def _bench_file(tmp_path):
  path = tmp_path / 'bench.json'
  path.write_text(json.dumps(made_up.make_record()))
  return path


def _record(capsys, *arguments):
  assert cli.main(['plan', *map(str, arguments), '--json']) == 0
  return json.loads(capsys.readouterr().out)


def test_both_ways_are_planned_on_the_same_prices(bench_file, capsys):
  record = _record(capsys, f'--from={bench_file}', '--actors=4')
  assert record['environments'] == 4 * 64 and record['prices_are_from_memory']
  for way in ('central', 'actor_side'):
    plan = record[way]
    assert plan['frames_per_s'] == pytest.approx(4 * plan['steps_per_s'])
    assert plan['dollars_per_billion_frames'] == pytest.approx(
      plan['dollars_per_hour'] / plan['frames_per_s'] / 3600 * 1e9
    )
  # One device less without central inference; all have the price of a core.
  difference = record['central']['dollars_per_hour'] - record['actor_side']['dollars_per_hour']
  assert difference == pytest.approx(0.0475)


def test_the_table_says_what_the_record_says(bench_file, capsys):
  arguments = [f'--from={bench_file}', '--actors=4', '--learners=2']
  record = _record(capsys, *arguments)
  assert cli.main(['plan', *arguments]) == 0
  text = capsys.readouterr().out
  assert '256 environments, prices from memory' in text
  for way in ('central', 'actor_side'):
    assert f'{record[way]["frames_per_s"]:,.0f}' in text
    assert record[way]['bottleneck'] in text


def test_faster_devices_answer_faster(bench_file, capsys):
  slow = _record(capsys, f'--from={bench_file}', '--actors=64')
  fast = _record(capsys, f'--from={bench_file}', '--actors=64', '--device_speed=2')
  assert slow['central']['bottleneck'] == 'inference'
  assert fast['central']['steps_per_s'] == pytest.approx(2 * slow['central']['steps_per_s'])


def test_prices_of_a_file_and_a_picture(bench_file, tmp_path, capsys):
  prices = tmp_path / 'prices.json'
  prices.write_text('{"cpu_core": 1, "gpu": 100}')
  record = _record(
    capsys,
    f'--from={bench_file}',
    '--actors=3',
    f'--prices={prices}',
    '--accelerator=gpu',
    f'--out={tmp_path / "plan.png"}',
  )
  assert record['central']['dollars_per_hour'] == 203 and not record['prices_are_from_memory']
  assert (tmp_path / 'plan.png').read_bytes().startswith(b'\x89PNG')


def test_a_shared_machine_has_no_network(bench_file, capsys):
  record = _record(capsys, f'--from={bench_file}', '--actors=4', '--cores=2')
  assert 'cores' in record['central']['idle']
  assert record['central']['dollars_per_hour'] == pytest.approx(2 * 0.0475)
  assert 'network_bytes_per_s' not in record['scale']


@pytest.mark.parametrize(
  'arguments, words',
  [
    ([], '--from=FILE'),
    (['--from=nowhere.json'], 'cannot read the bench file nowhere.json'),
    (['--from=BENCH', '--learners=0'], '--learners (0) must be >= 1'),
    (['--from=BENCH', '--actors=-1'], '--actors (-1) must be >= 1'),
    (['--from=BENCH', '--learners=3', '--actors=2'], 'each learner needs an actor'),
    (['--from=BENCH', '--learners=3', '--actors=3', '--unrolls_per_update=2'], 'a part of a batch'),
    (['--from=BENCH', '--device_speed=0'], '--device_speed (0.0) must be > 0'),
    (['--from=BENCH', '--accelerator=abacus'], "no price for 'abacus'"),
    (['--from=BENCH', '--prices=nowhere.json'], 'cannot read the prices nowhere.json'),
    (['--from=BENCH', '--cores=2', '--learners=2', '--actors=2'], '--cores is of one machine'),
    (['--from=BENCH', '--out=plan.nothing'], 'cannot write the plot'),
  ],
)
def test_wrong_input_is_one_line_and_exit_2(bench_file, capsys, arguments, words):
  given = [argument.replace('BENCH', str(bench_file)) for argument in arguments]
  assert cli.main(['plan', *given]) == 2
  shown = capsys.readouterr()
  assert words in shown.err and len(shown.err.splitlines()) == 1 and not shown.out
