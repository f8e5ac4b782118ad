"""A run kept in a bucket: what survives when a machine is lost at any moment."""

import json
import threading
import time

import numpy as np
import pytest

from seed_acme import bucket
from seed_acme import checkpoint
from seed_acme import lease
from seed_acme import mirror
from seed_acme import run_directory
from seed_acme import types

PERIOD_S = 0.02
_CHECKPOINTS = 'checkpoints'


@pytest.fixture
def url(tmp_path):
  return f'file://{tmp_path}/bucket/run'


@pytest.fixture
def make(url, tmp_path):
  """`make(name)`: a run on a host of that name, kept in the bucket, not started."""

  def make_one(name='host', **arguments):
    run = run_directory.RunDirectory(tmp_path / name, bucket=url)
    return run, mirror.Mirror(run, period_s=PERIOD_S, **arguments)

  return make_one


def _save(run, updates, value, keep=3, replay=None):
  run_directory.write_json(run.config, {'checkpoint': {'keep': keep}})
  checkpoint.save(
    run.checkpoints, updates, {'w': np.full(4, value)}, {'value': value}, keep, replay
  )


def _value_after_loss(url, folder):
  """What a new machine finds: the value in the newest checkpoint."""
  run = mirror.fetch(url, folder)
  newest = checkpoint.newest(run.checkpoints)
  return None if newest is None else checkpoint.load(newest).meta['value']


def _wait_for(is_so):
  deadline = time.monotonic() + 30
  while not is_so():
    assert time.monotonic() < deadline
    time.sleep(PERIOD_S)


def test_what_is_written_here_is_there_soon_and_at_the_end(make, url):
  run, copier = make()
  copier.start()
  run_directory.write_json(run.config, {'a': 1})
  (run.logs / 'learner').mkdir()
  (run.logs / 'learner' / '0').write_text('log')
  _wait_for(lambda: bucket.files_below(url).count('logs/learner/0'))
  run_directory.write_json(run.summary, {'b': 2})
  copier.stop()
  assert bucket.files_below(url) == ['config.json', 'logs/learner/0', 'summary.json']
  assert json.loads(bucket.read_bytes(bucket.join(url, 'summary.json'))) == {'b': 2}


def test_another_machine_goes_on_where_the_copy_is(make, url, tmp_path):
  run, copier = make()
  copier.start()
  run_directory.write_json(run.config, {'a': 1})
  run.metrics.write_text('agent_steps\n1\n')
  _save(run, 10, 1)
  copier.stop()
  other, again = make('other')
  again.start()
  assert other.config.read_text() == run.config.read_text()
  assert other.metrics.read_text() == run.metrics.read_text()
  assert checkpoint.load(checkpoint.newest(other.checkpoints)).meta['value'] == 1
  again.stop()


def test_what_was_fetched_is_not_sent_again(make, monkeypatch):
  run, copier = make()
  copier.start()
  run_directory.write_json(run.config, {'a': 1})
  _save(run, 10, 1)
  copier.stop()
  _, again = make('other')
  again.start()
  sent = []
  monkeypatch.setattr(bucket, 'upload', lambda local, url: sent.append(url))
  again.stop()
  assert not sent


def test_a_checkpoint_that_is_not_whole_does_not_count(make, url, tmp_path, monkeypatch):
  run, copier = make()
  copier.start()
  _save(run, 10, 1)
  _wait_for(lambda: bucket.files_below(url).count(f'{_CHECKPOINTS}/{10:012d}/meta.json'))
  upload = bucket.upload

  def lose_the_machine_before_the_record(local, target):
    if target.endswith('meta.json'):
      raise bucket.BucketError('lost')
    upload(local, target)

  monkeypatch.setattr(bucket, 'upload', lose_the_machine_before_the_record)
  _save(run, 20, 2)
  with pytest.raises(bucket.BucketError):
    copier.stop()
  assert f'{20:012d}' in bucket.names(bucket.join(url, _CHECKPOINTS))
  assert _value_after_loss(url, tmp_path / 'new') == 1


def test_saving_again_at_an_update_never_leaves_none(make, url, tmp_path, monkeypatch):
  run, copier = make()
  copier.start()
  _save(run, 10, 1, keep=1)
  _wait_for(lambda: bucket.files_below(url).count(f'{_CHECKPOINTS}/{10:012d}/meta.json'))
  seen = []

  def look_before(call):
    def watched(*arguments):
      seen.append(_value_after_loss(url, tmp_path / f'look{len(seen)}'))
      call(*arguments)

    return watched

  for name in ('upload', 'delete', 'delete_folder'):
    monkeypatch.setattr(bucket, name, look_before(getattr(bucket, name)))
  _save(run, 10, 2, keep=1)
  copier.stop()
  assert None not in seen and seen[0] == 1 and seen[-1] == 2
  monkeypatch.undo()
  assert bucket.names(bucket.join(url, _CHECKPOINTS)) == [f'{10:012d}.again']
  assert _value_after_loss(url, tmp_path / 'new') == 2


