"""Costs fitted to made-up bench records equal the costs that they were made from."""

import json

import pytest

from seed_acme import types
from seed_acme.programs.tools.planning import costs
from tests.programs.tools.planning import made_up


@pytest.mark.parametrize(
  'points, size, cost',
  [
    (((4, 2.0),), 8, 4.0),
    (((1, 1.0), (5, 3.0)), 3, 2.0),
    (((1, 1.0), (5, 3.0)), 9, 5.0),
    (((2, 1.0), (4, 3.0)), 1, 1.0),
    (((2, 3.0), (4, 1.0)), 8, 1.0),  # noise of the measurement; a call never gets cheaper
  ],
)
def test_a_curve_goes_through_its_points_and_on(points, size, cost):
  assert costs.Curve(points)(size) == pytest.approx(cost)


def test_groups_and_batches_of_several_sizes_tell_messages_calls_and_rows_apart():
  parts = {'message_s': 3e-3, 'call_s': 5e-3, 'row_s': 2e-4}
  found = costs.fit(
    [made_up.make_record(groups, batch, **parts) for groups, batch in ((1, 64), (16, 64), (4, 16))]
  )
  for name, seconds in parts.items():
    assert getattr(found, name) == pytest.approx(seconds)
  assert found.actor_message_s == pytest.approx(2e-3)
  assert found.steps_per_row == 0.9
  assert found.inference_call(16) == 0.004 and found.update(64) == pytest.approx(0.2)


def test_one_record_counts_all_with_the_rows():
  found = costs.fit([made_up.make_record(groups=4, message_s=1.6e-3, row_s=1e-4)])
  assert found.message_s == 0 and found.call_s == 0
  assert found.row_s == pytest.approx(1e-4 + 1.6e-3 / 16)


def test_a_record_of_one_process_is_named_as_such():
  record = made_up.make_record(launch='single_process', cpu_s={'launcher': 3.0})
  with pytest.raises(types.UserError, match='bench --launch=local_mp'):
    costs.fit([record])


@pytest.mark.parametrize('message_s, row_s', [(0.0, 2e-4), (3e-3, 0.0), (0.0, 0.0)])
def test_no_overhead_is_negative(message_s, row_s):
  records = [
    made_up.make_record(groups, message_s=message_s * (1 + jitter), row_s=row_s * (1 - jitter))
    for groups, jitter in ((1, 0.1), (16, -0.1))
  ]
  found = costs.fit(records)
  assert min(found.message_s, found.call_s, found.row_s) >= 0
  total = found.message_s / 64 + found.call_s / 16 + found.row_s
  assert total == pytest.approx(message_s / 64 + row_s, rel=0.5)


def test_contention_is_time_at_work_over_cpu_time():
  record = made_up.make_record()
  spent = record['cpu_s']['learner']
  assert costs.fit([record]).contention == 1
  record['phase_shares'] = {'inference': {'wait': 0.25}, 'learner': {'gradient': 0.5}}
  record['window_s'] = 4 * spent
  assert costs.fit([record]).contention == pytest.approx((0.75 + 0.5) * 4)


def test_several_configurations_are_refused():
  records = [made_up.make_record(), made_up.make_record(config='other')]
  with pytest.raises(types.UserError, match='made_up, other; plan from one'):
    costs.fit(records)


@pytest.mark.parametrize(
  'content',
  [
    '',
    'no JSON',
    '[]',
    '3',
    '{}',
    json.dumps({**made_up.make_record(), 'calls': {}}),
    json.dumps({**made_up.make_record(), 'setting': {'actors': 1}}),
    json.dumps(made_up.make_record(agent_steps=0)),
    json.dumps(made_up.make_record(steps_per_row=0)),
    json.dumps(made_up.make_record(inference_batch_size={'mean': -1})),
  ],
)
def test_what_is_no_record_is_one_line(tmp_path, content):
  path = tmp_path / 'bench.json'
  path.write_text(content)
  with pytest.raises(types.UserError, match=r'bench\.json.*seed-acme bench --json > bench\.json'):
    costs.read([str(path)])


def test_a_record_is_read(tmp_path):
  path = tmp_path / 'bench.json'
  path.write_text(json.dumps(made_up.make_record()))
  assert costs.read([str(path)]) == costs.fit([made_up.make_record()])


def test_calls_are_those_of_the_first_record_that_has_them():
  lacking = made_up.make_record(groups=4)
  del lacking['calls']
  slower = made_up.make_record(groups=16)
  slower['calls'] = {**slower['calls'], 'update_s': [[64, 9.0]]}
  found = costs.fit([lacking, made_up.make_record(), slower])
  assert found.setting.groups_per_actor == 4
  assert found.update(64) == pytest.approx(0.2)


def test_records_without_calls_are_told_what_they_lack():
  lacking = made_up.make_record()
  del lacking['calls']
  with pytest.raises(types.UserError, match=r'no record .*--from .*`calls`.*without --no_bounds'):
    costs.fit([lacking, lacking])
