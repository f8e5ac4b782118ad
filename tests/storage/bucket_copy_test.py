"""A run kept in a bucket: what survives if a machine is lost at any moment."""

import errno
import json
import os

import pytest

from seed_acme import types
from seed_acme.files import bucket
from seed_acme.files import local
from seed_acme.storage import bucket_copy
from seed_acme.storage import bucket_fetch
from seed_acme.storage import checkpoint
from seed_acme.storage import opening
from tests.storage import copies


def _value_after_loss(url, folder):
  """Returns what a new machine finds: the value in the newest checkpoint."""
  run = bucket_fetch.fetch(url, folder)
  newest = checkpoint.newest(run.checkpoints)
  return None if newest is None else checkpoint.load(newest).meta['value']


def test_what_is_written_here_is_there_soon_and_at_the_end(make_copy, url):
  run, copier = make_copy()
  copier.start()
  local.write_json(run.config, {'a': 1})
  (run.logs / 'learner').mkdir()
  (run.logs / 'learner' / '0').write_text('log')
  copies.wait_for(lambda: bucket.files_below(url).count('logs/learner/0'))
  local.write_json(run.summary, {'b': 2})
  copier.stop()
  assert bucket.files_below(url) == ['config.json', 'logs/learner/0', 'summary.json']
  assert json.loads(bucket.read_bytes(bucket.join(url, 'summary.json'))) == {'b': 2}


def test_another_machine_goes_on_where_the_copy_is(make_copy, url, tmp_path):
  run, copier = make_copy()
  copier.start()
  local.write_json(run.config, {'a': 1})
  run.metrics.write_text('agent_steps\n1\n')
  local.write_json(run.cpu_seconds, {'learner': 1.0})
  copies.save(run, 10, 1)
  copier.stop()
  other, again = make_copy('other')
  again.start()
  assert other.config.read_text() == run.config.read_text()
  assert other.metrics.read_text() == run.metrics.read_text()
  assert other.cpu_seconds.read_text() == run.cpu_seconds.read_text()
  assert checkpoint.load(checkpoint.newest(other.checkpoints)).meta['value'] == 1
  again.stop()


def test_what_was_fetched_is_not_sent_again(make_copy, monkeypatch):
  run, copier = make_copy()
  copier.start()
  local.write_json(run.config, {'a': 1})
  copies.save(run, 10, 1)
  copier.stop()
  _, again = make_copy('other')
  again.start()
  sent = []
  monkeypatch.setattr(bucket, 'upload', lambda local, url: sent.append(url))
  again.stop()
  assert not sent


def test_a_checkpoint_that_is_not_whole_does_not_count(make_copy, url, tmp_path, monkeypatch):
  run, copier = make_copy()
  copier.start()
  copies.save(run, 10, 1)
  copies.wait_for(
    lambda: bucket.files_below(url).count(f'{copies.CHECKPOINTS}/{10:012d}/meta.json')
  )
  upload = bucket.upload

  def lose_the_machine_before_the_record(local, target):
    if target.endswith('meta.json'):
      raise bucket.BucketError('lost')
    upload(local, target)

  monkeypatch.setattr(bucket, 'upload', lose_the_machine_before_the_record)
  copies.save(run, 20, 2)
  with pytest.raises(bucket.BucketError):
    copier.stop()
  assert f'{20:012d}' in bucket.names(bucket.join(url, copies.CHECKPOINTS))
  assert _value_after_loss(url, tmp_path / 'new') == 1


def test_saving_again_at_an_update_never_leaves_none(make_copy, url, tmp_path, monkeypatch):
  run, copier = make_copy()
  copier.start()
  copies.save(run, 10, 1, keep=1)
  copies.wait_for(
    lambda: bucket.files_below(url).count(f'{copies.CHECKPOINTS}/{10:012d}/meta.json')
  )
  seen = []

  def look_before(call):
    def watched(*arguments):
      seen.append(_value_after_loss(url, tmp_path / f'look{len(seen)}'))
      call(*arguments)

    return watched

  for name in ('upload', 'delete', 'delete_folder'):
    monkeypatch.setattr(bucket, name, look_before(getattr(bucket, name)))
  copies.save(run, 10, 2, keep=1)
  copier.stop()
  assert None not in seen and seen[0] == 1 and seen[-1] == 2
  monkeypatch.undo()
  assert bucket.names(bucket.join(url, copies.CHECKPOINTS)) == [f'{10:012d}.again']
  assert _value_after_loss(url, tmp_path / 'new') == 2


