"""The loop of the first of two learner hosts, with another one that is made up."""

import functools

import numpy as np
import pytest

from seed_acme.learning import joint_loop
from seed_acme.learning import training_loop
from seed_acme.storage import checkpoint
from seed_acme.utils import counting
from tests.learning import loop_run


class _Hosts:
  """The other host answers as this one, but for the folder of its memory."""

  is_chief, index, number = True, 0, 2

  def __init__(self, others_memory):
    self._others_memory = others_memory

  def reports(self, own, timeout_s=None):
    return [own, self._others_memory if isinstance(own, str) else own]

  def facts(self, own, timeout_s):
    return np.array([own, own])

  def of_chief(self, own):
    return own


def _finished(path, clock, others_memory, fails=False):
  run = loop_run.Run(
    path,
    clock,
    functools.partial(loop_run.Memory, size=5, content=b'own'),
    functools.partial(joint_loop.JointLoop, _Hosts(others_memory)),
    counting.AgreedCounters,
  )
  run.loop.restore()
  run.memory.fails = fails
  run.loop.finish(training_loop.FINISHED)
  return run


def _notices(run):
  return run.folder.notices.read_text() if run.folder.notices.exists() else ''


def test_the_memories_of_all_hosts_are_one_part_of_the_checkpoint(tmp_path, clock):
  other = tmp_path / 'of_the_other'
  other.mkdir()
  (other / 'chunks').write_bytes(b'other')
  run = _finished(tmp_path / 'run', clock, str(other))
  saved = checkpoint.replay_folder(checkpoint.newest(run.folder.checkpoints))
  assert sorted(path.read_bytes() for path in saved.rglob('chunks*')) == [b'other', b'own']
  assert not _notices(run)


@pytest.mark.parametrize(
  'fails, says',
  [(False, 'because learner/1 could not save what it holds'), (True, 'No space left')],
)
def test_a_memory_of_which_a_part_is_missing_is_dropped_with_a_notice(tmp_path, clock, fails, says):
  run = _finished(tmp_path, clock, '', fails)
  assert checkpoint.replay_folder(checkpoint.newest(run.folder.checkpoints)) is None
  [notice] = _notices(run).splitlines()
  assert says in notice and 'the weights are' in notice
