"""Filmed evaluation episodes: which ones, their files, and the effect of a failure."""

import contextlib
import dataclasses
import json
import time

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.agents.on_policy import presets
from seed_acme.envs import catch
from seed_acme.envs import registry
from seed_acme.files import local
from seed_acme.programs.building import sections
from seed_acme.programs.nodes import filming
from seed_acme.storage import recordings
from seed_acme.storage import run_directory

imageio = pytest.importorskip('imageio.v2')
pytest.importorskip('imageio_ffmpeg')
# imageio's readers of videos leave pipes open.
pytestmark = pytest.mark.filterwarnings(
  'ignore::ResourceWarning', 'ignore::pytest.PytestUnraisableExceptionWarning'
)
_CATCH = config_lib.EnvironmentConfig('catch')  # 9 steps an episode, 10 pictures


class Rig:
  """A filmed environment, and the steps that the run has made."""

  def __init__(self, folder, record_every=100, environment=None):
    self.config = config_lib.ExperimentConfig(
      name='test',
      num_evaluation_environments=2,
      record_every=record_every,
      environment=_CATCH,
      agent=presets.vtrace(),
    )
    self.folder, self.agent_steps, self.told = folder, 0, []
    made = environment or registry.make(_CATCH, 2, seed=1, renders=True)
    self.environment = filming.FilmedEnvironment(
      made, self.config, filming.Films(folder, lambda: self.agent_steps, self.told.append)
    )
    self.returns = []

  def play(self, num_episodes):
    """Plays whole episodes, from the first row of one to the last row of another."""
    timestep = self.environment.reset()
    for number in range(num_episodes):
      if number:
        timestep = self.step()
      score = 0.0
      while timestep.step_type[0] != types.LAST:
        timestep = self.step()
        score += float(timestep.score[0])
      self.returns.append(score)

  def step(self):
    return self.environment.step(np.zeros(2, np.int32))

  def films(self):
    return [path.name for path in sorted(self.folder.iterdir())]


@pytest.fixture
def rig(tmp_path):
  return Rig(tmp_path / 'videos')


@pytest.mark.slow
def test_a_film_shows_the_episode_and_says_its_return(rig):
  unseen = recordings.Unseen(rig.folder)
  rig.play(1)
  [recording] = unseen.take()
  assert recording.agent_steps == 0 and recording.length == 9 and not recording.is_cut
  assert recording.episode_return == rig.returns[0]
  with imageio.get_reader(recording.video) as reader:
    frames = np.stack([frame[..., :3] for frame in reader]).astype(int)
  assert len(frames) == 10
  assert np.abs(np.diff(frames, axis=0)).max() > 100, 'the picture does not move'
  preview = imageio.mimread(recording.preview)
  assert len(preview) == 10 and max(preview[0].shape) <= 320
  assert rig.films() == ['000000000000.gif', '000000000000.json', '000000000000.mp4']


@pytest.mark.slow
def test_the_first_episode_and_then_one_after_each_multiple_of_steps(rig):
  for rig.agent_steps in (0, 60, 99, 130, 170, 450, 499, 500):
    rig.play(1)
  assert recordings.steps(rig.folder) == [0, 130, 450, 500]


@pytest.mark.slow
def test_a_resumed_run_goes_on_where_it_stood_and_films_again_what_it_has_lost(tmp_path):
  first = Rig(tmp_path)
  for first.agent_steps in (0, 120, 350):
    first.play(1)
  (tmp_path / '.000000000350.77.mp4').touch()  # left by a worker that was killed
  resumed = Rig(tmp_path)
  for resumed.agent_steps in (150, 199, 230):
    resumed.play(1)
  assert recordings.steps(tmp_path) == [0, 120, 230, 350]
  assert not list(tmp_path.glob('.*'))


def test_hidden_files_of_others_stay_and_do_not_end_the_run(tmp_path):
  (tmp_path / '.ipynb_checkpoints').mkdir()
  for name in ('.notes', '.000000000350.77.mp4', '.77.000000000350.gif', '.77.000000000350.json'):
    (tmp_path / name).touch()
  assert Rig(tmp_path).films() == ['.ipynb_checkpoints', '.notes']


