"""The planner in limits that can be solved by hand, and relations between plans."""

import dataclasses

import pytest

from seed_acme import types
from seed_acme.programs.tools.planning import costs as costs_lib
from seed_acme.programs.tools.planning import model
from tests.programs.tools.planning import made_up

SETTING = made_up.SETTING
# Half the environments are always under way, so waiting for them limits nothing below.
FAST = dataclasses.replace(SETTING, inference_timeout_s=1e-7)


def _busy(**changes):
  """Returns costs at which every part is busy, with `changes`."""
  costs = {
    'environment_call': made_up.flat(1e-3),
    'inference_call': costs_lib.Curve(((1, 1e-3), (64, 4e-3))),
    'actor_inference_call': costs_lib.Curve(((1, 1e-3), (64, 20e-3))),
    'update': made_up.flat(1e-3),
    'exchange_bytes': made_up.flat(1000.0),
    'unroll_bytes': 20_000.0,
    'shared_unroll_bytes': 3_000.0,
    'weights_bytes': 1e6,
    'gradient_bytes': 3e6,
  }
  return made_up.make_costs(**{**costs, **changes})


def _check(plan, bottleneck, rows_per_s):
  assert plan.bottleneck == bottleneck
  assert plan.steps_per_s == pytest.approx(rows_per_s, rel=1e-3)
  assert plan.frames_per_s == pytest.approx(4 * rows_per_s, rel=1e-3)


@pytest.mark.parametrize('message_s', [0.0, 2e-3])
def test_actors_step_as_fast_as_their_cores_do(message_s):
  costs = made_up.make_costs(
    setting=FAST, environment_call=made_up.flat(1e-3), actor_message_s=message_s
  )
  # 4 cores; a group of 4 takes 4 ms and its message, by which time the other group's reply is
  # there.
  plan = model.central(costs, made_up.make_scale())
  _check(plan, 'actors', 4 * 4 / (4e-3 + message_s))
  assert plan.idle['actors'] == 0
  assert plan.idle['inference'] > 0.99 and plan.idle['training'] > 0.99


@pytest.mark.parametrize('devices', [1, 2])
def test_inference_runs_full_batches(devices):
  costs = made_up.make_costs(
    inference_call=costs_lib.Curve(((1, 6e-3), (64, 6e-3))), row_s=1e-4, message_s=4e-4, call_s=2e-3
  )
  # A call of 8 rows takes 6 ms and 2 ms around it, and each row takes 0.1 ms and a quarter of a
  # message.
  plan = model.central(
    costs,
    made_up.make_scale(
      inference_rows=8, environments_per_actor=800, groups_per_actor=200, inference_devices=devices
    ),
  )
  _check(plan, 'inference', devices * 8 / (8e-3 + 8 * 2e-4))
  assert plan.idle['inference'] == 0 and plan.idle['actors'] > 0.99
  assert plan.batch_rows == pytest.approx(8)


@pytest.mark.parametrize('devices, ratio', [(1, 1.0), (4, 1.0), (1, 2.0)])
def test_training_takes_each_row_as_often_as_the_ratio_says(devices, ratio):
  costs = made_up.make_costs(update=made_up.flat(0.01), replay_ratio=ratio)
  plan = model.central(costs, made_up.make_scale(training_devices=devices))
  _check(plan, 'training', devices * 20 / 0.01 / ratio)
  assert plan.idle['training'] == 0
  assert plan.updates_per_s == pytest.approx(devices / 0.32, rel=1e-3)


def test_a_full_queue_is_policy_lag():
  costs = made_up.make_costs(update=made_up.flat(0.01))
  plan = model.central(costs, made_up.make_scale())
  # Half an unroll of 32 environments is half a batch; 64 unrolls wait, and one batch is ready.
  assert plan.policy_lag == pytest.approx(0.5 + 2 + 1, rel=1e-3)
  # With batches of 8 unrolls the same 64 are 8 updates, and half of the 32 under way are 2.
  plan = model.central(costs, made_up.make_scale(unrolls_per_update=8))
  assert plan.policy_lag == pytest.approx(2 + 8 + 1, rel=1e-3)


def test_the_network_carries_what_it_can():
  costs = made_up.make_costs(exchange_bytes=made_up.flat(1000.0))
  plan = model.central(costs, made_up.make_scale(network_bytes_per_s=1e6))
  _check(plan, 'network', 1000)
  assert plan.bytes_per_s == pytest.approx(1e6, rel=1e-3)
  assert plan.idle['network'] == 0


def test_too_few_environments_wait_for_their_replies():
  plan = model.central(made_up.make_costs(setting=FAST), made_up.make_scale(round_trip_s=0.1))
  _check(plan, 'environments', 32 / 0.1)
  assert min(plan.idle.values()) > 0.99


