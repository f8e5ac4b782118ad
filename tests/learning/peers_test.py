"""Loops that train together: two in threads, and a chief with a stand-in for the other host."""

import functools
import json
import threading

import numpy as np
import pytest

from seed_acme import types
from seed_acme.learning import peers as peers_lib
from seed_acme.learning import training_loop
from seed_acme.progress import counting
from seed_acme.progress import timing
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from tests.learning import loop_run

_PATIENCE_S = 60.0  # longest wait for the other thread


class _Group:
  """A group whose other host answers like this one, except for the folder of its memory."""

  is_chief, index, number = True, 0, 2

  def __init__(self, others_memory):
    self._others_memory = others_memory

  def reports(self, own, timeout_s=None):
    if own is None:  # the chief itself reports nothing
      status = {
        'unrolls_confirmed': 0,
        'unrolls_received': 0,
        'actors': [],
        'seconds': {},
        'missing': '',
      }
      return [None, {'status': status, 'episodes': {}}]
    return [own, self._others_memory if isinstance(own, str) else own]

  def facts(self, own, timeout_s=None):
    return np.array([own, own])

  def of_chief(self, own):
    return own


def _finished(path, clock, others_memory, fails=False):
  run = loop_run.Run(
    path,
    clock,
    functools.partial(loop_run.Memory, size=5, content=b'own'),
    peers_lib.LearnerHosts(_Group(others_memory)),
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


def test_memories_that_cannot_be_put_together_are_dropped_with_a_notice(
  tmp_path, clock, monkeypatch
):
  other = tmp_path / 'of_the_other'
  other.mkdir()

  def fail(*_):
    raise OSError(28, 'No space left on device')

  monkeypatch.setattr(peers_lib.pathlib.Path, 'rename', fail)
  run = _finished(tmp_path / 'run', clock, str(other))
  assert checkpoint.replay_folder(checkpoint.newest(run.folder.checkpoints)) is None
  [notice] = _notices(run).splitlines()
  assert 'No space left' in notice and 'the weights are' in notice
  assert not other.exists()


class _Table:
  """A table on which the hosts of one process exchange values."""

  def __init__(self, number):
    self._told = [None] * number
    self._barrier = threading.Barrier(number, timeout=_PATIENCE_S)

  def exchange(self, index, own):
    self._told[index] = own
    self._barrier.wait()
    told = list(self._told)
    self._barrier.wait()  # no value of the next exchange before all have read these
    return told


class _ThreadGroup:
  """A `collectives.Group` of threads."""

  number = 2

  def __init__(self, index, table):
    self.index, self.is_chief = index, index == 0
    self._table = table

  def facts(self, own, timeout_s=None):
    return np.array(self._table.exchange(self.index, own))

  def reports(self, own, timeout_s=None):
    return self._table.exchange(self.index, json.loads(json.dumps(own)))

  def of_chief(self, own):
    return self._table.exchange(self.index, own)[0]


class _Pair:
  """Two hosts with a folder each, which shows which of them writes."""

  def __init__(self, path, clock, seeds=(0, 0), **changes):
    table = _Table(2)
    self.runs = [
      loop_run.Run(
        path / str(index),
        clock,
        peers=peers_lib.LearnerHosts(_ThreadGroup(index, table)),
        seed=seed,
        **changes,
      )
      for index, seed in enumerate(seeds)
    ]

  def each(self, *calls):
    """Returns what each host returns or raises; one call for both, or one for each."""
    results = [None, None]

    def call(index):
      try:
        results[index] = calls[index % len(calls)](self.runs[index])
      except types.UserError as error:
        results[index] = error

    threads = [threading.Thread(target=call, args=(index,), daemon=True) for index in (0, 1)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join(2 * _PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)
    return results

  def meet(self, has_samples=(True, True), wants_stop=(False, False)):
    """Lets both hosts decide and train; returns whether each trained."""

    def turn(index):
      def train(run):
        may_train = run.loop.may_train(has_samples[index], wants_stop[index])
        if may_train:
          run.loop.train(1.0)
        return may_train

      return train

    return self.each(turn(0), turn(1))

  def updates(self):
    return [run.learner.num_updates for run in self.runs]

  def rows(self):
    """Returns the number of log rows that each host has written."""
    return [
      len(run.rows()['agent_steps']) if run.folder.metrics.exists() else 0 for run in self.runs
    ]


@pytest.fixture
def make_pair(tmp_path, clock):
  def make(**changes):
    pair = _Pair(tmp_path, clock, **changes)
    pair.each(lambda run: run.loop.restore())
    return pair

  return make


def _often(log_s, save_s):
  return {
    'learner': loop_run.replace('learner', log_period_s=log_s),
    'checkpoint': loop_run.replace('checkpoint', period_s=save_s, keep=9),
  }


def test_no_host_trains_while_one_has_no_sample(make_pair):
  pair = make_pair()
  assert pair.meet(has_samples=(True, False)) == [False, False]
  assert [run.loop.waits_for() for run in pair.runs] == ['data of learner/1'] * 2
  assert pair.updates() == [0, 0]
  assert pair.meet() == [True, True]
  assert [run.loop.waits_for() for run in pair.runs] == ['', '']
  assert pair.updates() == [1, 1]


@pytest.mark.parametrize('told', [(True, False), (False, True)])
def test_all_hosts_stop_when_one_is_told_to(make_pair, told):
  pair = make_pair()
  pair.meet()
  assert [run.loop.is_stopped for run in pair.runs] == [False, False]
  assert pair.meet(wants_stop=told) == [False, False]
  assert [run.loop.is_stopped for run in pair.runs] == [True, True]
  assert pair.updates() == [1, 1]


def test_the_chief_alone_logs_and_saves_when_that_is_due_for_it(make_pair, clock):
  pair = make_pair(**_often(log_s=1.0, save_s=2.0))
  assert [run.saved_updates() for run in pair.runs] == [[0], []]
  for _ in range(4):
    clock.now += 1.0
    pair.meet()
  assert pair.rows() == [4, 0]
  assert [run.saved_updates() for run in pair.runs] == [[0, 1, 3], []]
  pair.each(lambda run: run.loop.finish(training_loop.FINISHED))
  assert pair.rows() == [5, 0]
  assert [run.saved_updates() for run in pair.runs] == [[0, 1, 3, 4], []]
  assert [run.folder.status.exists() for run in pair.runs] == [True, False]


def test_several_hosts_log_where_they_meet_only(make_pair, clock):
  """Otherwise the chief would wait for reports of hosts that have begun the next update."""
  pair = make_pair(**_often(log_s=0.5, save_s=1e9))
  pair.meet()
  clock.now += 1.0
  pair.runs[0].loop.do_what_is_due()
  assert pair.rows() == [0, 0]
  pair.meet(has_samples=(False, True))
  assert pair.rows() == [1, 0]
  assert pair.runs[0].status()['hosts_without_data'] == ['learner/0']


def test_steps_and_episodes_are_those_of_all_hosts(make_pair, clock):
  pair = make_pair(**_often(log_s=1.0, save_s=1e9), total_steps=50)
  for run, steps, score in zip(pair.runs, (30, 20), (1.0, 5.0)):
    run.counters.add(agent_steps=steps, frames=4 * steps, episodes=1)
    run.end_episodes(run.inference.training_episodes, [score])
  assert [run.loop.is_finished() for run in pair.runs] == [False, False]
  clock.now += 1.0
  pair.meet()
  assert [run.loop.is_finished() for run in pair.runs] == [True, True]
  assert [run.learner.agent_steps for run in pair.runs] == [[50], [50]]
  row = pair.runs[0].rows()
  assert (row['agent_steps'], row['frames'], row['episodes']) == ([50], [200], [2])
  assert row['episode/return'] == [3.0]
  assert pair.runs[0].counters.snapshot() == pair.runs[1].counters.snapshot()


def test_the_others_go_on_from_what_the_chief_has(tmp_path, clock):
  before = loop_run.trained(tmp_path / '0', clock, 3)
  before.loop.save()
  pair = _Pair(tmp_path, clock)
  pair.each(lambda run: run.loop.restore())
  assert pair.updates() == [3, 3]
  assert [run.loop.resumptions for run in pair.runs] == [1, 1]
  assert [run.published.latest().version for run in pair.runs] == [3, 3]
  for run in pair.runs:
    counts = run.counters.snapshot()
    assert (counts.agent_steps, counts.frames, counts.updates, counts.episodes) == (30, 120, 3, 6)


class _LosingAccount:
  def confirmed(self):
    return 300

  received = confirmed

  def missing(self):
    return '12 unrolls are lost'


def test_only_the_chief_tells_what_the_run_does_and_what_others_have_lost(
  tmp_path, clock, monkeypatch
):
  pair = _Pair(tmp_path, clock)
  phases = []
  monkeypatch.setattr(
    run_directory.RunDirectory, 'set_phase', lambda run, phase: phases.append((run.path, phase))
  )
  pair.each(lambda run: run.loop.restore())
  pair.runs[1].loop.watch_replay(timing.PhaseTimer().snapshot, _LosingAccount())
  for _ in range(2):
    clock.now += 60.0
    pair.meet()
  chief, other = pair.runs
  assert ('tracing the first update') in [phase for _, phase in phases]
  assert {path for path, _ in phases} == {chief.folder.path}
  assert _notices(chief) == 'learner/1: 12 unrolls are lost\n' and _notices(other) == ''


def test_hosts_with_other_settings_are_refused(tmp_path, clock):
  pair = _Pair(tmp_path, clock, seeds=(1, 2))
  found = pair.each(lambda run: run.loop.restore())
  assert all(isinstance(error, types.UserError) for error in found)
  assert 'seed is 1 here and 2 at learner/1: start every node with the same --config' in str(
    found[0]
  )


class _RecordingGroup:
  """The group of host 1, which records the time limits of its exchanges.

  The chief answers like this host, but says whether a checkpoint is due.
  """

  is_chief, index, number = False, 1, 2

  def __init__(self):
    self.limits = []
    self.chief_saves = False

  def connect(self, patience_s, should_stop):
    return True

  def facts(self, own, timeout_s=None):
    self.limits.append(timeout_s)
    of_chief = list(own)
    if len(own) == len(peers_lib.Proposal._fields) - 1 + 4:  # a proposal, with four counts
      of_chief[peers_lib.Proposal._fields.index('saves')] = int(self.chief_saves)
    return np.array([of_chief, own])

  def reports(self, own, timeout_s=None):
    self.limits.append(timeout_s)
    return [own, own]

  def of_chief(self, own):
    return own


def test_the_chief_may_take_longer_only_while_it_saves(tmp_path, clock):
  group = _RecordingGroup()
  run = loop_run.Run(tmp_path, clock, peers=peers_lib.LearnerHosts(group))
  run.loop.restore()
  assert group.limits[0] == 600.0  # hosts may be ready minutes apart
  group.limits.clear()
  group.chief_saves = True
  assert run.loop.may_train(has_sample=True, wants_stop=False)
  # The hosts have met again before they begin the update.
  *_, last = group.limits
  assert last >= 1800.0
  group.limits.clear()
  group.chief_saves = False
  run.loop.may_train(has_sample=True, wants_stop=False)
  assert group.limits == [None]


class _Scripted(peers_lib.Peers):
  """Peers whose next decision is given by the test."""

  def __init__(self):
    self.changes = {}

  def agree(self, proposal, timer):
    return super().agree(proposal, timer)._replace(**self.changes)


def test_a_loop_does_what_is_decided_whatever_it_has_proposed(tmp_path, clock):
  peers = _Scripted()
  run = loop_run.Run(tmp_path, clock, peers=peers, **_often(log_s=1e9, save_s=1e9))
  run.loop.restore()
  peers.changes = {'trains': False, 'logs': True, 'saves': True, 'lacking': (3,)}
  run.counters.add(agent_steps=7)
  assert not run.loop.may_train(True, False)
  assert run.rows()['agent_steps'] == [7]
  assert run.loop.waits_for() == 'data of learner/3'
  peers.changes = {'trains': True, 'stops': True}
  assert run.loop.may_train(False, False) and run.loop.is_stopped


@pytest.mark.parametrize(
  ('has_sample', 'wants_stop', 'trains', 'logs'),
  [
    (True, False, True, False),  # after the update that the row belongs to
    (False, False, False, True),
    (True, True, False, True),
    (False, True, False, True),
  ],
)
def test_a_host_alone_decides_what_it_proposes(has_sample, wants_stop, trains, logs):
  counts = counting.Counts(agent_steps=7)
  decision = peers_lib.ALONE.agree(
    peers_lib.Proposal(has_sample, wants_stop, True, True, counts), timing.PhaseTimer()
  )
  assert decision == peers_lib.Decision(trains, wants_stop, logs, logs, counts)


def test_a_host_alone_exchanges_nothing():
  def never():
    raise AssertionError('nobody asks for it')

  assert peers_lib.ALONE.follow(never) is None
  assert peers_lib.ALONE.to_chief(never) == []
  sample, rows, gradients = object(), np.arange(4), [object()]
  assert peers_lib.ALONE.gather(sample, keeps_observations=True) is sample
  assert peers_lib.ALONE.own(rows) is rows
  assert peers_lib.ALONE.mean(gradients) is gradients
  assert peers_lib.ALONE.timed(never) is never


def test_each_host_takes_its_own_rows():
  table = _Table(2)
  own = [peers_lib.LearnerHosts(_ThreadGroup(i, table)).own(np.arange(6)) for i in (0, 1)]
  np.testing.assert_array_equal(own, [[0, 1, 2], [3, 4, 5]])
