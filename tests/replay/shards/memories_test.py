"""The memories of two shards as one, against real servers."""

import numpy as np
import pytest
import reverb
from scipy import stats
import tree

from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.replay import dataset as dataset_lib
from seed_acme.replay import memory as memory_lib
from seed_acme.replay import server as server_lib
from seed_acme.replay import tables
from seed_acme.replay import writer as writer_lib
from seed_acme.replay.shards import memories as memories_lib
from seed_acme.replay.shards import samples as samples_lib

pytestmark = pytest.mark.timeout(120)
_BATCH = 8


@pytest.fixture(name='start')
def _start(coded_unrolls, tmp_path):
  """`start(sizes)`: a server per shard with that many unrolls, and the memories."""
  servers, started = [], []

  def make(sizes, is_restored=False):
    example = tree.map_structure(lambda x: x[0], coded_unrolls(0, 1))
    first = 0
    own = []
    for shard, size in enumerate(sizes):
      spec = r2d2_config.R2D2Config(
        replay_capacity=100, replay_min_size=size, replay_ratio=1e4
      ).replay_spec()  # takes them, and then gives out many
      folder = memories_lib.part(tmp_path / 'now', shard, len(sizes))
      saved = memories_lib.part(tmp_path / 'saved', shard, len(sizes)) if is_restored else None
      own.append(
        server_lib.ReplayServer(
          spec, _BATCH, 1, 1, example, port=0, checkpoints=folder, restore_from=saved
        )
      )
      if not is_restored:
        _write(own[-1], coded_unrolls(first, size))
      first += size
    servers.extend(own)
    memories = memories_lib.Memories(
      [memory_lib.ReplayMemory(server.address, True, tmp_path) for server in own], tmp_path / 'now'
    )
    failures = []
    memories.start(failures.append)
    started.append(memories)
    return own, memories

  yield make
  for memories in started:
    memories.stop()
  for server in servers:
    server.stop()


def _write(server, unrolls):
  number = unrolls.policy_version.shape[0]
  writer = writer_lib.ReplayWriter(server.address, 1, backlog=number)
  writer.put(unrolls)
  for _ in range(number):
    writer.write_item()
  writer.stop()


def _samples(servers):
  return samples_lib.Samples(
    [
      dataset_lib.Prefetcher(
        dataset_lib.make_samples(server.address, _BATCH // len(servers), 1, 0, is_memory=True),
        print,
        num_ahead=0,
      )
      for server in servers
    ]
  )


def _codes(sample):
  return sample.unroll.policy_version.numpy()[0] // 100


def test_priorities_go_back_to_the_shard_that_each_row_is_of(start):
  servers, memories = start([4, 4])
  samples = _samples(servers)
  samples.start()
  sample = samples.next(60)
  codes = _codes(sample)
  assert (codes[:4] < 4).all() and (codes[4:] >= 4).all()
  memories.update_priorities(sample.keys.numpy(), 10.0 + codes)
  assert memories.greatest_priority == 10.0 + codes.max()
  assert memories.wait_until_sent(60)
  samples.stop()
  found = {}
  for server in servers:
    for drawn in reverb.Client(server.address).sample(tables.UNROLLS, 200, emit_timesteps=False):
      found[int(np.asarray(drawn.data[-1]).ravel()[0]) // 100] = drawn.info.priority
  for code in codes.tolist():
    assert found[code] == 10.0 + code
  assert memories.counts()[0] == 8


@pytest.mark.slow
def test_unrolls_are_drawn_as_often_as_their_probabilities_say(start):
  """Shards of three and of six unrolls each give half of every batch."""
  servers, memories = start([3, 6])
  samples = _samples(servers)
  samples.start()
  sample = samples.next(60)
  memories.update_priorities(sample.keys.numpy(), 0.5 + _codes(sample))
  assert memories.wait_until_sent(60)
  for _ in range(3):  # samples that may have been taken before the priorities were set
    samples.next(60)
  counts, probabilities, num_batches = np.zeros(9), np.full(9, np.nan), 400
  for _ in range(num_batches):
    sample = samples.next(60)
    codes = _codes(sample)
    np.add.at(counts, codes, 1)
    probabilities[codes] = sample.probabilities.numpy()
  samples.stop()
  np.testing.assert_allclose(probabilities.sum(), 1.0, rtol=1e-6)
  assert stats.chisquare(counts, probabilities * num_batches * _BATCH).pvalue > 1e-4


def test_the_parts_of_all_shards_are_saved_together_and_restored_apart(start, tmp_path):
  _, memories = start([3, 5])
  folder = memories.checkpoint()
  folder.rename(tmp_path / 'saved')
  memories.checkpoint().rename(tmp_path / 'saved_again')
  assert not [path for path in (tmp_path / 'now').rglob('*') if path.is_file()]
  servers, memories = start([3, 5], is_restored=True)
  assert memories.counts()[0] == 8
  sizes = [
    reverb.Client(server.address).server_info()[tables.UNROLLS].current_size for server in servers
  ]
  assert sizes == [3, 5]


def test_counts_of_this_moment_are_of_all_shards_or_not_known(start):
  servers, memories = start([3, 5])
  assert memories.counts_now() == memories.counts() == (8, 0)
  servers[1].stop()
  assert memories.counts_now() is None


def test_one_shard_saves_as_ever(start, tmp_path):
  _, memories = start([3])
  assert memories.checkpoint().parent == tmp_path / 'now'


def test_a_shard_that_cannot_save_leaves_nothing_of_any(start, tmp_path, monkeypatch):
  _, memories = start([3, 5])

  def fail():
    half = memories_lib.part(tmp_path / 'now', 1, 2) / 'half'
    half.mkdir()
    (half / 'items').write_bytes(b'x' * 100)
    raise RuntimeError('no space left')

  monkeypatch.setattr(memories.each[1], 'checkpoint', fail)
  with pytest.raises(RuntimeError, match='no space left'):
    memories.checkpoint()
  assert not [path for path in (tmp_path / 'now').rglob('*') if path.is_file()]
  monkeypatch.undo()
  assert len(list(memories.checkpoint().iterdir())) == 2  # once there is room again


def test_parts_that_cannot_be_put_together_are_no_memory(start, tmp_path, monkeypatch):
  _, memories = start([3, 5])

  def fail(*_):
    raise OSError(28, 'No space left on device')

  monkeypatch.setattr(memories_lib.pathlib.Path, 'rename', fail)
  with pytest.raises(RuntimeError, match='No space left'):
    memories.checkpoint()
  assert not [path for path in (tmp_path / 'now').rglob('*') if path.is_file()]