def test_a_folder_that_cannot_be_made_costs_a_notice(tmp_path):
  (tmp_path / 'videos').touch()
  rig = Rig(tmp_path / 'videos')
  rig.play(1)
  [told] = rig.told
  assert told.startswith('nothing is filmed any more (record_every): ')


def test_while_the_steps_are_not_known_nothing_is_filmed(rig):
  rig.agent_steps = None
  rig.play(2)
  assert rig.films() == []


def test_an_episode_that_does_not_end_is_cut(rig, monkeypatch):
  monkeypatch.setattr(filming, '_MAX_STEPS', 4)
  rig.play(1)
  record = json.loads((rig.folder / '000000000000.json').read_text())
  assert record['length'] == 4 and record['is_cut']


def test_an_episode_that_is_not_played_to_its_end_leaves_nothing(rig):
  rig.environment.reset()
  rig.step()
  assert rig.films() != []  # a film is being written
  rig.environment.close()
  assert rig.films() == []


class _Broken:
  """Catch whose rendering fails at the third picture."""

  def __init__(self, error):
    self._inside, self._error, self._pictures = registry.make(_CATCH, 2, seed=1), error, 0
    self.num_environments, self.spec = 2, self._inside.spec
    self.reset, self.step, self.close = self._inside.reset, self._inside.step, self._inside.close

  def render(self):
    self._pictures += 1
    if self._pictures == 3:
      raise self._error
    return self._inside.render()


def test_a_screen_that_fails_costs_a_notice_and_the_run_goes_on(tmp_path):
  rig = Rig(tmp_path, environment=_Broken(RuntimeError('no more light')))
  for rig.agent_steps in (0, 200, 400):
    rig.play(1)
  assert len(rig.returns) == 3
  assert rig.told == ['nothing is filmed any more (record_every): RuntimeError: no more light']
  assert rig.films() == []


def test_the_end_of_the_actor_is_no_failure_of_the_film(tmp_path):
  rig = Rig(tmp_path, environment=_Broken(core.ChannelClosed()))
  with pytest.raises(core.ChannelClosed):
    rig.play(1)
  rig.environment.close()
  assert rig.told == [] and rig.films() == []


def test_environments_are_closed_though_an_unfinished_film_cannot_be_dropped(rig, monkeypatch):
  @contextlib.contextmanager
  def opened(writer, frames_per_s):
    try:
      yield
    finally:
      raise OSError('the disk is gone')

  closed = []
  monkeypatch.setattr(filming.video.Writer, 'open', opened)
  monkeypatch.setattr(filming.video.Writer, 'add', lambda *_: None)
  monkeypatch.setattr(catch.Catch, 'close', lambda self: closed.append(self))
  rig.environment.reset()
  with pytest.raises(OSError, match='the disk is gone'):
    rig.environment.close()
  assert len(closed) == 1


def test_a_worker_knows_the_steps_by_a_status_of_its_own_start(tmp_path, monkeypatch):
  monkeypatch.setattr(filming, '_READ_PERIOD_S', 0.0)
  run = run_directory.create(tmp_path / 'run')
  local.write_json(run.status, {'agent_steps': 700, 'time_s': time.time()})
  steps = filming.of_run(run).agent_steps
  assert steps() is None  # an earlier start's status, whose steps a resumed run may have lost
  # The clock was set back meanwhile.
  local.write_json(run.status, {'agent_steps': 500, 'time_s': time.time() - 3600})
  assert steps() == 500
  run.status.unlink()
  assert steps() == 0


def test_only_the_actor_that_evaluates_films():
  config = dataclasses.replace(
    config_lib.ExperimentConfig(name='x', environment=_CATCH, agent=presets.vtrace()),
    num_actors=2,
    num_evaluation_environments=1,
    record_every=5,
  )
  assert [actor.record_every for actor in sections.split(config).actors] == [0, 0, 5]