def test_old_checkpoints_go_as_they_do_here(make, url):
  run, copier = make()
  copier.start()
  for updates in range(1, 6):
    _save(run, updates, updates, keep=2)
    name = f'{_CHECKPOINTS}/{updates:012d}/meta.json'
    _wait_for(lambda name=name: bucket.files_below(url).count(name))
  copier.stop()
  assert bucket.names(bucket.join(url, _CHECKPOINTS)) == [f'{4:012d}', f'{5:012d}']


def test_a_start_that_fetched_one_checkpoint_keeps_as_many_as_are_to_be_kept(make, url):
  run, copier = make()
  copier.start()
  for updates in (1, 2, 3):
    _save(run, updates, updates)
    name = f'{_CHECKPOINTS}/{updates:012d}/meta.json'
    _wait_for(lambda name=name: bucket.files_below(url).count(name))
  copier.stop()
  other, again = make('other')
  again.start()
  assert [path.name for path in checkpoint.all_whole(other.checkpoints)] == [f'{3:012d}']
  _save(other, 4, 4)
  again.stop()
  assert bucket.names(bucket.join(url, _CHECKPOINTS)) == [f'{i:012d}' for i in (2, 3, 4)]
  third, again = make('third')
  again.start()
  _save(third, 5, 5, keep=1)  # which may change from one start to the next
  again.stop()
  assert bucket.names(bucket.join(url, _CHECKPOINTS)) == [f'{5:012d}']


def test_only_the_newest_checkpoint_has_the_replay_memory(make, url, tmp_path):
  run, copier = make()
  copier.start()
  for updates in (1, 2):
    run.replay_in_progress.mkdir()
    (run.replay_in_progress / 'chunks').write_text('data')
    _save(run, updates, updates, replay=run.replay_in_progress)
    name = f'{_CHECKPOINTS}/{updates:012d}/meta.json'
    _wait_for(lambda name=name: bucket.files_below(url).count(name))
  copier.stop()
  parts = [name for name in bucket.files_below(url) if 'replay' in name]
  assert parts == [f'{_CHECKPOINTS}/{2:012d}/replay/chunks']
  newest = checkpoint.newest(mirror.fetch(url, tmp_path / 'new').checkpoints)
  assert (checkpoint.replay_folder(newest) / 'chunks').read_text() == 'data'
  without = checkpoint.newest(mirror.fetch(url, tmp_path / 'w', with_replay=False).checkpoints)
  assert checkpoint.replay_folder(without) is None


def test_the_newest_replay_memory_stays_where_later_checkpoints_have_none(make, url, tmp_path):
  run, copier = make()
  copier.start()
  for updates in (1, 2, 3, 4, 5):
    if updates in (1, 2):
      run.replay_in_progress.mkdir()
      (run.replay_in_progress / 'chunks').write_text(str(updates))
    _save(run, updates, updates, keep=2, replay=run.replay_in_progress if updates <= 2 else None)
    name = f'{_CHECKPOINTS}/{updates:012d}/meta.json'
    _wait_for(lambda name=name: bucket.files_below(url).count(name))
  copier.stop()
  assert bucket.names(bucket.join(url, _CHECKPOINTS)) == [f'{i:012d}' for i in (2, 4, 5)]
  fetched = mirror.fetch(url, tmp_path / 'new').checkpoints
  assert [path.name for path in checkpoint.all_whole(fetched)] == [f'{2:012d}', f'{5:012d}']
  assert (checkpoint.replay_folder(fetched / f'{2:012d}') / 'chunks').read_text() == '2'


def test_a_failure_is_void_in_the_next_attempt(make, url):
  run, copier = make()
  copier.start()
  run_directory.write_json(run.failure, {'message': 'broken'})
  copier.stop()
  assert 'failure.json' in bucket.files_below(url)
  _, again = make('other')
  again.start()
  assert 'failure.json' not in bucket.files_below(url)
  again.stop()


def _write_log(run, text):
  path = run.logs / 'learner' / '0'
  path.parent.mkdir(parents=True)
  path.write_text(text)


def test_logs_of_earlier_starts_are_kept_by_number(make, url):
  for number in (1, 2, 3):
    run, copier = make(f'host{number}')
    if number == 3:  # by who writes its log before the run is fetched
      _write_log(run, '3')
    copier.start()
    if number != 3:
      _write_log(run, str(number))
    earlier = [run.logs / f'attempt_{n}' for n in range(1, number)]
    assert all(path.is_dir() and not list(path.iterdir()) for path in earlier)
    copier.stop()
  found = {name: bucket.read_bytes(bucket.join(url, name)) for name in bucket.files_below(url)}
  assert found == {
    'logs/attempt_1/learner/0': b'1',
    'logs/attempt_2/learner/0': b'2',
    'logs/learner/0': b'3',
  }


def test_a_start_that_was_refused_moves_no_logs(make, url):
  run, copier = make()
  copier.start()
  _write_log(run, 'log')
  copier.stop()
  for end in (mirror.Mirror.abandon, mirror.Mirror.stop):
    _, again = make(f'other{end.__name__}')
    again.start()
    end(again)
    assert bucket.files_below(url) == ['logs/learner/0']


