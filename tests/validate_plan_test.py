"""scripts/validate_plan.py: its commands, its output, and when it fails."""

import dataclasses
import json

import pytest

from seed_acme.programs.tools.planning import costs
from tests import sources
from tests.programs.tools.planning import made_up


@pytest.fixture(name='script', scope='module')
def _script():
  return sources.script('validate_plan')


@pytest.fixture(name='runs')
def _runs(script, monkeypatch):
  """A stand-in for bench: each run's speed is the plan's times a factor set by the test."""
  known = costs.fit([made_up.make_record()])
  asked, times = [], dict.fromkeys(script.OTHERS, 1.0)

  def bench(setting, seconds, measures_costs):
    asked.append((setting, seconds, measures_costs))
    if setting in script.FITTED:
      return made_up.make_record()
    planned, per_cpu_s = script.plan(known, setting)
    return {'steps_per_s': planned.steps_per_s * times[setting], 'steps_per_cpu_s': per_cpu_s}

  monkeypatch.setattr(script, 'bench', bench)
  return asked, times


def test_eight_settings_are_held_against_a_plan_fitted_to_others(script, runs, capsys):
  asked, _ = runs
  assert len(script.OTHERS) >= 8 and not set(script.OTHERS) & set(script.FITTED)
  assert script.main(['--rounds=2', '--seconds=3']) == 0
  assert [setting for setting, _, _ in asked] == 2 * [*script.FITTED, *script.OTHERS]
  assert [measures_costs for _, _, measures_costs in asked].count(True) == 1
  assert asked[0][1:] == (3.0, True)
  lines = capsys.readouterr().out.splitlines()
  assert len(lines) == 1 + len(script.OTHERS)
  assert all(line.count('| +0% |') + line.count('| -0% |') == 2 for line in lines[1:])


def test_one_rate_far_off_fails(script, runs, capsys):
  _, times = runs
  times[script.OTHERS[3]] = 0.5
  assert script.main(['--rounds=1']) == 1
  assert '+100%' in capsys.readouterr().out.splitlines()[4]


def test_records_are_kept_and_read_again(script, runs, tmp_path):
  asked, _ = runs
  out = tmp_path / 'records.json'
  assert script.main(['--rounds=1', f'--out={out}']) == 0
  fitted, others = json.loads(out.read_text())
  assert len(fitted) == 3 and len(others) == 8
  asked.clear()
  assert script.main([f'--out={out}']) == 0 and not asked


def test_the_steps_of_a_cpu_second_are_those_of_all_parts(script):
  known = costs.fit([made_up.make_record()])
  busy = dataclasses.replace(known, contention=2.0)
  setting = script.OTHERS[0]
  (planned, per_cpu_s), (slower, same) = script.plan(known, setting), script.plan(busy, setting)
  assert slower.steps_per_s < planned.steps_per_s
  assert same == pytest.approx(per_cpu_s, rel=0.2)
