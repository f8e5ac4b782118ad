"""The servers of a run, which `inspect --run_dir` finds in its folder as long as it lives."""

import os
import types as types_lib

import pytest

from seed_acme import types
from seed_acme.files import local
from seed_acme.programs.building import learner_side
from seed_acme.programs.tools.inspection import address as inspect_address


def test_a_run_that_has_ended_is_not_looked_for(run_folder):
  with pytest.raises(types.UserError, match='no addresses.json'):
    inspect_address.of_run(str(run_folder.path))
  local.write_json(run_folder.addresses, {'replay': 'localhost:7'})
  assert inspect_address.of_run(str(run_folder.path)) == ('localhost:7',)
  for record in (run_folder.summary, run_folder.failure):
    local.write_json(record, {'wall_s': 1.0})
    os.utime(record, (1, 1))  # the clock was set back
    with pytest.raises(types.UserError, match=f'has ended .{record.name}'):
      inspect_address.of_run(str(run_folder.path))
    record.unlink()


def test_a_run_that_was_resumed_lives_whatever_the_clock_says(run_folder):
  side = types_lib.SimpleNamespace(replay_addresses=('localhost:7',))
  records = (run_folder.summary, run_folder.failure)
  for seconds, record in enumerate(records):
    local.write_json(record, {'wall_s': seconds})
  learner_side.write_addresses(run_folder, side, inference='localhost:8')
  for record in records:
    for time_s in (1, 9e9):
      os.utime(record, (time_s, time_s))
      assert inspect_address.of_run(str(run_folder.path)) == ('localhost:7',)
  for record in records:
    earlier = record.read_bytes()
    local.write_json(record, {'wall_s': 7.0})
    with pytest.raises(types.UserError, match=f'has ended .{record.name}'):
      inspect_address.of_run(str(run_folder.path))
    record.write_bytes(earlier)


@pytest.mark.parametrize(
  'content', [{}, {'replay': 7}, [], {'replay': []}, {'replay': ['localhost:7', 8]}]
)
def test_addresses_without_a_replay(run_folder, content):
  local.write_json(run_folder.addresses, content)
  with pytest.raises(types.UserError, match='names no replay'):
    inspect_address.of_run(str(run_folder.path))


def test_earlier_ends_of_another_form_count_as_none(run_folder):
  local.write_json(
    run_folder.addresses, {'replay': 'localhost:7', 'earlier_ends': ['summary.json']}
  )
  assert inspect_address.of_run(str(run_folder.path)) == ('localhost:7',)
  local.write_json(run_folder.summary, {})
  with pytest.raises(types.UserError, match='has ended'):
    inspect_address.of_run(str(run_folder.path))
