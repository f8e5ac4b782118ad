"""The stand-in of DeepMind Lab refuses what the real module refuses."""

import numpy as np
import pytest

from tests.envs import dmlab_stand_in

_LEVEL = 'contributed/dmlab30/rooms_watermaze'
_SMALL = {'width': '8', 'height': '6'}
_NOOP = np.zeros(7, np.intc)


def _lab(level=_LEVEL, observations=('RGB_INTERLEAVED',), config=None, **options):
  observations = list(observations) if type(observations) is tuple else observations
  return dmlab_stand_in.Lab(level, observations, config or _SMALL, **options)


@pytest.mark.parametrize(
  ('arguments', 'kind'),
  [
    ({'level': 'rooms_watermaze'}, RuntimeError),
    ({'level': None}, TypeError),
    ({'level': _LEVEL, 'observations': {'RGB_INTERLEAVED'}}, TypeError),
    ({'observations': ('IMAGE',)}, ValueError),
    ({'observations': (3,)}, TypeError),
    ({'config': {'width': 96}}, TypeError),
    ({'config': {'mixerSeed': 0x600D5EED}}, TypeError),
    ({'config': {'widht': '96'}}, RuntimeError),
    ({'config': {'logLevel': 'WARNINGS'}}, RuntimeError),
    ({'config': {'allowHoldOutLevels': 'True'}}, RuntimeError),
    ({'renderer': 'egl'}, RuntimeError),
    ({'temp_folder': 3}, TypeError),
    ({'level': 'contributed/dmlab30/rooms_collect_good_objects_test'}, RuntimeError),
    ({'level': 'contributed/dmlab30/psychlab_continuous_recognition'}, RuntimeError),
    ({'levels': 3}, TypeError),
  ],
)
def test_wrong_arguments_of_the_class(arguments, kind):
  with pytest.raises(kind):
    _lab(**arguments)


@pytest.mark.parametrize('seed', [1.0, np.int64(3), '1', 2**31])
def test_wrong_seeds(seed):
  with pytest.raises((ValueError, OverflowError)):
    _lab().reset(seed=seed)


@pytest.mark.parametrize(
  ('action', 'kind'),
  [
    ([0] * 7, TypeError),
    (np.zeros(6, np.intc), ValueError),
    (np.zeros((1, 7), np.intc), ValueError),
    (np.zeros(7, np.int64), ValueError),
    (np.zeros(7, np.float32), ValueError),
    (np.array([0, 0, 0, 2, 0, 0, 0], np.intc), ValueError),
  ],
)
def test_wrong_actions(action, kind):
  lab = _lab()
  lab.reset(seed=1)
  with pytest.raises(kind):
    lab.step(action)


@pytest.mark.parametrize('num_steps', [0, 4.0, np.int64(4)])
def test_wrong_numbers_of_frames(num_steps):
  lab = _lab()
  lab.reset(seed=1)
  with pytest.raises((TypeError, ValueError)):
    lab.step(_NOOP, num_steps=num_steps)


def test_nothing_is_played_or_seen_before_the_first_reset_or_after_the_end():
  lab = _lab(config={**_SMALL, 'episodeLengthSeconds': '1'})
  for call in (lambda: lab.step(_NOOP), lab.observations):
    with pytest.raises(RuntimeError, match='wrong status'):
      call()
  lab.reset(seed=1)
  assert lab.observations()['RGB_INTERLEAVED'].shape == (6, 8, 3)
  while lab.is_running():
    lab.step(_NOOP, num_steps=4)
  for call in (lambda: lab.step(_NOOP), lab.observations):
    with pytest.raises(RuntimeError, match='wrong status'):
      call()
  assert lab.num_steps() >= 40  # may be called
  lab.reset(seed=1)
  assert lab.is_running() and lab.num_steps() == 0


def test_nothing_but_is_running_may_be_called_after_close():
  lab = _lab()
  lab.reset()
  assert lab.close()
  assert not lab.is_running()
  for call in (lab.reset, lab.fps, lab.action_spec, lab.num_steps, lambda: lab.step(_NOOP)):
    with pytest.raises(RuntimeError, match='after close'):
      call()


def test_a_cache_that_is_none_or_lies_is_seen(tmp_path):
  class Nothing:
    pass

  class Liar:
    def fetch(self, key, pk3_path):
      del key
      with open(pk3_path, 'w', encoding='utf-8') as file:
        file.write('another level')
      return True

  for cache, kind in ((Nothing(), AttributeError), (Liar(), RuntimeError)):
    lab = _lab(
      'contributed/dmlab30/explore_goal_locations_small',
      level_cache=cache,
      temp_folder=str(tmp_path),
    )
    with pytest.raises(kind):
      lab.reset(seed=1)
