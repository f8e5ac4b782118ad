"""The best checkpoint of a run that is kept in a bucket."""

import numpy as np
import pytest

from seed_acme import types
from seed_acme.files import bucket
from seed_acme.files import local
from seed_acme.storage import bucket_copy
from seed_acme.storage import bucket_fetch
from seed_acme.storage import checkpoint
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import opening
from tests.storage import copies


def _save(run, updates, best=None, keep=1, keep_also=()):
  local.write_json(run.config, {'checkpoint': {'keep': keep}})
  record = None if best is None else checkpoint.Best(best, 1.0, 10)._asdict()
  checkpoint_writer.save(
    run.checkpoints,
    updates,
    {'w': np.full(4, updates)},
    {'value': updates, 'best': record},
    keep,
    keep_also=keep_also,
  )


def _there(url):
  return [int(name.removesuffix('.again')) for name in bucket_fetch.whole_checkpoints(url)]


def _wait_for(url, updates):
  copies.wait_for(lambda: updates in _there(url))


def _between_rounds(make_copy):
  """Returns a run that is copied only when its copier stops."""
  run, _ = make_copy()
  copier = bucket_copy.Mirror(run, period_s=1000.0)
  copier.start()
  return run, copier


@pytest.fixture(name='kept')
def _kept(make_copy, url):
  """Makes a copied run whose best checkpoint is 2, which was not the newest in any round."""
  run, copier = _between_rounds(make_copy)
  _save(run, 2, keep=2)
  _save(run, 3, best=2, keep_also={2})
  copier.stop()
  assert _there(url) == [2, 3]
  run, copier = make_copy('second')
  copier.start()
  _save(run, 4, best=2, keep_also={2})
  copier.stop()
  return run, url


def test_it_is_copied_though_no_round_met_it_and_stays_beyond_keep(kept):
  _, url = kept
  assert _there(url) == [2, 4]


def test_it_is_there_before_the_checkpoint_that_names_it(make_copy, url, monkeypatch):
  run, copier = _between_rounds(make_copy)
  _save(run, 2, keep=2)
  _save(run, 3, best=2, keep_also={2})
  sent = []
  upload = bucket.upload
  monkeypatch.setattr(
    bucket, 'upload', lambda local, target: (sent.append(target), upload(local, target))
  )
  copier.stop()
  metas = [int(target.split('/')[-2]) for target in sent if target.endswith('meta.json')]
  assert metas == [2, 3]


def test_a_better_one_takes_its_place(kept, make_copy):
  _, url = kept
  other, again = make_copy('other')
  again.start()
  assert [checkpoint.updates_of(p) for p in checkpoint.all_whole(other.checkpoints)] == [2, 4]
  _save(other, 5, best=2, keep_also={2})
  _wait_for(url, 5)
  assert 2 in _there(url)
  _save(other, 6, best=6)
  again.stop()
  assert _there(url) == [6]


def test_a_reader_takes_it_or_any_other_by_the_url(kept):
  run, url = kept
  opened = opening.open_run(url)
  assert opened.path != run.path and checkpoint.at(opened.checkpoints, 2) is None
  assert opening.load_of_run(opened, 'newest').meta['value'] == 4
  assert opening.load_of_run(opened, 'best').meta['value'] == 2
  assert opening.load_of_run(opened, 2).meta['value'] == 2
  path = f'{url}/{copies.CHECKPOINTS}/{2:012d}'
  assert opening.load_of_run(opened, path).meta['value'] == 2
  for name, value in (('@best', 2), ('@newest', 4), ('@2', 2), ('', 4)):
    assert opening.load_checkpoint(f'{url}{name}').meta['value'] == value
  with pytest.raises(types.UserError) as error:
    opening.load_of_run(opened, 3)
  assert 'has no checkpoint of update 3. Its checkpoints are 2 (best), 4 (newest)' in str(
    error.value
  )
  assert url in str(error.value)


def test_a_best_one_that_is_lost_here_and_there_holds_up_no_other(make_copy, url):
  run, copier = make_copy()
  copier.start()
  _save(run, 3, best=2)
  copier.stop()
  assert _there(url) == [3]
