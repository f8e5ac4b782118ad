"""Films in the folder of a run, and how the learner finds them."""

import contextlib
import os

from seed_acme import types
from seed_acme.files import local
from seed_acme.storage import recordings


def _recording(folder, agent_steps, episode_return=1.0):
  video = recordings.video_path(folder, agent_steps)
  preview = recordings.preview_path(folder, agent_steps)
  for path in (video, preview):
    path.write_bytes(b'film')
  return types.Recording(agent_steps, video, preview, episode_return, 9, False)


def test_each_new_one_is_taken_once_in_the_order_of_steps(tmp_path):
  folder = tmp_path / 'videos'
  unseen = recordings.Unseen(folder)
  assert unseen.take() == []  # the folder does not exist yet
  folder.mkdir()
  late, early = _recording(folder, 20_000, -0.5), _recording(folder, 9_000)
  assert unseen.take() == []  # files without a record are incomplete
  recordings.add(late)
  recordings.add(early)
  assert unseen.take() == [early, late]
  assert unseen.take() == []
  assert recordings.steps(folder) == [9_000, 20_000]


def test_those_of_an_earlier_start_were_taken_then_but_one_filmed_again_is_new(tmp_path):
  old, other = _recording(tmp_path, 100), _recording(tmp_path, 200)
  recordings.add(old)
  recordings.add(other)
  unseen = recordings.Unseen(tmp_path)
  assert unseen.take() == []
  again = old._replace(episode_return=2.0)
  recordings.add(again)
  record = again.video.with_suffix('.json')
  os.utime(record, ns=(1, 1))  # whatever the clock's resolution is
  assert unseen.take() == [again]


def test_one_that_was_deleted_is_not_missed(tmp_path):
  recording = _recording(tmp_path, 100)
  recordings.add(recording)
  unseen = recordings.Unseen(tmp_path)
  recording.video.with_suffix('.json').unlink()
  assert unseen.take() == [] and recordings.steps(tmp_path) == []


def test_what_a_killed_process_was_writing_is_deleted(tmp_path):
  recording = _recording(tmp_path, 100)
  recordings.add(recording)
  (tmp_path / '.hidden.json').touch()
  (tmp_path / '.000000000200.4711.mp4').touch()  # as `video.Writer` names it
  kept = {recording.video, recording.preview, recording.video.with_suffix('.json')}
  record, preview = tmp_path / '000000000200.json', recordings.preview_path(tmp_path, 200)
  with contextlib.suppress(FileNotFoundError), local.replacing(record) as one:
    with local.replacing(preview) as other:
      for path in (one, other):
        path.touch()
      recordings.delete_unfinished(tmp_path)
      assert set(tmp_path.iterdir()) == kept | {tmp_path / '.hidden.json'}