def test_large_files_are_sent_less_often(make, url, monkeypatch):
  monkeypatch.setattr(mirror, '_BYTES_PER_S', 1.0)
  run, copier = make()
  copier.start()
  run.metrics.write_text('first\n' * 100)
  _wait_for(lambda: 'metrics.csv' in bucket.files_below(url))
  run.metrics.write_text('second\n' * 100)
  (run.path / 'small').write_text('')
  _wait_for(lambda: 'small' in bucket.files_below(url))
  assert bucket.read_bytes(bucket.join(url, 'metrics.csv')).startswith(b'first')
  copier.stop()
  assert bucket.read_bytes(bucket.join(url, 'metrics.csv')).startswith(b'second')


def test_a_second_program_is_refused_while_the_first_lives(make):
  _, first = make('first')
  first.start()
  _, second = make('second')
  with pytest.raises(types.UserError, match='is being trained by another program'):
    second.start()
  first.stop()
  second.start()
  second.stop()


def test_the_folder_of_a_dead_program_is_taken(make, url):
  dead = lease.Lease(bucket.join(url, 'lock.json'), PERIOD_S)
  dead.acquire()
  run, heir = make()
  heir.start()
  heir.stop()
  with pytest.raises(lease.TakenOver):
    dead.renew()


def test_a_job_that_is_started_again_need_not_wait(url, monkeypatch):
  monkeypatch.setenv('CLOUD_ML_JOB_ID', '42')
  path = bucket.join(url, 'lock.json')
  lease.Lease(path, PERIOD_S).acquire()
  monkeypatch.setattr(lease.time, 'sleep', lambda _: pytest.fail('it waited'))
  lease.Lease(path, PERIOD_S).acquire()


def test_another_job_takes_over_the_folder_of_one_that_is_gone(make, url, monkeypatch):
  monkeypatch.setenv('CLOUD_ML_JOB_ID', '42')
  told = threading.Event()
  run, lost = make('of_42', on_failure=lambda error: told.set())
  lost.start()
  _save(run, 10, 1)
  _wait_for(lambda: bucket.files_below(url).count(f'{_CHECKPOINTS}/{10:012d}/meta.json'))
  _write_log(run, '42')
  _wait_for(lambda: bucket.files_below(url).count('logs/learner/0'))
  lost._end_threads()  # as its machine is; its record stays
  record = bucket.join(url, 'lock.json')
  assert json.loads(bucket.read_bytes(record))['job'] == '42'
  monkeypatch.setenv('CLOUD_ML_JOB_ID', '43')
  other, heir = make('of_43')
  heir.start()
  assert json.loads(bucket.read_bytes(record))['job'] == '43'
  assert checkpoint.load(checkpoint.newest(other.checkpoints)).meta['value'] == 1
  _save(other, 20, 2)
  with pytest.raises(lease.TakenOver):  # if it was only cut off
    lost.stop()
  heir.stop()
  assert bucket.names(bucket.join(url, _CHECKPOINTS)) == [f'{10:012d}', f'{20:012d}']
  assert 'logs/learner/0' in bucket.files_below(url)
  assert 'lock.json' not in bucket.files_below(url)


def test_another_job_is_refused_while_the_first_lives(make, monkeypatch):
  monkeypatch.setenv('CLOUD_ML_JOB_ID', '42')
  _, first = make('of_42')
  first.start()
  monkeypatch.setenv('CLOUD_ML_JOB_ID', '43')
  _, second = make('of_43')
  with pytest.raises(types.UserError, match='is being trained by another program'):
    second.start()
  first.stop()


def test_a_start_that_is_interrupted_gives_the_folder_back(make, url, monkeypatch):
  _, copier = make()
  monkeypatch.setattr(bucket, 'names', _interrupt)
  with pytest.raises(SystemExit):
    copier.start()
  monkeypatch.undo()
  assert 'lock.json' not in bucket.files_below(url)


def _interrupt(*_):
  raise SystemExit(143)


def test_a_program_whose_folder_was_taken_is_told(make, url):
  told = threading.Event()
  _, copier = make(on_failure=lambda error: told.set())
  copier.start()
  bucket.write_bytes(
    bucket.join(url, 'lock.json'),
    json.dumps({'owner': 'another', 'beat': 1, 'job': '', 'host': 'elsewhere'}).encode(),
  )
  assert told.wait(30)
  with pytest.raises(lease.TakenOver, match='taken over by elsewhere'):
    copier.stop()


def test_a_run_is_read_from_its_url(make, url):
  run, copier = make()
  copier.start()
  run_directory.write_json(run.config, {'a': 1})
  _save(run, 7, 3)
  copier.stop()
  found = run_directory.open_existing(url)
  assert found.name == url and found.path != run.path
  assert checkpoint.load_from(url).meta['value'] == 3
  assert checkpoint.load_from(f'{url}/{_CHECKPOINTS}/{7:012d}').meta['value'] == 3


def test_a_url_without_a_run_is_refused(url):
  with pytest.raises(types.UserError, match='config.json'):
    run_directory.open_existing(url)
  with pytest.raises(types.UserError, match='no checkpoint in file://'):
    checkpoint.load_from(url)
