"""The time-outs of a trial, with a simulated clock."""

import pytest

from seed_acme import config as config_lib
from seed_acme.acting import activity as activity_lib
from seed_acme.agents.on_policy import presets
from seed_acme.programs.trial import patience

_Doing = activity_lib.Doing


class _Trial:
  """A trial that is polled ten times a second."""

  def __init__(self, **limits):
    config = config_lib.ExperimentConfig(
      name='test',
      num_actors=1,
      environments_per_actor=8,
      environment=config_lib.EnvironmentConfig('mine:Env'),
      agent=presets.vtrace(),
      actor=config_lib.ActorConfig(**limits),
    )
    self.now, self.said = 1000.0, []
    self._number = 0
    self._patience = patience.Patience(config, self.said.append, lambda: self.now)

  def spend(self, seconds, doing):
    """Spends time in one call; returns the seconds after which the wait was over."""
    self._number += 1
    for tenth in range(round(10 * seconds)):
      self.now += 0.1
      if self._patience.is_over(activity_lib.Call(self._number, doing, 0)):
        return tenth // 10
    return None


def test_nothing_is_said_of_a_quick_one():
  trial = _Trial()
  for doing in (_Doing.MAKING, _Doing.STARTING, _Doing.CLOSING):
    assert trial.spend(0.9, doing) is None
  assert trial.said == []


def test_signs_of_life_become_rarer():
  trial = _Trial(reset_timeout_s=1000.0)
  trial.spend(200, _Doing.MAKING)
  assert [int(said.split(', ')[1].split()[0]) for said in trial.said] == [3, 10, 30, 60, 120, 180]
  assert trial.said[0] == (
    'Trying environment mine:Env: it is being made, 3 s by now, up to 1000 s'
  )


def test_loading_of_a_network_is_no_sign_of_trouble():
  trial = _Trial()
  trial.spend(29, _Doing.STARTING)
  assert trial.said == []
  trial.spend(1000, _Doing.STARTING)  # no call of an environment, so there is no limit
  assert 'agent and network' in trial.said[0]


@pytest.mark.parametrize('limit_s', [5, 300])
def test_a_making_that_hangs_is_refused_by_its_name(limit_s):
  trial = _Trial(reset_timeout_s=float(limit_s))
  with pytest.raises(
    patience.Hangs,
    match=rf'mine:Env hangs: its making has not returned for {limit_s} s \(actor.reset_timeout_s\)',
  ):
    trial.spend(2 * limit_s, _Doing.MAKING)
  assert trial.now == pytest.approx(1000 + limit_s, abs=2)


def test_no_limit_means_none_and_is_said():
  trial = _Trial(reset_timeout_s=0.0)
  assert trial.spend(2000, _Doing.MAKING) is None
  assert all('without a limit' in said for said in trial.said)


def test_a_close_that_hangs_is_named_and_does_not_keep_the_run_from_starting():
  trial = _Trial()
  assert trial.spend(100, _Doing.CLOSING) in (9, 10)
  assert 'hangs: close() has not returned for 10 s: the run goes on without it' in trial.said[-1]


def test_time_in_which_nobody_looked_does_not_count():
  trial = _Trial(reset_timeout_s=5.0)
  trial.spend(1, _Doing.MAKING)
  trial.now += 10_000  # the host was suspended
  assert trial.spend(1, _Doing.MAKING) is None