def test_processes_share_the_cores_of_a_machine():
  costs = made_up.make_costs(
    setting=FAST, environment_call=made_up.flat(1e-3), update=made_up.flat(20e-3)
  )
  # 1 ms of stepping and 1 ms of training per row.
  plan = model.central(costs, made_up.make_scale(actors=64, cores=1.5))
  _check(plan, 'cores', 1.5 / 2e-3)
  slow = dataclasses.replace(costs, contention=2.0)
  _check(model.central(slow, made_up.make_scale(actors=64, cores=1.5)), 'cores', 0.75 / 2e-3)
  assert model.central(costs, made_up.make_scale(actors=64)).bottleneck == 'training'


@pytest.mark.parametrize('planned', [model.central, model.actor_side])
def test_twice_of_everything_is_twice_as_fast(planned):
  costs = _busy()
  scale = made_up.make_scale(learners=1, inference_devices=2, training_devices=2)
  twice = dataclasses.replace(scale, learners=2, actors=8, unrolls_per_update=64)
  one, two = planned(costs, scale), planned(costs, twice)
  assert two.steps_per_s == pytest.approx(2 * one.steps_per_s)
  assert two.updates_per_s == pytest.approx(one.updates_per_s)
  assert two.policy_lag == pytest.approx(one.policy_lag)
  assert two.bottleneck == one.bottleneck
  # The amount above twice is what the hosts exchange in each update: all gradients, out and in, and
  # what the other host needs of each host's half of the batch.
  exchanged = (2 * costs.gradient_bytes + 64 * costs.shared_unroll_bytes) * two.updates_per_s
  assert two.bytes_per_s == pytest.approx(2 * one.bytes_per_s + exchanged)


@pytest.mark.parametrize('planned', [model.central, model.actor_side])
@pytest.mark.parametrize('actors', [1, 4, 16, 64, 1024])
def test_the_bottleneck_is_never_idle_and_more_actors_never_slow_down(planned, actors):
  plan = planned(_busy(), made_up.make_scale(actors=actors))
  more = planned(_busy(), made_up.make_scale(actors=2 * actors))
  assert more.steps_per_s >= plan.steps_per_s * (1 - 1e-9)
  assert plan.idle.get(plan.bottleneck, 0.0) == 0
  assert all(0 <= share <= 1 for share in plan.idle.values())


@pytest.mark.parametrize('call_s, row_s', [(0.0, 0.0), (2e-3, 5e-4)])
def test_actors_that_infer_pay_for_it_on_their_cores(call_s, row_s):
  costs = _busy(call_s=call_s, row_s=row_s)
  plan = model.actor_side(costs, made_up.make_scale(actors=1, unrolls_per_update=2))
  call = 1e-3 + 3 / 63 * 19e-3 + call_s  # for 4 rows
  _check(plan, 'actors', 4 / (4e-3 + call + 4 * row_s))
  assert 'inference' not in plan.idle and plan.batch_rows == 4


def test_weights_are_sent_to_each_actor_after_each_update():
  costs = _busy(update=made_up.flat(0.05), weights_bytes=1e6)
  plan = model.actor_side(costs, made_up.make_scale())
  assert plan.bottleneck == 'training' and plan.updates_per_s == pytest.approx(1 / 1.6)
  unrolls = 32 / 1.6 * costs.unroll_bytes
  # 4 actors of 8 environments begin 20 unrolls a second: 0.625 a second is less than 2.5.
  assert plan.bytes_per_s == pytest.approx(unrolls + 4 * 0.625 * 1e6)


def test_the_papers_example_of_bytes():
  """Footnote 1 of the paper, second-hand: 100k observations/s, unroll 20, 30 MB of weights."""
  observation = 96 * 72 * 3
  costs = made_up.make_costs(
    environment_call=made_up.flat(1e-3),
    exchange_bytes=made_up.flat(observation),
    unroll_bytes=20 * observation,
    weights_bytes=30e6,
    setting=dataclasses.replace(SETTING, inference_timeout_s=1e-6),
  )
  scale = made_up.make_scale(actors=100, environments_per_actor=1, groups_per_actor=1)
  central, actor_side = model.central(costs, scale), model.actor_side(costs, scale)
  for plan, gigabytes in ((central, 2), (actor_side, 148)):
    assert plan.bytes_per_s * 1e5 / plan.steps_per_s == pytest.approx(gigabytes * 1e9, rel=0.05)


def test_fewer_rows_than_environments_are_agent_steps():
  costs = _busy()
  all_rows = model.central(costs, made_up.make_scale())
  some = model.central(dataclasses.replace(costs, steps_per_row=0.9), made_up.make_scale())
  assert some.steps_per_s == pytest.approx(0.9 * all_rows.steps_per_s)


@pytest.mark.parametrize('field', ['learners', 'actors', 'training_devices', 'network_bytes_per_s'])
def test_nothing_of_something_is_refused(field):
  with pytest.raises(types.UserError, match=rf'{field} \(0\) must be (>= 1|> 0)'):
    made_up.make_scale(**{field: 0})
