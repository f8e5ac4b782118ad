"""Central inference against inference in the actors: break-even, record, and what is refused."""

import json

import pytest

from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.programs.benchmark import actor_inference
from seed_acme.programs.benchmark import actor_inference_costs
from seed_acme.programs.system import processes

_SECONDS, _BYTES = 'cpu_s_per_million_steps', 'bytes_per_step'


def _costs(num_weights, in_actor):
  """A network for which the server costs 10 in both kinds, and the actors `in_actor`."""
  one = lambda value: {_SECONDS: {'inference': value - 1, 'rest': 1}, _BYTES: {'all': value}}
  return {
    'network_factor': 1.0,
    'num_weights': num_weights,
    'actor_rows': 8,
    'server_rows': 64,
    'steps_per_update': 640.0,
    actor_inference.CENTRAL: one(10.0),
    **{placement: one(in_actor) for placement in actor_inference.IN_ACTORS},
  }


@pytest.mark.parametrize(
  'in_actor, changes, is_cheaper',
  [
    ([4.0, 8.0, 16.0], [225.0], [True, True, False]),
    ([16.0, 8.0, 12.0], [175.0, 250.0], [False, True, False]),
    ([4.0, 5.0, 6.0], [], [True, True, True]),
    ([10.0, 11.0, 12.0], [], [False, False, False]),
  ],
)
def test_the_break_even_lies_where_the_lines_cross(in_actor, changes, is_cheaper):
  networks = [_costs(100 * (i + 1), value) for i, value in enumerate(in_actor)]
  for kind in (_SECONDS, _BYTES):
    found = actor_inference.break_even(networks, actor_inference.IN_ACTORS[0], kind)
    assert found == {'num_weights': pytest.approx(changes), 'is_cheaper': is_cheaper}


def test_a_record_is_in_order_of_size_and_says_what_crosses():
  config = registry.load('bench_catch_mlp')
  record = actor_inference.record(config, [_costs(300, 16.0), _costs(100, 4.0)])
  assert [costs['num_weights'] for costs in record['networks']] == [100, 300]
  lines = actor_inference.describe(record).splitlines()
  assert lines[-1].endswith('bytes per step: 200 weights (actors cheaper below, server above)')
  assert actor_inference.total(record['networks'][1], 'central', _SECONDS) == 10.0
  text = actor_inference.describe(actor_inference.record(config, [_costs(100, 4.0)]))
  assert text.endswith('none, the actors are cheaper throughout')
  text = actor_inference.describe(actor_inference.record(config, [_costs(100, 14.0)]))
  assert text.endswith('none, the server is cheaper throughout')


def test_the_command_writes_the_figures_beside_the_picture(tmp_path, monkeypatch, capsys):
  seen = []

  def measure(config, min_s):
    assert min_s > 0
    seen.append(config.network.mlp_sizes)
    return _costs(seen[-1][0], 4.0)

  monkeypatch.setattr(actor_inference_costs, 'measure', measure)
  monkeypatch.setattr(processes, 'configure_tensorflow', lambda _: None)
  out = tmp_path / 'new' / 'where.png'
  options = ['--network_factors', '0.5', '2', f'--compare_plot={out}', '--json']
  command = ['bench', '--config=bench_catch_mlp', '--compare_actor_inference', *options]
  assert cli.main(command) == 0
  assert seen == [(32, 32), (128, 128)]
  printed = json.loads(capsys.readouterr().out)
  assert [costs['num_weights'] for costs in printed['networks']] == [32, 128]
  assert json.loads(out.with_suffix('.json').read_text()) == printed
  assert out.read_bytes().startswith(b'\x89PNG')


@pytest.mark.parametrize(
  'options, words',
  [
    (['--compare_plot=x.png'], '--compare_plot=x.png is for --compare_actor_inference'),
    (['--network_factors', '2'], 'is for --compare_actor_inference'),
    (['--compare_actor_inference', '--against=bench_catch_lstm'], 'different measurements'),
    (['--compare_actor_inference', '--soak_steps=9'], 'different measurements'),
    (['--compare_actor_inference', '--network_factors', '1', '0'], '--network_factors'),
    (['--compare_actor_inference', '--network_factors'], '--network_factors'),
    (['--compare_actor_inference', '--config.network.module=a:b'], 'add --network_factors 1'),
    (['--compare_actor_inference', '--compare_plot=x.nothing'], 'cannot write the plot x.nothing'),
  ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_measured(
  options, words, monkeypatch, capsys, tmp_path
):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(actor_inference_costs, 'measure', lambda *_: pytest.fail('it measures'))
  code = cli.main(['bench', '--config=bench_catch_mlp', *options])
  assert code == processes.USER_ERROR_EXIT
  assert words in capsys.readouterr().err
