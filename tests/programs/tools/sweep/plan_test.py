"""The runs of a sweep, and valid extensions of a sweep."""

import dataclasses
import pathlib

import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs.tools.sweep import grid as sweep_grid
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import search_space

_BASE = registry.load('catch_vtrace')
_RATE = 'agent.optimizer.learning_rate'


def _plan(*grids, num_seeds=2, saved=None, base=_BASE):
  """grids: products as `sweep_grid.parse` returns them, because parsing takes long."""
  return sweep_plan.make(base, grids, num_seeds, saved)


@pytest.mark.slow
def test_a_grid_is_a_product_and_several_are_a_union():
  plan = _plan({_RATE: (1e-3, 1e-4), 'agent.lambda_': (0.9, 0.95)}, {'agent.discount': (0.9,)})
  assert [combination.settings for combination in plan.combinations] == [
    {_RATE: 0.001, 'agent.lambda_': 0.9},
    {_RATE: 0.001, 'agent.lambda_': 0.95},
    {_RATE: 0.0001, 'agent.lambda_': 0.9},
    {_RATE: 0.0001, 'agent.lambda_': 0.95},
    {'agent.discount': 0.9},
  ]
  assert plan.combinations[1].config.agent.optimizer.learning_rate == 0.001
  assert plan.combinations[1].config.agent.lambda_ == 0.95
  assert plan.combinations[4].config == dataclasses.replace(
    _BASE, agent=dataclasses.replace(_BASE.agent, discount=0.9)
  )
  assert plan.fields() == [_RATE, 'agent.lambda_', 'agent.discount']


def _with_optimizer(**changes):
  optimizer = dataclasses.replace(_BASE.agent.optimizer, **changes)
  return dataclasses.replace(_BASE, agent=dataclasses.replace(_BASE.agent, optimizer=optimizer))


def test_without_a_grid_the_configuration_itself_is_run():
  plan = _plan()
  assert [(c.slug, c.settings, c.config) for c in plan.combinations] == [('base', {}, _BASE)]


def test_fields_that_change_nothing_in_any_combination_are_told_apart():
  epsilon, decay, size = 'agent.ppo_epsilon', 'agent.optimizer.rmsprop_decay', 'num_actors'
  plan = _plan(
    {'agent.policy_loss': ('vpg', 'ppo'), epsilon: (0.1, 0.2)}, {decay: (0.9, 0.99), size: (1,)}
  )
  assert plan.idle_fields([epsilon, decay, size]) == {decay: 'agent.optimizer.name is adam'}
  plan = _plan({'agent.policy_loss': ('vpg', 'vtrace'), epsilon: (0.1, 0.2)})
  assert plan.idle_fields([epsilon]) == {epsilon: 'agent.policy_loss is vpg'}
  space = search_space.parse('agent.policy_loss=vpg,ppo', _BASE)
  search = sweep_plan.Search(space, num_trials=5)
  drawn = sweep_plan.make(_BASE, [{'agent.policy_loss': ('vpg',)}], 1).combinations
  assert sweep_plan.Plan(_BASE, drawn, 1, search).idle_fields([epsilon]) == {}


def test_a_last_seed_that_is_too_large_is_refused():
  base = dataclasses.replace(_BASE, seed=2**64 - 2)
  assert len(_plan(base=base).runs(pathlib.Path())) == 2
  with pytest.raises(types.UserError, match=rf'^seed \({2**64}\) must be in'):
    _plan(base=base, num_seeds=3)


@pytest.mark.slow
def test_the_same_configuration_is_run_once_however_it_is_written():
  assert (_BASE.agent.lambda_, _BASE.agent.discount) == (1.0, 0.99)
  grids = ['agent.lambda_=1,0.9', 'agent.discount=0.99,0.9']
  plan = _plan(*sweep_grid.parse(grids, _BASE))
  assert [combination.settings for combination in plan.combinations] == [
    {'agent.lambda_': 1.0, 'agent.discount': 0.99},
    {'agent.lambda_': 0.9},
    {'agent.discount': 0.9},
  ]


def test_runs_go_seed_by_seed_each_into_a_folder_of_its_own():
  base = dataclasses.replace(_BASE, seed=5)
  runs = _plan({'agent.lambda_': (0.9, 0.8)}, num_seeds=3, base=base).runs(pathlib.Path('out'))
  assert [(run.seed, run.config.seed, run.config.agent.lambda_) for run in runs] == [
    (seed, seed, lambda_) for seed in (5, 6, 7) for lambda_ in (0.9, 0.8)
  ]
  assert [str(run.run_dir.path) for run in runs[:3]] == [
    'out/lambda_=0.9/seed_5',
    'out/lambda_=0.8/seed_5',
    'out/lambda_=0.9/seed_6',
  ]