def test_old_checkpoints_go_as_they_do_here(make_copy, url):
  run, copier = make_copy()
  copier.start()
  for updates in range(1, 6):
    copies.save(run, updates, updates, keep=2)
    name = f'{copies.CHECKPOINTS}/{updates:012d}/meta.json'
    copies.wait_for(lambda name=name: bucket.files_below(url).count(name))
  copier.stop()
  assert bucket.names(bucket.join(url, copies.CHECKPOINTS)) == [f'{4:012d}', f'{5:012d}']


def test_a_start_that_fetched_one_checkpoint_keeps_as_many_as_are_to_be_kept(make_copy, url):
  run, copier = make_copy()
  copier.start()
  for updates in (1, 2, 3):
    copies.save(run, updates, updates)
    name = f'{copies.CHECKPOINTS}/{updates:012d}/meta.json'
    copies.wait_for(lambda name=name: bucket.files_below(url).count(name))
  copier.stop()
  other, again = make_copy('other')
  again.start()
  assert [path.name for path in checkpoint.all_whole(other.checkpoints)] == [f'{3:012d}']
  copies.save(other, 4, 4)
  again.stop()
  assert bucket.names(bucket.join(url, copies.CHECKPOINTS)) == [f'{i:012d}' for i in (2, 3, 4)]
  third, again = make_copy('third')
  again.start()
  copies.save(third, 5, 5, keep=1)  # it may change between starts
  again.stop()
  assert bucket.names(bucket.join(url, copies.CHECKPOINTS)) == [f'{5:012d}']


def test_only_the_newest_checkpoint_has_the_replay_memory(make_copy, url, tmp_path):
  run, copier = make_copy()
  copier.start()
  for updates in (1, 2):
    run.replay_in_progress.mkdir()
    (run.replay_in_progress / 'chunks').write_text('data')
    copies.save(run, updates, updates, replay=run.replay_in_progress)
    name = f'{copies.CHECKPOINTS}/{updates:012d}/meta.json'
    copies.wait_for(lambda name=name: bucket.files_below(url).count(name))
  copier.stop()
  parts = [name for name in bucket.files_below(url) if 'replay' in name]
  assert parts == [f'{copies.CHECKPOINTS}/{2:012d}/replay/chunks']
  newest = checkpoint.newest(bucket_fetch.fetch(url, tmp_path / 'new').checkpoints)
  assert (checkpoint.replay_folder(newest) / 'chunks').read_text() == 'data'
  light = bucket_fetch.fetch(url, tmp_path / 'w', with_replay=False)
  without = checkpoint.newest(light.checkpoints)
  assert checkpoint.replay_folder(without) is None


def test_the_newest_replay_memory_stays_where_later_checkpoints_have_none(make_copy, url, tmp_path):
  run, copier = make_copy()
  copier.start()
  for updates in (1, 2, 3, 4, 5):
    if updates in (1, 2):
      run.replay_in_progress.mkdir()
      (run.replay_in_progress / 'chunks').write_text(str(updates))
    copies.save(
      run, updates, updates, keep=2, replay=run.replay_in_progress if updates <= 2 else None
    )
    name = f'{copies.CHECKPOINTS}/{updates:012d}/meta.json'
    copies.wait_for(lambda name=name: bucket.files_below(url).count(name))
  copier.stop()
  assert bucket.names(bucket.join(url, copies.CHECKPOINTS)) == [f'{i:012d}' for i in (2, 4, 5)]
  fetched = bucket_fetch.fetch(url, tmp_path / 'new').checkpoints
  assert [path.name for path in checkpoint.all_whole(fetched)] == [f'{2:012d}', f'{5:012d}']
  assert (checkpoint.replay_folder(fetched / f'{2:012d}') / 'chunks').read_text() == '2'


def _refuse_links(monkeypatch, number):
  def link(*_):
    raise OSError(number, os.strerror(number))

  monkeypatch.setattr(os, 'link', link)


