"""Points of a sweep: measurement, kept records, and refusals before anything runs."""

import json

import pytest

from seed_acme.programs import cli
from seed_acme.programs.tools.benchmark import bench


@pytest.fixture(name='measured', autouse=True)
def _measured(monkeypatch):
  """Returns the measured actors, environments and batches. No run is made; 8 actors fail."""
  points = []

  def measure(config, seconds, warmup_seconds, measures_bounds, launch):
    assert (seconds, warmup_seconds, measures_bounds) == (2.0, 8.0, False)
    shape = (config.num_actors, config.environments_per_actor, config.agent.batch_size)
    points.append((*shape, launch))
    if config.num_actors == 8:
      raise bench.BenchFailed('too few rows')
    return {
      'steps_per_cpu_s': 1000.0 * config.num_actors,
      'steps_per_s': 10.0,
      'inference_latency_ms': {'p95': 7.0},
      'window_s': 2.5,
    }

  monkeypatch.setattr(bench, 'bench', measure)
  return points


def _sweep(tmp_path, *options):
  out = f'--sweep_out={tmp_path / "out"}'
  return cli.main(['bench', '--config=bench_catch_mlp', '--seconds=2', out, *options])


def test_every_shape_is_measured_with_every_batch(tmp_path, measured, capsys):
  options = ('--sweep=1x32,2x16', '--sweep_batches=64,128', '--launch=single_process', '--json')
  assert _sweep(tmp_path, *options) == 0
  launch = 'single_process'
  assert measured == [
    (1, 32, 64, launch),
    (1, 32, 128, launch),
    (2, 16, 64, launch),
    (2, 16, 128, launch),
  ]
  record = json.loads(capsys.readouterr().out)
  assert [row['label'] for row in record['rows']] == [
    '1x32, batch 64',
    '1x32, batch 128',
    '2x16, batch 64',
    '2x16, batch 128',
  ]
  assert [row['result']['steps_per_cpu_s'] for row in record['rows']] == [1e3, 1e3, 2e3, 2e3]
  assert (tmp_path / 'out' / 'sweep.png').read_bytes().startswith(b'\x89PNG')


def test_what_is_measured_is_kept_and_what_failed_is_tried_again(tmp_path, measured, capsys):
  assert _sweep(tmp_path, '--sweep=1x32,8x32') == 1
  assert _sweep(tmp_path, '--sweep=8x32,1x32,4x32') == 1
  assert [point[0] for point in measured] == [1, 8, 8, 4]
  assert 'failed: too few rows' in capsys.readouterr().out
  assert _sweep(tmp_path, '--sweep=1x32', '--launch=single_process') == 0
  assert measured[-1][3] == 'single_process' and len(measured) == 5


def test_each_row_is_written_as_it_is_measured(tmp_path, monkeypatch, measured):
  measure = bench.bench

  def interrupted(config, *args, **kwargs):
    if config.num_actors == 2:
      raise KeyboardInterrupt
    return measure(config, *args, **kwargs)

  monkeypatch.setattr(bench, 'bench', interrupted)
  assert _sweep(tmp_path, '--sweep=1x32,2x32,4x32') != 0
  [row] = json.loads((tmp_path / 'out' / 'sweep.json').read_text())['rows']
  assert row['label'].startswith('1x32') and len(measured) == 1


@pytest.mark.parametrize(
  'options, words',
  [
    (('--sweep=4',), "--sweep=4: '' is no number >= 1"),
    (('--sweep=0x32',), "--sweep=0x32: '0' is no number >= 1"),
    (('--sweep=1x32', '--sweep_batches=64,many'), "'many' is no number >= 1"),
    (('--sweep=1x32', '--sweep_batches=100000'), '1x32, batch 100000: '),
    (
      ('--sweep=1x32', '--against_launch=single_process'),
      '--against and --sweep ask for different',
    ),
    (('--sweep_batches=64',), '--sweep_batches=64 is for --sweep'),
  ],
)
def test_bad_options_are_refused_before_anything_runs(tmp_path, measured, capsys, options, words):
  assert _sweep(tmp_path, *options) == 2
  assert words in capsys.readouterr().err
  assert not measured and not (tmp_path / 'out').exists()


def test_a_record_of_something_else_is_refused(tmp_path, measured, capsys):
  (tmp_path / 'out').mkdir()
  (tmp_path / 'out' / 'sweep.json').write_text('[1]')
  assert _sweep(tmp_path, '--sweep=1x32') == 2
  assert 'is no record of a sweep' in capsys.readouterr().err
  assert not measured
