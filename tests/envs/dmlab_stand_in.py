"""A stand-in for the module `deepmind_lab`, which cannot be installed from an index.

It follows docs/users/python_api.md of google-deepmind/lab, and python/dmlab_module.c if that page
says nothing, for exceptions and for the order of calls. Every argument is checked, and anything
that the real module refuses, or does not define, raises here.

Its world is small: the picture is a function of the seed and the frame, moving forward is rewarded,
and the picture of an episode's first frames shows whether it ends early.
"""

import importlib.machinery
import os
import types

import numpy as np

ACTION_SPEC = (
  ('LOOK_LEFT_RIGHT_PIXELS_PER_FRAME', -512, 512),
  ('LOOK_DOWN_UP_PIXELS_PER_FRAME', -512, 512),
  ('STRAFE_LEFT_RIGHT', -1, 1),
  ('MOVE_BACK_FORWARD', -1, 1),
  ('FIRE', 0, 1),
  ('JUMP', 0, 1),
  ('CROUCH', 0, 1),
)
LEVELS = {  # seconds of an episode
  'contributed/dmlab30/rooms_watermaze': 120,
  'contributed/dmlab30/rooms_keys_doors_puzzle': 60,
  'contributed/dmlab30/explore_goal_locations_small': 90,
  'contributed/dmlab30/lasertag_three_opponents_small': 240,
  'contributed/dmlab30/language_execute_random_task': 120,
  'contributed/dmlab30/psychlab_continuous_recognition': 300,
  'contributed/dmlab30/rooms_collect_good_objects_train': 60,
  'contributed/dmlab30/rooms_collect_good_objects_test': 60,
  'demos/extra_entities': 2,
  'demos/more_actions': 2,
}
COMPILED = ('contributed/dmlab30/explore_goal_locations_small',)  # a map for every seed
GOAL_FRAMES = 40  # frames after which an early episode end occurs
_OPTIONS = ('width', 'height', 'fps', 'levelDirectory', 'appendCommand', 'mixerSeed')
_OF_LEVELS = ('episodeLengthSeconds', 'allowHoldOutLevels', 'logLevel', 'datasetPath')
_LOG_LEVELS = ('NEVER', 'ERROR', 'WARN', 'INFO')
_CLOSED, _NEW, _RUNNING, _ENDED = 'closed', 'new', 'running', 'ended'