@pytest.mark.parametrize('number', [errno.EPERM, errno.EXDEV, errno.EMLINK])
def test_a_disk_without_hard_links_is_copied_too(make_copy, url, tmp_path, monkeypatch, number):
  _refuse_links(monkeypatch, number)
  run, copier = make_copy()
  copier.start()
  run.replay_in_progress.mkdir()
  (run.replay_in_progress / 'chunks').write_text('data')
  copies.save(run, 10, 1, replay=run.replay_in_progress)
  copier.stop()
  newest = checkpoint.newest(bucket_fetch.fetch(url, tmp_path / 'new').checkpoints)
  assert checkpoint.load(newest).meta['value'] == 1
  assert (checkpoint.replay_folder(newest) / 'chunks').read_text() == 'data'
  assert os.listdir(run.checkpoints) == [f'{10:012d}'], 'the copy stays behind'


def test_a_checkpoint_that_cannot_be_copied_is_an_error(make_copy, monkeypatch):
  def refuse(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

  run, copier = make_copy()
  copier.start()
  _refuse_links(monkeypatch, errno.EPERM)
  monkeypatch.setattr(bucket_copy.shutil, 'copy2', refuse)
  copies.save(run, 10, 1)
  with pytest.raises(OSError, match=rf'cannot copy .*{10:012d}: .*{os.strerror(errno.ENOSPC)}'):
    copier.stop()
  assert os.listdir(run.checkpoints) == [f'{10:012d}'], 'half a copy fills the disk'


def test_one_that_is_deleted_meanwhile_is_no_error(make_copy, url, monkeypatch, capsys):
  run, copier = make_copy()
  copier.start()
  link = os.link

  def delete_first(source, target):
    monkeypatch.setattr(os, 'link', link)
    copies.save(run, 20, 2, keep=1)
    link(source, target)

  monkeypatch.setattr(os, 'link', delete_first)
  copies.save(run, 10, 1)
  name = f'{copies.CHECKPOINTS}/{20:012d}/meta.json'
  copies.wait_for(lambda: name in bucket.files_below(url))
  copier.stop()
  assert bucket.names(bucket.join(url, copies.CHECKPOINTS)) == [f'{20:012d}']
  assert 'bucket: ' not in capsys.readouterr().out


def test_a_last_copy_that_takes_long_is_announced_with_its_size(
  make_copy, url, monkeypatch, capsys
):
  monkeypatch.setattr(bucket_copy, '_SILENT_S', 0.0)
  run, _ = make_copy()
  copier = bucket_copy.Mirror(run, period_s=1000.0)  # copies only when it stops
  copier.start()
  copies.save(run, 10, 1)
  (run.path / 'large').write_bytes(bytes(2_000_000))
  said, upload = [], bucket.upload

  def upload_late(local, target):
    copies.wait_for(lambda: said.append(capsys.readouterr().err) or ''.join(said))
    upload(local, target)

  monkeypatch.setattr(bucket, 'upload', upload_late)
  copier.stop()
  assert ''.join(said) == f'Copying the end of the run to {url}: 2.0 MB\n'
  assert 'large' in bucket.names(url)


def test_large_files_are_sent_less_often(make_copy, url, monkeypatch):
  monkeypatch.setattr(bucket_copy, '_BYTES_PER_S', 1.0)
  run, copier = make_copy()
  copier.start()
  local.write_text(run.metrics, 'first\n' * 100)
  copies.wait_for(lambda: 'metrics.csv' in bucket.files_below(url))
  copies.wait_for(lambda: bucket.read_bytes(f'{url}/metrics.csv').startswith(b'first'))
  for number, later in enumerate(('', 'second\n' * 100)):  # as when a file is rewritten
    run.metrics.write_text(later)
    (run.path / f'small{number}').write_text('')
    copies.wait_for(lambda name=f'small{number}': name in bucket.files_below(url))
    assert bucket.read_bytes(bucket.join(url, 'metrics.csv')).startswith(b'first')
  copier.stop()
  assert bucket.read_bytes(bucket.join(url, 'metrics.csv')).startswith(b'second')


def test_a_run_is_read_from_its_url(make_copy, url):
  run, copier = make_copy()
  copier.start()
  local.write_json(run.config, {'a': 1})
  copies.save(run, 7, 3)
  copier.stop()
  found = opening.open_run(url)
  assert found.name == url and found.path != run.path
  assert opening.load_checkpoint(url).meta['value'] == 3
  assert opening.load_checkpoint(f'{url}/{copies.CHECKPOINTS}/{7:012d}').meta['value'] == 3


def test_a_url_without_a_run_is_refused(url):
  with pytest.raises(types.UserError, match='config.json'):
    opening.open_run(url)
  with pytest.raises(types.UserError, match='no checkpoint in file://'):
    opening.load_checkpoint(url)


def test_the_lease_is_renewed_while_the_last_copy_takes_long(make_copy, url, monkeypatch):
  run, copier = make_copy()
  copier.start()
  local.write_json(run.config, {'a': 1})
  upload, locks = bucket.upload, []

  def slow(path, target):
    if not locks:
      for _ in range(2):
        before = bucket.read_bytes(bucket.join(url, 'lock.json'))
        copies.wait_for(lambda old=before: bucket.read_bytes(bucket.join(url, 'lock.json')) != old)
        locks.append(before)
    upload(path, target)

  monkeypatch.setattr(bucket, 'upload', slow)
  local.write_json(run.summary, {'b': 2})
  copier.stop()
  assert len(locks) == 2
  assert 'summary.json' in bucket.files_below(url)


def test_an_error_of_this_machine_does_not_end_the_copying(make_copy, url, monkeypatch):
  run, copier = make_copy()
  read, failures = local.read_json, [types.Failure('too many open files')]

  def fail_once(path):
    if failures:
      raise failures.pop()
    return read(path)

  copier.start()
  monkeypatch.setattr(local, 'read_json', fail_once)
  copies.save(run, 1, 1)
  copies.wait_for(lambda: not failures)
  copies.save(run, 2, 2)
  copies.wait_for(lambda: bucket.files_below(url).count('checkpoints/000000000002/meta.json'))
  copier.stop()


@pytest.mark.parametrize('where', ['of the round', 'of an error'])
def test_a_terminal_that_is_gone_does_not_end_the_copying(make_copy, url, monkeypatch, where):
  losses = []

  def lose(*_, **__):
    losses.append(where)
    raise OSError(errno.EIO, os.strerror(errno.EIO))

  run, copier = make_copy(on_round=lose if where == 'of the round' else lambda: None)
  copier.start()
  if where == 'of an error':
    read, failures = local.read_json, [types.Failure('too many open files')]
    monkeypatch.setattr(local, 'read_json', lambda path: _raise_first(failures) or read(path))
    monkeypatch.setattr('builtins.print', lose)
    copies.save(run, 1, 1)
  copies.wait_for(lambda: losses)
  copies.save(run, 2, 2)
  copies.wait_for(lambda: bucket.files_below(url).count('checkpoints/000000000002/meta.json'))
  copier.stop()


def _raise_first(failures):
  if failures:
    raise failures.pop()


def test_a_checkpoint_that_goes_before_it_is_read_is_an_error_of_one_line(
  make_copy, url, tmp_path, monkeypatch
):
  run, copier = make_copy()
  copier.start()
  copies.save(run, 7, 3)
  copier.stop()
  monkeypatch.setattr(bucket, 'files_below', lambda url: [])
  with pytest.raises(bucket.BucketError, match='000000000007: it is gone; try again'):
    bucket_fetch.fetch_checkpoint(f'{url}/{copies.CHECKPOINTS}/{7:012d}', tmp_path)


def test_the_first_copy_of_an_update_serves_if_the_second_is_damaged(make_copy, url, tmp_path):
  run, copier = make_copy()
  copier.start()
  copies.save(run, 7, 3)
  copier.stop()
  second = f'{url}/{copies.CHECKPOINTS}/{7:012d}{bucket_fetch.AGAIN}'
  bucket.write_bytes(f'{second}/meta.json', b'{}')
  bucket.write_bytes(f'{second}/arrays.npz', b'')
  fetched = bucket_fetch.fetch(url, tmp_path / 'again')
  assert checkpoint.load(checkpoint.newest(fetched.checkpoints)).meta['value'] == 3
