"""The account of CPU-seconds over all starts of a run."""

import pytest

from seed_acme import types
from seed_acme.files import local
from seed_acme.programs.front_end import cpu_record
from seed_acme.storage import run_directory


@pytest.fixture(name='run')
def _run(tmp_path):
  return run_directory.create(tmp_path / 'run')


def test_starts_without_a_summary_are_added_up(run):
  first = cpu_record.CpuRecord(run)
  first.update({'learner': 1.0})
  first.update({'learner': 3.0})  # the whole of the first start so far
  second = cpu_record.CpuRecord(run)
  assert second.seconds == {'learner': 3.0}
  second.update({'learner': 2.0, 'actor': 1.0})
  second.begin()
  second.update({'learner': 4.0})
  assert second.seconds == {'actor': 1.0, 'learner': 9.0}
  assert local.read_json(run.cpu_seconds) == second.seconds


@pytest.mark.parametrize('recorded', [None, 2.0, 8.0])
def test_the_newer_of_record_and_summary_counts(run, recorded):
  """Runs of earlier versions have no record, and after a full disk it is out of date."""
  local.write_json(run.summary, {'cpu_s': {'learner': 5.0, 'replay': 1.0}})
  if recorded is not None:
    local.write_json(run.cpu_seconds, {'learner': recorded})
  assert cpu_record.CpuRecord(run).seconds == {'learner': max(recorded or 0, 5.0), 'replay': 1.0}


def test_a_full_disk_does_not_end_the_run(run, monkeypatch):
  def fail(*_):
    raise types.Failure('no room')

  monkeypatch.setattr(local, 'write_json', fail)
  record = cpu_record.CpuRecord(run)
  record.update({'learner': 2.0})
  assert record.seconds == {'learner': 2.0}
