"""Restarts of runs in a bucket, and who may write to them."""

import json
import threading

import pytest

from seed_acme import types
from seed_acme.files import bucket
from seed_acme.files import local
from seed_acme.storage import bucket_copy
from seed_acme.storage import bucket_fetch
from seed_acme.storage import checkpoint
from seed_acme.storage import lease
from tests.storage import copies


def test_a_failure_is_void_in_the_next_attempt(make_copy, url):
  run, copier = make_copy()
  copier.start()
  local.write_json(run.failure, {'message': 'broken'})
  copier.stop()
  assert 'failure.json' in bucket.files_below(url)
  _, again = make_copy('other')
  again.start()
  assert 'failure.json' not in bucket.files_below(url)
  again.stop()


def test_logs_of_earlier_starts_are_kept_by_number(make_copy, url):
  for number in (1, 2, 3):
    run, copier = make_copy(f'host{number}')
    if number == 3:  # written by a process that opens its log before the run is fetched
      copies.write_log(run, '3')
    copier.start()
    if number != 3:
      copies.write_log(run, str(number))
    earlier = [run.logs / f'attempt_{n}' for n in range(1, number)]
    assert all(path.is_dir() and not list(path.iterdir()) for path in earlier)
    copier.stop()
  found = {name: bucket.read_bytes(bucket.join(url, name)) for name in bucket.files_below(url)}
  assert found == {
    'logs/attempt_1/learner/0': b'1',
    'logs/attempt_2/learner/0': b'2',
    'logs/learner/0': b'3',
  }


def test_a_start_that_was_refused_moves_no_logs(make_copy, url):
  run, copier = make_copy()
  copier.start()
  copies.write_log(run, 'log')
  copier.stop()
  for end in (bucket_copy.Mirror.abandon, bucket_copy.Mirror.stop):
    _, again = make_copy(f'other{end.__name__}')
    again.start()
    end(again)
    assert bucket.files_below(url) == ['logs/learner/0']


def test_a_second_program_is_refused_while_the_first_lives(make_copy):
  _, first = make_copy('first')
  first.start()
  # It waits for the first's next round, which may come late on a busy machine.
  _, second = make_copy('second', period_s=0.5)
  with pytest.raises(types.UserError, match='is being trained by another program'):
    second.start()
  first.stop()
  second.start()
  second.stop()


def test_the_folder_of_a_dead_program_is_taken(make_copy, url):
  dead = lease.Lease(bucket.join(url, 'lock.json'), copies.PERIOD_S)
  dead.acquire()
  run, heir = make_copy()
  heir.start()
  heir.stop()
  with pytest.raises(lease.TakenOver):
    dead.renew()


def test_a_job_that_is_started_again_need_not_wait(url, monkeypatch):
  monkeypatch.setenv('CLOUD_ML_JOB_ID', '42')
  path = bucket.join(url, 'lock.json')
  lease.Lease(path, copies.PERIOD_S).acquire()
  monkeypatch.setattr(lease.time, 'sleep', lambda _: pytest.fail('it waited'))
  lease.Lease(path, copies.PERIOD_S).acquire()


def _job(record):
  """Returns which job a folder's record names. While it is renewed, a local file is empty at times,
  as no object of a bucket ever is."""
  read = []
  copies.wait_for(lambda: read.append(bucket.read_bytes(record)) or read[-1])
  return json.loads(read[-1])['job']


def test_another_job_takes_over_the_folder_of_one_that_is_gone(make_copy, url, monkeypatch):
  monkeypatch.setenv('CLOUD_ML_JOB_ID', '42')
  told = threading.Event()
  run, lost = make_copy('of_42', on_failure=lambda error: told.set())
  lost.start()
  copies.save(run, 10, 1)
  copies.wait_for(
    lambda: bucket.files_below(url).count(f'{copies.CHECKPOINTS}/{10:012d}/meta.json')
  )
  copies.write_log(run, '42')
  copies.wait_for(lambda: bucket.files_below(url).count('logs/learner/0'))
  lost._end_threads()  # the machine is lost, but its record stays
  record = bucket.join(url, 'lock.json')
  assert _job(record) == '42'
  monkeypatch.setenv('CLOUD_ML_JOB_ID', '43')
  other, heir = make_copy('of_43')
  heir.start()
  assert _job(record) == '43'
  assert checkpoint.load(checkpoint.newest(other.checkpoints)).meta['value'] == 1
  copies.save(other, 20, 2)
  with pytest.raises(lease.TakenOver):  # if it was only disconnected
    lost.stop()
  heir.stop()
  assert bucket.names(bucket.join(url, copies.CHECKPOINTS)) == [f'{10:012d}', f'{20:012d}']
  assert 'logs/learner/0' in bucket.files_below(url)
  assert 'lock.json' not in bucket.files_below(url)


def test_another_job_is_refused_while_the_first_lives(make_copy, monkeypatch):
  monkeypatch.setenv('CLOUD_ML_JOB_ID', '42')
  _, first = make_copy('of_42')
  first.start()
  monkeypatch.setenv('CLOUD_ML_JOB_ID', '43')
  _, second = make_copy('of_43', period_s=0.5)
  with pytest.raises(types.UserError, match='is being trained by another program'):
    second.start()
  first.stop()


def test_a_start_that_is_interrupted_gives_the_folder_back(make_copy, url, monkeypatch):
  _, copier = make_copy()
  monkeypatch.setattr(bucket, 'names', _interrupt)
  with pytest.raises(SystemExit):
    copier.start()
  monkeypatch.undo()
  assert 'lock.json' not in bucket.files_below(url)


def _interrupt(*_):
  raise SystemExit(143)


def test_a_program_whose_folder_was_taken_is_told(make_copy, url):
  told = threading.Event()
  _, copier = make_copy(on_failure=lambda error: told.set())
  copier.start()
  bucket.write_bytes(
    bucket.join(url, 'lock.json'),
    json.dumps({'owner': 'another', 'beat': 1, 'job': '', 'host': 'elsewhere'}).encode(),
  )
  assert told.wait(30)
  with pytest.raises(lease.TakenOver, match='taken over by elsewhere'):
    copier.stop()


def test_the_lease_is_renewed_while_a_run_is_fetched(make_copy, url, monkeypatch):
  """A replay memory takes minutes, and an unchanged lease is taken over after a few periods."""
  fetch, beats = bucket_fetch.fetch, []

  def slow(*arguments):
    for _ in range(2):
      before = bucket.read_bytes(bucket.join(url, 'lock.json'))
      copies.wait_for(lambda old=before: bucket.read_bytes(bucket.join(url, 'lock.json')) != old)
      beats.append(before)
    return fetch(*arguments)

  monkeypatch.setattr(bucket_fetch, 'fetch', slow)
  _, copier = make_copy()
  copier.start()
  copier.stop()
  assert len(beats) == 2
