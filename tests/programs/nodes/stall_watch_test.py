"""Messages about an actor's environments, and when its worker has to be killed."""

import time

import pytest

from seed_acme import config as config_lib
from seed_acme.acting import activity as activity_lib
from seed_acme.agents.on_policy import presets
from seed_acme.programs.building import sections
from seed_acme.programs.nodes import stall_watch
from seed_acme.storage import run_directory

_Doing = activity_lib.Doing


class _Rig:
  """A watch of actor 1 that is polled ten times a second, with a simulated clock."""

  def __init__(self, ends_workers=True, index=1, **limits):
    config = config_lib.ExperimentConfig(
      name='test',
      num_actors=2,
      environments_per_actor=8,
      environment=config_lib.EnvironmentConfig('mine:Env'),
      agent=presets.vtrace(),
      actor=config_lib.ActorConfig(environment_groups=2, **limits),
    )
    self.now, self.said = 1000.0, []
    self.activity = activity_lib.Activity()
    self.watch = stall_watch.Watch(
      sections.split(config).actors[index], self.said.append, ends_workers, lambda: self.now
    )
    self.watch.follow(self.activity)

  def spend(self, seconds, doing, group=0):
    """Spends time in one call; returns when `look` first returned a reason, and the reason."""
    self.activity.begin(doing, group)
    for tenth in range(round(10 * seconds)):
      self.now += 0.1
      words = self.watch.look()
      if words:
        return tenth // 10, words
    return None


@pytest.mark.parametrize(
  'doing, limit_s, words',
  [
    (_Doing.STEPPING, 60, 'step() of environments 12 ... 15'),
    (_Doing.RESETTING, 300, 'reset() of environments 12 ... 15'),
    (_Doing.MAKING, 300, 'the making of environments 12 ... 15'),
    (_Doing.CLOSING, 10, 'close() of environments 12 ... 15'),
  ],
)
def test_what_hangs_is_named_after_its_limit(doing, limit_s, words):
  fields = {_Doing.STEPPING: ' (actor.step_timeout_s)', _Doing.CLOSING: ''}
  field = fields.get(doing, ' (actor.reset_timeout_s)')
  assert _Rig().spend(1000, doing, group=1) == (
    limit_s,
    f'environment mine:Env hangs: {words} has not returned for {limit_s} s{field}',
  )


def test_waits_for_the_learner_never_count():
  rig = _Rig()
  for doing in (_Doing.STARTING, _Doing.CONNECTING, _Doing.WAITING):
    assert rig.spend(1000, doing) is None
  assert rig.said == []


def test_many_calls_are_not_one_that_lasts():
  rig = _Rig()
  for _ in range(100):
    assert rig.spend(1, _Doing.STEPPING) is None
  assert rig.said == []


def test_a_slow_call_is_told_once_when_it_has_returned():
  rig = _Rig()
  for seconds, doing in (
    (2.5, _Doing.STEPPING),
    (45, _Doing.RESETTING),
    (20, _Doing.STEPPING),
    (100, _Doing.RESETTING),
  ):
    rig.spend(seconds, doing)
    rig.spend(1, _Doing.WAITING)
  [said] = rig.said
  assert said.startswith(
    'actor/1: environment mine:Env is slow: step() of environments 8 ... 11 '
    'took 20 s, and all environments of this actor wait for it. '
    'Beyond 60 s it counts as hung (actor.step_timeout_s). '
  )


def test_without_a_limit_it_is_said_and_waited_for():
  rig = _Rig(step_timeout_s=0.0)
  assert rig.spend(1000, _Doing.STEPPING) is None
  [said] = rig.said
  assert said.startswith(
    'actor/1: environment mine:Env hangs: step() of environments 8 ... 11 has '
    'not returned for 60 s (actor.step_timeout_s): the limit is 0'
  )


def test_a_thread_is_told_of_and_not_ended():
  rig = _Rig(ends_workers=False)
  assert rig.spend(1000, _Doing.STEPPING) is None
  [said] = rig.said
  assert 'a thread cannot be ended' in said


def test_a_process_that_waits_for_close_alone_is_left():
  assert _Rig(ends_workers=False).spend(1000, _Doing.CLOSING)[0] == activity_lib.CLOSE_S


def test_a_slow_close_is_nobodys_trouble():
  rig = _Rig()
  rig.spend(9, _Doing.CLOSING)
  rig.spend(1, _Doing.STARTING)
  assert rig.said == []


def test_time_in_which_nobody_looked_does_not_count():
  rig = _Rig()
  rig.spend(1, _Doing.STEPPING)
  rig.now += 10_000  # the host was suspended
  assert rig.watch.look() == ''


def test_a_long_wait_for_the_learner_is_said_by_the_first_actor_alone():
  rigs = [_Rig(index=0), _Rig(index=1)]
  for rig in rigs:
    rig.spend(200, _Doing.CONNECTING)
  assert [len(rig.said) for rig in rigs] == [1, 0]
  assert 'actor/0 has waited 60 s for the learner' in rigs[0].said[0]


def test_only_time_with_steps_makes_a_worker_healthy():
  rig = _Rig()
  for seconds, doing in (
    (100, _Doing.MAKING),
    (100, _Doing.CONNECTING),
    (30, _Doing.WAITING),
    (50, _Doing.STEPPING),
  ):
    rig.spend(seconds, doing)
  assert rig.watch.acted_s == pytest.approx(30, abs=0.5)


def test_a_hang_that_is_over_just_before_the_end_is_told(tmp_path):
  config = config_lib.ExperimentConfig(
    name='test',
    num_actors=1,
    environments_per_actor=8,
    environment=config_lib.EnvironmentConfig('mine:Env'),
    agent=presets.vtrace(),
    actor=config_lib.ActorConfig(step_timeout_s=0.2),
  )
  run_dir = run_directory.create(tmp_path / 'run')
  thread = stall_watch.Thread(run_dir)
  activity = thread.add(sections.split(config).actors[0])
  activity.begin(_Doing.STEPPING)
  give_up = time.monotonic() + 60
  while not run_dir.notices.exists():
    assert time.monotonic() < give_up, 'the watcher does not look'
    time.sleep(0.01)
  activity.begin(_Doing.WAITING)
  thread.stop()
  hangs, slow = run_dir.notices.read_text(encoding='utf-8').splitlines()
  assert 'hangs: step() of environments 0 ... 7' in hangs
  assert 'is slow: step() of environments 0 ... 7 took' in slow
