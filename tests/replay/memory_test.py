"""The replay memory: sampling frequencies, priorities by key, and the state after a restart."""

import contextlib
import pathlib
import resource
import threading
import time

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

pytestmark = pytest.mark.timeout(120)
_SIZE = 12
_NOWHERE = pathlib.Path('nowhere')  # for tests that save nothing


def _config(size=_SIZE, **changes):
  """Returns a memory that takes `size` unrolls and then gives out twice 10,000."""
  values = {'batch_size': 4, 'replay_capacity': 100, 'replay_min_size': size, 'replay_ratio': 1e4}
  return r2d2_config.R2D2Config(**{**values, **changes})


@pytest.fixture
def start(coded_unrolls):
  """`start(config, **kwargs)`: a server with a memory for coded unrolls."""
  servers = []
  example = tree.map_structure(lambda x: x[0], coded_unrolls(0, 1))

  def make(config, **arguments):
    servers.append(
      server_lib.ReplayServer(
        config.replay_spec(), config.batch_size, 1, 1, example, port=0, **arguments
      )
    )
    return servers[-1]

  yield make
  for server in servers:
    server.stop()


def _write(server, unrolls, priorities=None):
  number = unrolls.policy_version.shape[0]
  waiting = iter(priorities if priorities is not None else [1.0] * number)
  writer = writer_lib.ReplayWriter(
    server.address, 1, backlog=number, initial_priorities=lambda _: np.array([next(waiting)])
  )
  writer.put(unrolls)
  for _ in range(number):
    writer.write_item()
  writer.stop()


