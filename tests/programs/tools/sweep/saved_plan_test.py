"""The plan of a sweep, written and read."""

import json

import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import saved_plan

_BASE = registry.load('catch_vtrace')
_RATE = 'agent.optimizer.learning_rate'


@pytest.mark.slow
@pytest.mark.parametrize(
  'grids',
  [
    (),
    (
      {_RATE: (1e-3, 1e-4), 'network.mlp_sizes': ((64, 64), ())},
      {'agent.entropy.threshold': (None, 0.5)},
    ),
    ({'environment.settings': ({'rows': 5}, {})},),
  ],
)
def test_a_saved_plan_is_read_back(tmp_path, grids):
  plan = sweep_plan.make(_BASE, grids, 2)
  saved_plan.save(plan, tmp_path)
  saved = saved_plan.load(tmp_path)
  assert saved == plan
  assert sweep_plan.make(saved.base, saved.products(), saved.num_seeds, saved) == plan


@pytest.mark.parametrize(
  'change, words',
  [
    ({'format': 9}, ['format 9']),
    ({'combinations': 3}, ['damaged']),
    ({'config': {'type': 'seed_acme.config:Nothing'}}, ['Nothing']),
  ],
)
def test_a_damaged_plan_is_a_user_error(tmp_path, change, words):
  saved_plan.save(sweep_plan.make(_BASE, [{'agent.lambda_': (1.0,)}], 2), tmp_path)
  path = tmp_path / saved_plan.FILE
  path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
  with pytest.raises(types.UserError) as caught:
    saved_plan.load(tmp_path)
  for word in [str(path), *words]:
    assert word in str(caught.value)
