"""Labels of combinations, and the names of their folders."""

import pytest

from seed_acme.configs import registry
from seed_acme.programs.tools.sweep import labels as sweep_labels
from seed_acme.programs.tools.sweep import plan as sweep_plan

_BASE = registry.load('catch_vtrace')
_RATE = 'agent.optimizer.learning_rate'


def _slugs(plan):
  return [combination.slug for combination in plan.combinations]


@pytest.mark.parametrize(
  'grid, slugs',
  [
    (
      {_RATE: (1e-3,), 'network.mlp_sizes': ((64, 64), ())},
      ['learning_rate=0.001,mlp_sizes=64-64', 'learning_rate=0.001,mlp_sizes=empty'],
    ),
    (
      {'environment.id': ('catch', 'gymnasium:CartPole-v1')},
      ['id=catch', 'id=gymnasium-CartPole-v1'],
    ),
    (
      {'agent.batch_size': (8,), 'inference.batch_size': (16,)},
      ['agent.batch_size=8,inference.batch_size=16'],
    ),
    ({'agent.entropy.threshold': (None, 0.5)}, ['entropy.threshold=None', 'entropy.threshold=0.5']),
  ],
)
def test_folders_are_named_after_the_settings(grid, slugs):
  assert _slugs(sweep_plan.make(_BASE, [grid], 2)) == slugs


@pytest.mark.slow
@pytest.mark.parametrize(
  'grid, slugs',
  [
    ({'agent.entropy.weight': (0.0, 0.01)}, ['entropy.weight=0.0', 'entropy.weight=0.01']),
    (
      {'agent.values.statistics': ('none', 'ema'), 'agent.num_epochs': (3,)},
      ['values.statistics=none,num_epochs=3', 'values.statistics=ema,num_epochs=3'],
    ),
    ({'agent.batch_size': (16,)}, ['agent.batch_size=16']),
  ],
)
def test_a_name_that_several_records_have_is_told_with_its_record(grid, slugs):
  plan = sweep_plan.make(registry.load('cartpole_ppo'), [grid], 2)
  assert _slugs(plan) == slugs
  labels = [
    sweep_labels.label(combination.settings, plan.names()) for combination in plan.combinations
  ]
  assert labels == [slug.replace(',', ', ') for slug in slugs]


def test_folder_names_are_unique_short_and_stable():
  settings = [{'f': 'a/b'}, {'f': 'a:b'}, {'f': 'x' * 300}, {'f': 'x' * 301}]
  slugs = {}
  sweep_labels.add_slugs(slugs, {str(i): one for i, one in enumerate(settings)}, _BASE)
  assert len(set(slugs.values())) == 4
  assert all(len(slug) <= 100 and '/' not in slug for slug in slugs.values())
  again = {}
  sweep_labels.add_slugs(again, {str(i): settings[i] for i in (3, 1, 0, 2)}, _BASE)
  assert again == slugs