def _draw(server, number):
  """Returns the keys, codes of the unrolls, and infos of `number` samples."""
  client = reverb.Client(server.address)
  samples = list(client.sample(tables.UNROLLS, number, emit_timesteps=False))
  codes = [int(np.asarray(sample.data[-1]).ravel()[0]) // 100 for sample in samples]
  return (
    np.array([s.info.key for s in samples], np.uint64),
    np.array(codes),
    [s.info for s in samples],
  )


def _p_value(codes, priorities, exponent):
  expected = priorities**exponent / np.sum(priorities**exponent)
  counts = np.bincount(codes, minlength=len(priorities))
  return stats.chisquare(counts, expected * len(codes)).pvalue


@pytest.mark.parametrize('kind', ['prioritized', 'uniform'])
def test_unrolls_are_drawn_as_often_as_their_priorities_say(start, coded_unrolls, kind):
  priorities = np.arange(1.0, _SIZE + 1)
  server = start(_config(replay=kind))
  _write(server, coded_unrolls(0, _SIZE), priorities)
  _, codes, infos = _draw(server, 4000)
  exponent = {'prioritized': 0.9, 'uniform': 0.0}[kind]
  assert _p_value(codes, priorities, exponent) > 1e-6
  other = {'prioritized': 0.0, 'uniform': 0.9}[kind]
  assert _p_value(codes, priorities, other) < 1e-6  # the test is sensitive enough
  expected = priorities**exponent / np.sum(priorities**exponent)
  np.testing.assert_allclose([info.probability for info in infos], expected[codes], rtol=1e-5)


def test_a_sample_says_how_probable_each_of_its_unrolls_was(start, coded_unrolls, iterate):
  """Importance weights depend on the probability, not on the priority."""
  priorities = np.arange(1.0, _SIZE + 1)
  server = start(_config())
  _write(server, coded_unrolls(0, _SIZE), priorities)
  expected = priorities**0.9 / np.sum(priorities**0.9)
  keys = dict(zip(*_draw(server, 300)[:2]))
  samples = iterate(dataset_lib.make_samples(server.address, 4, 1, 1, is_memory=True))
  for _ in range(5):
    sample = next(samples)
    codes = sample.unroll.policy_version[0].numpy() // 100
    np.testing.assert_allclose(sample.probabilities, expected[codes], rtol=1e-5)
    assert all(keys.get(key, code) == code for key, code in zip(sample.keys.numpy(), codes))


def test_new_priorities_decide_what_is_drawn_from_then_on(start, coded_unrolls):
  server = start(_config())
  _write(server, coded_unrolls(0, _SIZE))
  keys, codes, _ = _draw(server, 300)
  assert set(codes) == set(range(_SIZE))
  memory = memory_lib.ReplayMemory(server.address, has_priorities=True, in_progress=_NOWHERE)
  priorities = np.linspace(0.5, 4, _SIZE)
  memory.update_priorities(keys, np.full(keys.size, 99.0))
  memory.update_priorities(keys, priorities[codes])  # the last update counts
  memory.update_priorities(keys, np.full(keys.size, np.nan))  # they keep theirs
  # an item that no longer exists
  memory.update_priorities(np.array([12345], np.uint64), np.array([1e9]))
  memory.flush()
  _, codes, infos = _draw(server, 4000)
  assert _p_value(codes, priorities, 0.9) > 1e-6
  assert {info.priority for info in infos} == set(priorities)


@pytest.mark.parametrize('priority', [np.inf, -0.5])
def test_a_priority_that_is_no_weight_is_refused_before_it_spoils_the_table(
  start, coded_unrolls, priority
):
  server = start(_config())
  _write(server, coded_unrolls(0, _SIZE))
  keys, _, _ = _draw(server, 300)
  memory = memory_lib.ReplayMemory(server.address, has_priorities=True, in_progress=_NOWHERE)
  with pytest.raises(FloatingPointError, match=f'the priority {priority}, which must be a finite'):
    memory.update_priorities(keys[:2], np.array([1.0, priority]))
  memory.flush()
  assert memory.greatest_priority == 1.0
  assert {info.priority for info in _draw(server, 300)[2]} == {1.0}


def test_uniform_replay_keeps_no_priorities(start, coded_unrolls):
  server = start(_config(3, replay='uniform'))
  _write(server, coded_unrolls(0, 3))
  keys, _, _ = _draw(server, 10)
  memory = memory_lib.ReplayMemory(server.address, has_priorities=False, in_progress=_NOWHERE)
  memory.update_priorities(keys, np.full(keys.size, 7.0))
  memory.flush()
  assert {info.priority for info in _draw(server, 10)[2]} == {1.0}


def test_the_learner_never_waits_for_priorities_and_hears_of_failures(
  start, coded_unrolls, monkeypatch
):
  server = start(_config(2))
  _write(server, coded_unrolls(0, 2))
  memory = memory_lib.ReplayMemory(server.address, has_priorities=True, in_progress=_NOWHERE)
  keys, _, _ = _draw(server, 8)
  # Simulates any error of the server.
  monkeypatch.setattr(reverb.Client, 'mutate_priorities', None)
  failed = threading.Event()
  memory.start(lambda error: failed.set())
  memory.update_priorities(keys, np.ones(8))  # returns all the same
  assert failed.wait(30)
  memory.stop()


def test_inserts_wait_for_the_learner_and_the_learner_for_the_minimum_size(start, coded_unrolls):
  config = _config(replay_ratio=1.0, replay_min_size=10)
  server = start(config)
  writer = writer_lib.ReplayWriter(server.address, 1, backlog=64)
  failures = []
  writer.put(coded_unrolls(0, 60))
  client = reverb.Client(server.address)
  with pytest.raises(Exception, match='(?i)timeout|deadline'):
    list(client.sample(tables.UNROLLS, 1, rate_limiter_timeout_ms=100))
  writer.start(on_room=lambda: None, on_failure=failures.append)
  limit = 10 + 2 * config.batch_size  # inserts exceed samples by the minimum size and two batches
  pause = threading.Event()
  while client.server_info()[tables.UNROLLS].current_size < limit:
    pause.wait(0.01)
  pause.wait(0.5)
  assert client.server_info()[tables.UNROLLS].current_size == limit
  writer.stop()
  assert not failures


@pytest.mark.slow
def test_samples_keep_the_ratio_to_inserts(start, coded_unrolls, iterate):
  config = _config(replay_ratio=2.0, replay_min_size=20, batch_size=20)
  server = start(config)
  writer = writer_lib.ReplayWriter(server.address, 1, backlog=2000)
  failures = []
  writer.start(on_room=lambda: None, on_failure=failures.append)
  writer.put(coded_unrolls(0, 2000))
  samples = iterate(
    dataset_lib.make_samples(server.address, config.batch_size, 1, 1, is_memory=True)
  )
  for _ in range(160):
    sample = next(samples)
  assert sample.keys.shape == (20,)
  inserted, sampled = memory_lib.ReplayMemory(server.address, True, _NOWHERE).counts()
  assert sampled / (inserted - config.replay_min_size) == pytest.approx(2.0, rel=0.02)
  writer.stop()
  assert not failures


def _checkpoint(server, folder):
  path = memory_lib.ReplayMemory(server.address, True, _NOWHERE).checkpoint()
  path.rename(folder)
  return folder


def test_a_checkpoint_brings_back_unrolls_priorities_and_counts(start, coded_unrolls, tmp_path):
  server = start(_config(5), checkpoints=tmp_path / 'writing')
  _write(server, coded_unrolls(0, 5), np.arange(1.0, 6))
  # The least likely of the five is sampled once in fifteen times: 400 samples include all of them.
  before, _, _ = _draw(server, 400)
  counts = memory_lib.ReplayMemory(server.address, True, _NOWHERE).counts()
  saved = _checkpoint(server, tmp_path / 'saved')
  server.stop()
  restored = start(_config(5), checkpoints=tmp_path / 'writing', restore_from=saved)
  assert memory_lib.ReplayMemory(restored.address, True, _NOWHERE).counts() == counts == (5, 400)
  keys, codes, infos = _draw(restored, 400)
  assert set(before) == set(keys)
  np.testing.assert_array_equal([info.priority for info in infos], codes + 1.0)


@pytest.mark.parametrize('saved, expected', [(7.5, 7.5), (0.25, 1.0)])
def test_a_restored_memory_knows_the_greatest_priority_of_before(start, tmp_path, saved, expected):
  """New unrolls get it, and would otherwise be drawn less often than before the restart."""
  server = start(_config(5), checkpoints=tmp_path / 'writing')
  memory = memory_lib.ReplayMemory(server.address, True, tmp_path / 'writing')
  memory.update_priorities(np.array([1], np.uint64), np.array([saved]))
  memory.checkpoint().rename(tmp_path / 'saved')
  restored = memory_lib.ReplayMemory(server.address, True, _NOWHERE, tmp_path / 'saved')
  assert restored.greatest_priority == expected


@pytest.mark.parametrize('text', [None, '', 'NaN', '1e999', '-3.0', '[8.0]', 'true', '"8"'])
def test_a_memory_without_a_greatest_priority_starts_with_that_of_a_new_one(start, tmp_path, text):
  server = start(_config(5), checkpoints=tmp_path / 'writing')
  memory = memory_lib.ReplayMemory(server.address, True, tmp_path / 'writing')
  memory.update_priorities(np.array([1], np.uint64), np.array([7.5]))
  folder = memory.checkpoint()
  [file] = folder.glob('*.json')
  file.unlink()
  if text is not None:
    file.write_text(text)
  restored = memory_lib.ReplayMemory(server.address, True, _NOWHERE, folder)
  assert restored.greatest_priority == 1.0


def _spoil_content(folder):
  content = bytearray((folder / 'chunks.tfrecord').read_bytes())
  content[len(content) // 2] ^= 255
  (folder / 'chunks.tfrecord').write_bytes(content)


@pytest.mark.parametrize('spoil', [_spoil_content, lambda folder: (folder / 'DONE').unlink()])
def test_a_spoilt_checkpoint_is_refused(start, coded_unrolls, tmp_path, spoil):
  server = start(_config(5), checkpoints=tmp_path / 'writing')
  _write(server, coded_unrolls(0, 5))
  saved = _checkpoint(server, tmp_path / 'saved')
  spoil(saved)
  with pytest.raises(server_lib.CannotRestore):
    start(_config(5), checkpoints=tmp_path / 'writing', restore_from=saved)


@pytest.mark.parametrize('priority', [np.nan, np.inf])
def test_a_priority_that_is_not_finite_ends_the_writer_with_its_reason(
  start, coded_unrolls, priority
):
  server = start(_config())
  with pytest.raises(FloatingPointError, match=f' is {priority}: '):
    _write(server, coded_unrolls(0, 1), [priority])


@contextlib.contextmanager
def _small_files(num_bytes):
  """Limits the size of files, which stops a writer as a full disk does."""
  soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_memory_that_cannot_be_written_is_a_runtime_error(start, coded_unrolls, tmp_path):
  """The training loop expects that; Reverb itself raises IndexError if the disk is full."""
  server = start(_config(), checkpoints=tmp_path / 'replay')
  _write(server, coded_unrolls(0, _SIZE))
  memory = memory_lib.ReplayMemory(server.address, has_priorities=True, in_progress=_NOWHERE)
  with _small_files(50), pytest.raises(RuntimeError):
    memory.checkpoint()
  assert memory.checkpoint().is_dir()


def test_an_error_of_reverb_that_is_no_runtime_error_becomes_one(start, monkeypatch):
  memory = memory_lib.ReplayMemory(
    start(_config()).address, has_priorities=True, in_progress=_NOWHERE
  )

  def full(client):
    raise IndexError('chunks.tfrecord; No space left on device')

  monkeypatch.setattr(reverb.Client, 'checkpoint', full)
  with pytest.raises(RuntimeError, match='No space left'):
    memory.checkpoint()


def test_a_server_that_does_not_answer_holds_up_no_checkpoint(start, monkeypatch, tmp_path):
  server = start(_config(5))
  memory = memory_lib.ReplayMemory(server.address, True, tmp_path)
  answered = threading.Event()
  calls = []

  def hang(client):
    calls.append(client)
    answered.wait(60)
    return str(tmp_path / 'saved')

  monkeypatch.setattr(reverb.Client, 'checkpoint', hang)
  monkeypatch.setattr(memory_lib, 'SILENT_S', 0.3)
  (tmp_path / 'saved').mkdir()
  for _ in range(2):  # the second waits for the same call, which nothing can end
    with pytest.raises(RuntimeError, match='does not answer, and has written nothing for 0.3 s'):
      memory.checkpoint()
  answered.set()
  assert memory.checkpoint() == tmp_path / 'saved'
  assert len(calls) <= 2


def test_a_server_that_writes_is_waited_for(start, monkeypatch, tmp_path):
  memory = memory_lib.ReplayMemory(start(_config(5)).address, True, tmp_path)

  def write(client):
    for number in range(12):
      (tmp_path / str(number)).write_bytes(b'x')
      time.sleep(0.1)
    return str(tmp_path)

  monkeypatch.setattr(reverb.Client, 'checkpoint', write)
  monkeypatch.setattr(memory_lib, 'SILENT_S', 0.6)
  assert memory.checkpoint() == tmp_path
