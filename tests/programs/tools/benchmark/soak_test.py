"""Memory of a long run: the fit of its slope, the verdict, and a real run of few steps."""

import dataclasses
import json

import pytest

from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.programs.tools.benchmark import measured_run
from seed_acme.programs.tools.benchmark import soak

pytestmark = pytest.mark.slow


def _samples(learner_mb, num=41):
  """Returns samples of 20 million steps; learner_mb: function of millions of steps."""
  return [
    soak.Sample(round(1e6 * m), {'learner': learner_mb(m), 'actor': 28.0})
    for m in [20 * i / (num - 1) for i in range(num)]
  ]


@pytest.mark.parametrize('grown_mb, is_within_limit', [(0.19, True), (0.21, False), (2.3, False)])
def test_the_slope_is_fitted_after_the_first_tenth(grown_mb, is_within_limit):
  # Two terms are no growth: the memory that a run takes until it is warm, and noise between
  # samples.
  samples = _samples(lambda m: 400 + 50 * min(m, 1.9) + grown_mb * m + 0.3 * (round(2 * m) % 2))
  result = soak.record('some', samples)
  assert result['slope_since_steps'] == 2_000_000
  assert result['learner_mb_per_million_steps'] == pytest.approx(grown_mb, abs=0.005)
  assert result['mb_per_million_steps']['actor'] == 0
  assert result['is_within_limit'] is is_within_limit


def test_processes_that_came_late_have_no_slope_and_do_not_spoil_the_table():
  samples = _samples(lambda m: 400.0)
  samples[-1].resident_mb['actor 2'] = 30.0
  result = soak.record('some', samples)
  assert result['mb_per_million_steps'] == {'learner': 0.0, 'actor': 0.0, 'actor 2': None}
  head, *rows, slopes, verdict = soak.describe(result).splitlines()[1:]
  assert head.split('  ')[-1] == 'actor 2' and len(rows) == 21
  assert rows[0].split() == ['0.00', '400.0', '28.0', '-']
  assert rows[-1].split() == ['20.00', '400.0', '28.0', '30.0']
  assert slopes.split() == ['slope', '0.000', '0.000', '-']
  assert 'since 2.00M; of the learner 0.000, at most 0.2 allowed' in verdict


def test_too_few_samples_are_no_verdict():
  with pytest.raises(
    measured_run.BenchFailed, match=r'too rarely within 20,000,000 .*--soak_steps'
  ):
    soak.record('some', _samples(lambda m: 400.0, num=3)[1:])


@pytest.mark.parametrize('grown_mb, code', [(0.0, 0), (1.0, 1)])
def test_the_exit_code_says_whether_the_learner_grows(monkeypatch, capsys, grown_mb, code):
  seen = {}

  def made_up(config, num_steps, report):
    seen.update(name=config.name, steps=num_steps)
    report('under way')
    return soak.record(config.name, _samples(lambda m: 400 + grown_mb * m))

  monkeypatch.setattr(soak, 'soak', made_up)
  options = ['--config=bench_catch_lstm', '--soak_steps=20000000', '--json']
  assert cli.main(['bench', *options]) == code
  output = capsys.readouterr()
  assert seen == {'name': 'bench_catch_lstm', 'steps': 20_000_000}
  assert json.loads(output.out)['is_within_limit'] is not bool(code)
  assert output.err == 'under way\n'


def test_a_number_of_steps_below_0_is_refused(monkeypatch, capsys):
  monkeypatch.setattr(measured_run, 'launched', None)
  assert cli.main(['bench', '--soak_steps=-1']) == 2
  assert '--soak_steps (-1) must be >= 0' in capsys.readouterr().err


@pytest.mark.processes
@pytest.mark.timeout(300)
def test_a_run_is_watched_process_by_process():
  config = registry.load('bench_catch_mlp')
  config = dataclasses.replace(
    config,
    num_actors=2,
    environments_per_actor=32,
    agent=dataclasses.replace(config.agent, batch_size=32),
    replay=dataclasses.replace(config.replay, queue_size=64, unrolls_per_item=8),
    learner=dataclasses.replace(config.learner, log_period_s=0.2),
  )
  lines = []
  result = soak.soak(config, 30_000, lines.append)
  assert result['agent_steps'] >= 30_000
  first = result['samples'][-1]['resident_mb']
  assert {'learner', 'actor', 'actor 2', 'actor_supervisor', 'launcher'} <= set(first)
  assert first['learner'] > 4 * first['actor'] > 0  # only the learner has TensorFlow
  assert any('of 0.03M steps, the learner has' in line for line in lines)