class Lab:
  """One environment. The module's `made` lists all of them, in order."""

  def __init__(
    self, level, observations, config=None, renderer='software', level_cache=None, temp_folder=None
  ):
    self._status = _CLOSED
    _require(type(level) is str, TypeError, f'level must be str, not {level!r}')
    _require(type(observations) is list, TypeError, f'observations {observations!r}: not a list')
    _require(config is None or type(config) is dict, TypeError, f'config {config!r}: not a dict')
    for item in [*observations, *(config or {}), *(config or {}).values()]:
      _require(type(item) is str, TypeError, f'bad argument type for built-in operation: {item!r}')
    _require(
      renderer in ('software', 'hardware'),
      RuntimeError,
      f'Failed to set renderer must be "hardware" or "software" actual "{renderer}"!',
    )
    _require(temp_folder is None or type(temp_folder) is str, TypeError, 'temp_folder must be str')
    _require(level in LEVELS, RuntimeError, f"Invalid levelName flag '{level}'")
    self.level, self.renderer, self.temp_folder = level, renderer, temp_folder
    self.config, self.level_cache = dict(config or {}), level_cache
    self.seeds, self.actions, self.num_repeats, self.num_compiled = [], [], [], 0
    self._init_settings()
    self._names = list(observations)
    known = [spec['name'] for spec in self._specs()]
    for name in observations:
      _require(name in known, ValueError, f"Unknown observation '{name}'.")
    self._status, self._frames, self._episode = _NEW, 0, 0

  def _init_settings(self):
    config = self.config
    for name, value in config.items():
      _require(
        name in _OPTIONS or name in _OF_LEVELS,
        RuntimeError,
        f'Failed to init environment - "Invalid setting: "{name}" = "{value}""',
      )
    self._width, self._height = (int(config.get(name, n)) for name, n in _SIZES)
    self._fps = int(config.get('fps', '60'))
    self._mixer_seed = int(config.get('mixerSeed', '0'))
    self._seconds = int(config.get('episodeLengthSeconds', LEVELS[self.level]))
    _require(
      config.get('logLevel', 'INFO') in _LOG_LEVELS, RuntimeError, f'Invalid logLevel: {config}'
    )
    may_test = config.get('allowHoldOutLevels', 'false')
    _require(may_test in ('true', 'false'), RuntimeError, f'allowHoldOutLevels = {may_test}')
    _require(
      may_test == 'true' or not self.level.endswith('_test'),
      RuntimeError,
      'Failed to init environment - "This level must only be used during evaluation."',
    )
    _require(
      'psychlab_continuous' not in self.level or os.path.isdir(config.get('datasetPath', '')),
      RuntimeError,
      'Failed to init environment - "datasetPath"',
    )

  def reset(self, episode=-1, seed=None):
    self._require_open()
    _require(type(episode) is int, TypeError, f'episode {episode!r}: an integer is required')
    _require(
      seed is None or type(seed) is int,
      ValueError,
      f"'seed' must be int or None, was '{type(seed).__name__}'.",
    )
    _require(seed is None or -(2**31) <= seed < 2**31, OverflowError, f'seed {seed}: no C int')
    self._episode = episode + 1 if episode >= 0 else self._episode + 1
    self._seed = np.random.randint(2**31) if seed is None else seed
    self.seeds.append(seed)
    if self.level in COMPILED:
      self._compile()
    self._random = np.random.default_rng([self._seed & 0xFFFFFFFF, self._mixer_seed])
    self._base = self._random.integers(0, 256, (self._height, self._width, 3), np.uint8)
    self._ends_early = self._random.integers(3) == 0
    self._status, self._frames = _RUNNING, 0
    return True

  def _compile(self):
    cache, key = self.level_cache, f'{self.level}:{self._seed}:{self._mixer_seed}'
    pk3_path = os.path.join(self.temp_folder or os.environ['TMPDIR'], f'map_{id(self)}.pk3')
    if cache is not None and cache.fetch(key, pk3_path):
      with open(pk3_path, encoding='utf-8') as file:
        _require(file.read() == key, RuntimeError, 'the level cache gave another level')
    else:
      self.num_compiled += 1
      with open(pk3_path, 'w', encoding='utf-8') as file:
        file.write(key)
      if cache is not None:
        cache.write(key, pk3_path)
    os.remove(pk3_path)

  def num_steps(self):
    self._require_open()
    return self._frames

  def is_running(self):
    return self._status == _RUNNING

  def step(self, action, num_steps=1):
    self._require_open()
    _require(isinstance(action, np.ndarray), TypeError, f'action must be numpy.ndarray: {action!r}')
    _require(type(num_steps) is int, TypeError, f'num_steps {num_steps!r}: an integer is required')
    _require(num_steps >= 1, ValueError, f'num_steps {num_steps}')
    _require(self.is_running(), RuntimeError, 'Environment in wrong status to advance.')
    spec = self.action_spec()
    _require(action.shape == (len(spec),), ValueError, f'action must have shape ({len(spec)})')
    _require(action.dtype == np.intc, ValueError, 'action must have dtype np.intc')
    _require(action.flags.c_contiguous, ValueError, 'the memory of the action is read in order')
    for value, one in zip(action.tolist(), spec):
      _require(one['min'] <= value <= one['max'], ValueError, f'{one}: {value} is undefined')
    self.actions.append(action.tolist())
    self.num_repeats.append(num_steps)
    # The requested frames are counted, even if the episode ends within the step.
    self._frames += num_steps
    limit = GOAL_FRAMES if self._ends_early else self._seconds * self._fps
    if self._frames >= limit:
      self._status = _ENDED
    return float(num_steps * action[3]) + (
      10.0 if self._ends_early and not self.is_running() else 0
    )

  def observation_spec(self):
    self._require_open()
    return self._specs()

  def _specs(self):
    return [
      {'name': 'RGB_INTERLEAVED', 'dtype': np.uint8, 'shape': (self._height, self._width, 3)},
      {'name': 'RGB', 'dtype': np.uint8, 'shape': (3, self._height, self._width)},
      {'name': 'VEL.TRANS', 'dtype': np.float64, 'shape': (3,)},
      {'name': 'INSTR', 'dtype': str, 'shape': ()},
    ]

  def observations(self):
    self._require_open()
    _require(
      self.is_running(), RuntimeError, 'Environment in wrong status for call to observations()'
    )
    image = self._base + np.uint8(self._frames % 256)  # a new array each time
    color = ('red', 'green', 'blue')[(self._seed + self._frames // 60) % 3]
    of = {
      'RGB_INTERLEAVED': image,
      'RGB': np.ascontiguousarray(image.transpose(2, 0, 1)),
      'VEL.TRANS': np.zeros(3),
      'INSTR': f'Pick the {color} object' if 'language' in self.level else '',
    }
    return {name: of[name] for name in self._names}

  def events(self):
    self._require_open()
    return []

  def fps(self):
    self._require_open()
    return self._fps

  def action_spec(self):
    self._require_open()
    more = (('SWITCH_GADGET', -1, 1),) if self.level == 'demos/more_actions' else ()
    return [{'name': name, 'min': low, 'max': high} for name, low, high in (*ACTION_SPEC, *more)]

  def close(self):
    was_open, self._status = self._status != _CLOSED, _CLOSED
    return was_open

  def _require_open(self):
    _require(self._status != _CLOSED, RuntimeError, 'only is_running() may be called after close()')


_SIZES = (('width', '320'), ('height', '240'))


def _require(condition, kind, message):
  if not condition:
    raise kind(message)


def module():
  """Returns a fresh `deepmind_lab` for `sys.modules`; its `made` lists the Labs."""
  made = types.ModuleType('deepmind_lab')
  made.__spec__ = importlib.machinery.ModuleSpec('deepmind_lab', None)
  made.made, made.runfiles = [], []

  class Recorded(Lab):
    def __init__(self, *args, **kwargs):
      super().__init__(*args, **kwargs)
      made.made.append(self)

  def set_runfiles_path(path):
    _require(type(path) is str, TypeError, f'path {path!r}')
    made.runfiles.append(path)
    return True

  made.Lab, made.set_runfiles_path = Recorded, set_runfiles_path
  return made