@pytest.mark.slow
def test_more_values_seeds_fields_and_steps_extend_a_sweep_and_keep_its_folders():
  constant = _with_optimizer(schedule='constant')
  old = _plan({_RATE: (1e-3, 1e-4)}, base=constant)
  longer = dataclasses.replace(constant, total_steps=2 * constant.total_steps)
  wider = {'agent.lambda_': (1.0, 0.9), _RATE: (1e-4, 1e-3, 1e-2)}
  new = _plan(wider, num_seeds=3, saved=old, base=longer)
  by_settings = {tuple(c.settings.values()): c.slug for c in new.combinations}
  assert len(by_settings) == 6
  assert by_settings[1.0, 0.001] == 'learning_rate=0.001'
  assert by_settings[1.0, 0.0001] == 'learning_rate=0.0001'
  assert by_settings[0.9, 0.001] == 'lambda_=0.9,learning_rate=0.001'


@pytest.mark.slow
@pytest.mark.parametrize(
  'grid, num_seeds, changes, words',
  [
    ({_RATE: (1e-3,)}, 2, {}, ['lacks', 'learning_rate=0.0001', '--grid']),
    ({'agent.lambda_': (0.9,)}, 2, {}, ['lacks', '2']),
    ({_RATE: (1e-3, 1e-4)}, 1, {}, ['2 seeds', '--seeds (1)']),
    ({_RATE: (1e-3, 1e-4)}, 2, {'seed': 3}, ['seed: 1 -> 3', '--out']),
    ({_RATE: (1e-3, 1e-4)}, 2, {'total_steps': 9}, ['total_steps: 300000 -> 9']),
    ({_RATE: (1e-3, 1e-4)}, 2, {'environments_per_actor': 8}, ['environments_per_actor: 32 -> 8']),
  ],
)
def test_what_does_not_extend_a_sweep_is_refused(grid, num_seeds, changes, words):
  old = _plan({_RATE: (1e-3, 1e-4)})
  with pytest.raises(types.UserError) as caught:
    _plan(grid, num_seeds=num_seeds, saved=old, base=dataclasses.replace(_BASE, **changes))
  assert '\n' not in str(caught.value)
  for word in words:
    assert word in str(caught.value)


_SCHEDULE = 'agent.optimizer.schedule'


@pytest.mark.parametrize(
  'grid, words',
  [
    ({}, ['because runs would', f'({_SCHEDULE}=linear)']),
    ({_SCHEDULE: ('constant', 'linear')}, ['runs of schedule=linear', f'({_SCHEDULE}=linear)']),
    ({_RATE: (1e-3, 1e-4)}, ['runs of learning_rate=0.001', f'({_SCHEDULE}=linear)']),
  ],
)
def test_another_length_is_refused_if_a_schedule_goes_over_it(grid, words):
  old = _plan(grid)
  longer = dataclasses.replace(_BASE, total_steps=600_000)
  with pytest.raises(types.UserError) as caught:
    _plan(grid, saved=old, base=longer)
  for word in ['total_steps (300000 -> 600000)', 'one mean', 'another --out for a new', *words]:
    assert word in str(caught.value)


def test_another_length_is_allowed_if_runs_of_before_keep_theirs_or_no_schedule_goes_over_it():
  longer = {'total_steps': 600_000}
  flat = _with_optimizer(final_share=1.0)
  plan = _plan(saved=_plan(base=flat), base=dataclasses.replace(flat, **longer))
  assert [run.config.total_steps for run in plan.runs(pathlib.Path('out'))] == [600_000] * 2
  # The grid says the length of each run, so that of the base is that of none.
  lengths = {'total_steps': (1_000, 2_000)}
  plan = _plan(lengths, saved=_plan(lengths), base=dataclasses.replace(_BASE, **longer))
  assert [combination.config.total_steps for combination in plan.combinations] == [1_000, 2_000]


@pytest.mark.parametrize(
  'grid, num_seeds, words',
  [
    (
      {'agent.batch_size': (16, 12)},
      2,
      ['batch_size=12: agent.batch_size (12)', 'unrolls_per_item (8)'],
    ),
    ({'environment.id': ('catch', 'catsh')}, 2, ['id=catsh', 'near: catch']),
    ({'agent.lambda_': (1.0,)}, 20_000, ['20,000 runs', '10,000']),
  ],
)
def test_every_combination_is_checked_before_anything_is_started(grid, num_seeds, words):
  with pytest.raises(types.UserError) as caught:
    plan = _plan(grid, num_seeds=num_seeds)
    sweep_plan.check_environments(plan, plan.combinations)
  for word in words:
    assert word in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
  'grid, words',
  [
    ({'network.core': ('none', 'lstm')}, ['core=lstm: ', "agent.minibatch_of ('transitions')"]),
    (
      {'agent.keep_advantages': ('all', 'top_half'), 'agent.policy_loss': ('ppo', 'vmpo')},
      ['keep_advantages=top_half, policy_loss=vmpo: ', "must be 'all'"],
    ),
    (
      {'agent.action_distribution': ('tanh_normal', 'deterministic_tanh')},
      ['deterministic_tanh: '],
    ),
  ],
)
def test_combinations_of_the_on_policy_agent_that_cannot_run_are_told(grid, words):
  base = registry.load('cartpole_ppo')
  base = dataclasses.replace(base, learner=dataclasses.replace(base.learner, xla=False))
  with pytest.raises(types.UserError) as caught:
    _plan(grid, base=base)
  for word in words:
    assert word in str(caught.value)
