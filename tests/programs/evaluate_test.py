"""`seed-acme evaluate`: several runs, human-normalised scores, video, progress."""

import collections
import functools
import importlib
import io
import itertools
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from seed_acme import config as config_lib
from seed_acme.envs import atari_games
from seed_acme.envs import catch as catch_lib
from seed_acme.envs import checked
from seed_acme.inference import server as server_lib
from seed_acme.programs import cli
from seed_acme.programs.pictures import video
from seed_acme.programs.tools.reports import evaluate_command
from seed_acme.programs.tools.reports import evaluation
from seed_acme.programs.tools.reports import window
from tests import pages
from tests.programs import evaluated_runs

pytestmark = [
  pytest.mark.slow,
  pytest.mark.timeout(240),
  pytest.mark.filterwarnings('ignore::ResourceWarning'),  # imageio's reader of GIFs
]


@pytest.fixture(autouse=True)
def _signals(monkeypatch):
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)


@pytest.fixture(scope='module')
def load():
  """`evaluation.load`, which loads each run once."""
  return functools.cache(evaluation.load)


@pytest.fixture(autouse=True)
def _loads_once(monkeypatch, load):
  monkeypatch.setattr(evaluation, 'load', load)


@pytest.fixture(scope='module', name='catch')
def _catch(tmp_path_factory):
  return evaluated_runs.train(
    tmp_path_factory.mktemp('runs') / 'catch',
    'catch_vtrace',
    config_lib.EnvironmentConfig('catch'),
    {},
    mlp_sizes=(8,),
  )


@pytest.fixture(scope='module', name='pong')
def _pong(tmp_path_factory):
  pytest.importorskip('ale_py')
  return evaluated_runs.atari(tmp_path_factory.mktemp('runs') / 'pong', 'Pong')


@pytest.fixture(scope='module', name='boxing')
def _boxing(pong):
  """The run of Pong, copied and played on another game."""
  boxing = shutil.copytree(pong, pong.with_name('boxing'))
  config = boxing / 'config.json'
  config.write_text(config.read_text().replace('atari:Pong', 'atari:Boxing'))
  return boxing


def test_one_run_is_one_record(catch, capsys):
  record = json.loads(evaluated_runs.evaluate(capsys, catch, '--episodes=7', '--json').out)
  assert (record['episodes'], record['length_mean'], record['environment']) == (7, 9, 'catch')
  assert record['human_normalized_score'] is None
  assert 'video' not in record
  text = evaluated_runs.evaluate(capsys, catch, '--episodes=1').out
  assert text.startswith('1 greedy episode of the checkpoint at ')
  assert 'uman-normalised' not in text


@pytest.mark.parametrize('sampled', [False, True])
def test_greedy_episodes_have_one_action_an_observation_and_sampled_ones_more(
  catch, capsys, monkeypatch, sampled
):
  actions = collections.defaultdict(set)

  class Server(server_lib.InferenceServer):
    def step(self, requests):
      answers = super().step(requests)
      for observation, action in zip(requests[0].timestep.observation, answers[0]):
        actions[observation.tobytes()].add(int(action))
      return answers

  monkeypatch.setattr(evaluation.server_lib, 'InferenceServer', Server)
  arguments = (catch, '--episodes=30', *(['--sampled'] if sampled else []))
  assert (
    json.loads(evaluated_runs.evaluate(capsys, *arguments, '--json').out)['greedy'] is not sampled
  )
  assert (max(map(len, actions.values())) > 1) == sampled
  word = 'sampled' if sampled else 'greedy'
  assert evaluated_runs.evaluate(capsys, *arguments).out.startswith(
    f'30 {word} episodes of the checkpoint'
  )


def test_16_atari_games_at_once_and_their_human_normalized_score(pong, capsys):
  record = json.loads(evaluated_runs.evaluate(capsys, pong, '--episodes=16', '--json').out)
  assert record['episodes'] == 16
  assert record['length_mean'] == evaluated_runs.GAME_FRAMES / 4
  # Random plays -20.7 and a human 14.6.
  expected = (record['return_mean'] + 20.7) / (14.6 + 20.7)
  assert record['human_normalized_score'] == pytest.approx(expected)
  assert -21 <= record['return_min'] <= record['return_max'] <= 21


def test_several_runs_and_the_mean_over_games(pong, boxing, catch, capsys):
  runs = (pong, boxing, catch)
  record = json.loads(evaluated_runs.evaluate(capsys, *runs, '--episodes=2', '--json').out)
  assert [run['environment'] for run in record['runs']] == ['atari:Pong', 'atari:Boxing', 'catch']
  scores = [run['human_normalized_score'] for run in record['runs']]
  assert scores[2] is None and scores[0] != scores[1]
  assert record['human_normalized']['games'] == 2
  assert record['human_normalized']['mean'] == pytest.approx((scores[0] + scores[1]) / 2)
  lines = evaluated_runs.evaluate(capsys, *runs, '--episodes=2').out.splitlines()
  assert [line.partition(':')[0] for line in lines[:3]] == [str(run) for run in runs]
  assert lines[3].startswith('Human-normalised over 2 of 57 games')
  assert f'mean {record["human_normalized"]["mean"]:.3f}' in lines[3]


def test_several_runs_without_atari_have_no_mean_over_games(catch, capsys):
  record = json.loads(evaluated_runs.evaluate(capsys, catch, catch, '--episodes=1', '--json').out)
  assert len(record['runs']) == 2 and record['human_normalized'] is None


def test_runs_of_one_game_are_averaged_before_mean_and_median():
  records = [
    {'environment': f'atari:{game}', 'human_normalized_score': score}
    for game, score in (('Pong', 0.0), ('Pong', 1.0), ('Alien', 2.0), ('Qbert', 6.5))
  ]
  records.append({'environment': 'atari:Adventure', 'human_normalized_score': None})
  summary = evaluation.human_normalized_summary(records)
  assert summary == {'mean': 3.0, 'median': 2.0, 'games': 3}
  assert summary['games'] <= len(atari_games.GAMES)


def _read(path):
  imageio = pytest.importorskip('imageio.v2')
  with imageio.get_reader(path) as reader:
    return np.stack([frame[..., :3] for frame in reader]), reader.get_meta_data()


def test_a_video_of_atari(pong, tmp_path, capsys):
  path = tmp_path / 'new' / 'pong.mp4'
  output = evaluated_runs.evaluate(capsys, pong, '--episodes=1', f'--video={path}').out
  frames, about = _read(path)
  assert frames.shape == (1 + evaluated_runs.GAME_FRAMES / 4, 420, 320, 3)
  assert about['fps'] == 60 / 4
  change = np.abs(np.diff(frames.astype(int), axis=0)).max(axis=(1, 2, 3))
  # Nothing moves before the first serve, which comes after up to 15 steps.
  assert (change > 50).sum() >= 15, 'the picture hardly moves'
  assert np.ptp(frames[0].astype(int), axis=-1).max() > 50, 'the picture is gray'
  assert f'Video: {path}, an episode with return ' in output
  assert 'in 30 steps, 31 frames at 15 a second' in output
  assert [entry.name for entry in path.parent.iterdir()] == ['pong.mp4']


def test_the_return_is_that_of_the_episode_shown(catch, tmp_path, capsys):
  path = tmp_path / 'catch.mp4'
  record = json.loads(
    evaluated_runs.evaluate(capsys, catch, '--episodes=1', f'--video={path}', '--json').out
  )['video']
  frames, _ = _read(path)
  assert (record['frames'], record['length'], record['is_cut']) == (10, 9, False)
  assert frames.shape == (10, 640, 320, 3)
  # In the last picture the white ball is in the bottom row; if caught, it hides the blue paddle.
  red, _, blue = (frames[-1, -32:, :, i].astype(int) for i in range(3))
  has_missed = (blue - red > 60).any()
  assert record['return'] == (-1 if has_missed else 1)


def test_the_episode_shown_is_none_of_those_that_are_counted(catch, tmp_path, capsys, monkeypatch):
  seeds, make = [], evaluation.environments.make

  def seen(config, num_environments, seed, **more):
    seeds.append(seed)
    return make(config, num_environments, seed, **more)

  monkeypatch.setattr(evaluation.environments, 'make', seen)
  evaluated_runs.evaluate(capsys, catch, '--episodes=1', f'--video={tmp_path / "catch.gif"}')
  assert len(seeds) == len(set(seeds)) == 2


def _let_close_raise(monkeypatch):
  def close(self):
    raise RuntimeError('the window is gone')

  monkeypatch.setattr(checked.CheckedEnvironment, 'close', close)
  return 'Notice: environment catch: close() raised RuntimeError: the window is gone ('


def test_an_error_of_close_costs_no_result(catch, tmp_path, capsys, monkeypatch):
  told = _let_close_raise(monkeypatch)
  path = tmp_path / 'catch.gif'
  said = evaluated_runs.evaluate(capsys, catch, '--episodes=3', f'--video={path}', '--json')
  record = json.loads(said.out)
  assert (record['episodes'], record['video']['length']) == (3, 9) and path.exists()
  lines = said.err.splitlines()
  assert len(lines) == 2 and all(line.startswith(told) for line in lines)


def test_an_episode_that_does_not_end_is_cut_and_a_gif_works(pong, tmp_path, capsys):
  path = tmp_path / 'pong.gif'
  arguments = (pong, '--episodes=1', f'--video={path}', '--max_video_steps=20')
  assert (
    'in 20 steps, cut here (--max_video_steps)' in evaluated_runs.evaluate(capsys, *arguments).out
  )
  frames, _ = _read(path)
  assert frames.shape[1:] == (420, 320, 3)
  assert 3 <= len(frames) <= 21  # a GIF shows equal pictures in a row once, for longer


def test_a_gif_ends_where_memory_would(catch, tmp_path, capsys, monkeypatch):
  monkeypatch.setattr(video, 'MAX_GIF_FRAMES', 4)
  output = evaluated_runs.evaluate(
    capsys, catch, '--episodes=1', f'--video={tmp_path / "catch.gif"}'
  ).out
  assert 'cut here (a .gif holds no more), 4 frames' in output


@pytest.mark.parametrize(
  'name, words',
  [
    ('a.avi', ['a.avi', '.mp4 or .gif']),
    ('episode', ['episode', '.mp4 or .gif']),
    ('taken/a.mp4', ['taken/a.mp4', 'permissions']),
    ('folder.mp4', ['folder.mp4', 'folder']),
  ],
)
def test_a_video_that_cannot_be_written_is_refused_before_any_play(
  catch, tmp_path, capsys, monkeypatch, name, words
):
  monkeypatch.setattr(evaluation, '_timesteps', None)  # any play would fail
  (tmp_path / 'taken').write_text('a file')
  (tmp_path / 'folder.mp4').mkdir()
  message = evaluated_runs.refusal(capsys, catch, f'--video={tmp_path / name}')
  for word in words:
    assert word in message


@pytest.mark.parametrize('package', ['imageio', 'imageio_ffmpeg'])
def test_a_missing_package_names_the_extra(catch, tmp_path, capsys, monkeypatch, package):
  monkeypatch.setattr(evaluation, '_timesteps', None)
  really = importlib.import_module

  def without(name, *rest):
    if name == package:
      raise ImportError(f'No module named {name!r}')
    return really(name, *rest)

  monkeypatch.setattr(video.importlib, 'import_module', without)
  message = evaluated_runs.refusal(capsys, catch, f'--video={tmp_path / "a.mp4"}')
  assert package in message and "pip install -e '.[video]'" in message


def test_an_environment_without_a_screen_is_refused_before_any_play(
  catch, tmp_path, capsys, monkeypatch
):
  monkeypatch.setattr(evaluation, '_timesteps', None)
  monkeypatch.delattr(catch_lib.Catch, 'render')
  assert 'cannot show its screen' in evaluated_runs.refusal(
    capsys, catch, f'--video={tmp_path / "a.mp4"}'
  )
  assert list(tmp_path.iterdir()) == []


@pytest.fixture(name='pygame')
def _pygame(monkeypatch):
  """Sets up SDL's dummy driver, and no waiting between pictures."""
  pygame = pytest.importorskip('pygame')
  monkeypatch.setenv('SDL_VIDEODRIVER', 'dummy')
  monkeypatch.setattr(video, '_SCREENS_PER_S', 1e6)
  return pygame


def test_episodes_are_played_in_a_window_and_counted(catch, capsys, monkeypatch, pygame):
  shown, show = [], window.Window.show
  monkeypatch.setattr(
    window.Window, 'show', lambda *arguments: shown.append(arguments[1]) or show(*arguments)
  )
  record = json.loads(
    evaluated_runs.evaluate(capsys, catch, '--watch', '--episodes=3', '--json').out
  )
  assert (record['episodes'], record['length_mean']) == (3, 9)
  assert len(shown) == 30 and len({picture.tobytes() for picture in shown}) > 10
  assert not pygame.display.get_init()


def test_an_error_of_close_costs_no_episode_that_was_watched(catch, capsys, monkeypatch, pygame):
  told = _let_close_raise(monkeypatch)
  said = evaluated_runs.evaluate(capsys, catch, '--watch', '--episodes=2', '--json')
  record = json.loads(said.out.splitlines()[-1])  # pygame may greet first
  assert record['episodes'] == 2 and told in said.err
  assert not pygame.display.get_init()


@pytest.mark.parametrize('num_pictures, episodes', [(25, 2), (5, 0)])
def test_a_window_that_is_closed_ends_in_good_order(
  catch, capsys, monkeypatch, pygame, num_pictures, episodes
):
  titles = []
  monkeypatch.setattr(window.Window, 'title', lambda _, text: titles.append(text))
  arguments = (catch, '--watch', '--episodes=50')
  with monkeypatch.context() as patch:
    patch.setattr(window.Window, 'show', _closes_after(num_pictures))
    said = evaluated_runs.evaluate(capsys, *arguments).out
  with monkeypatch.context() as patch:
    patch.setattr(window.Window, 'show', _closes_after(num_pictures))
    record = json.loads(evaluated_runs.evaluate(capsys, *arguments, '--json').out)
  assert record['episodes'] == episodes
  if episodes:
    assert said.startswith('2 greedy episodes of the checkpoint')
    assert titles[0].startswith('catch at ') and titles[0].endswith(' steps: episode 1')
    assert 'episode 3, return of the last one: ' in titles[2]
  else:
    assert said == 'The window was closed before an episode had ended\n'
    assert record['return_mean'] is record['length_mean'] is None


def _closes_after(num_pictures):
  numbers = itertools.count(1)

  def show(*_):
    if next(numbers) == num_pictures:
      raise window.Closed

  return show


def test_a_window_without_a_display_or_for_several_runs_is_refused_before_tensorflow(
  catch, capsys, monkeypatch
):
  monkeypatch.setattr(evaluate_command.processes, 'load_tensorflow', None)  # loading would fail
  assert 'name one' in evaluated_runs.refusal(capsys, catch, catch, '--watch')
  for name in ('DISPLAY', 'WAYLAND_DISPLAY', 'SDL_VIDEODRIVER'):
    monkeypatch.delenv(name, raising=False)
  assert '--video=episode.mp4' in evaluated_runs.refusal(capsys, catch, '--watch')


def test_a_checkpoint_that_is_not_whole_is_a_failure(catch, tmp_path, capsys):
  run = shutil.copytree(catch, tmp_path / 'run')
  for arrays in (run / 'checkpoints').glob('*/arrays.npz'):
    arrays.write_bytes(arrays.read_bytes()[:-100])
  assert cli.main(['evaluate', str(run)]) == 1
  assert 'corrupt' in capsys.readouterr().err


def test_a_folder_that_is_no_run_is_refused_before_the_others_are_played(
  catch, tmp_path, capsys, monkeypatch
):
  monkeypatch.setattr(evaluation, '_timesteps', None)
  assert 'absent' in evaluated_runs.refusal(capsys, catch, tmp_path / 'absent')


@pytest.mark.parametrize(
  'arguments, word',
  [
    (('--episodes=0',), 'episodes (0)'),
    (('--max_video_steps=0',), 'max_video_steps (0)'),
    (('--run_dir=runs/latest',), '--run_dir'),
  ],
)
def test_wrong_arguments(catch, capsys, arguments, word):
  assert word in evaluated_runs.refusal(capsys, catch, *arguments)


def test_no_run_is_refused(capsys):
  assert 'seed-acme evaluate runs/latest' in evaluated_runs.refusal(capsys)


_LOUD = f"""
import atexit, ctypes, os, sys
sys.path.append({str(pages.ROOT)!r})
from tests import scripted_environments

print('imported')


class Loud(scripted_environments.ScriptedEnvironment):
  def __init__(self, seed):
    super().__init__(seed)
    print('made', end='')
    ctypes.CDLL(None).printf(b'held back in C')
    atexit.register(print, 'at exit')

  def step(self, action):
    os.write(1, b'by descriptor')
    return super().step(action)

  def close(self):
    os.system('echo a child')
"""


def test_json_is_one_line_whatever_the_environment_prints(tmp_path, monkeypatch, one_json):
  (tmp_path / 'loud.py').write_text(_LOUD)
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(tmp_path)
  environment = config_lib.EnvironmentConfig('loud:Loud')
  run = evaluated_runs.train(tmp_path / 'run', 'catch_vtrace', environment, {}, mlp_sizes=(8,))
  done = subprocess.run(
    [sys.executable, '-m', cli.__name__, 'evaluate', str(run), '--json', '--episodes=2']
    + ['--trust_run_dir'],
    cwd=tmp_path,
    capture_output=True,
    text=True,
    check=True,
  )
  assert one_json(done.stdout)['episodes'] == 2
  for words in ('imported', 'made', 'held back in C', 'by descriptor', 'a child', 'at exit'):
    assert words in done.stderr


def test_progress_is_a_line_every_ten_seconds():
  now_s, stream = [100.0], io.StringIO()
  progress = evaluate_command.Progress(stream, clock=lambda: now_s[0])
  for second in (103, 109.9, 110, 115, 119.9, 121):
    now_s[0] = second
    progress(f'at {second}')
  assert stream.getvalue().splitlines() == ['at 110, 0:10 elapsed', 'at 121, 0:21 elapsed']


def test_progress_tells_of_episodes_and_steps(catch):
  told = []
  evaluation.evaluate(str(catch), num_episodes=3, progress=told.append)
  assert told[0] == f'{catch}: 0 of 3 episodes, 0 steps'
  assert told[-1] == f'{catch}: 3 of 3 episodes, 27 steps'


def test_progress_goes_to_stderr_and_not_beside_json(catch, capsys, monkeypatch):
  monkeypatch.setattr(evaluate_command, '_PROGRESS_PERIOD_S', 0.0)
  assert '5 of 5 episodes' in evaluated_runs.evaluate(capsys, catch, '--episodes=5').err
  assert 'episodes' not in evaluated_runs.evaluate(capsys, catch, '--episodes=5', '--json').err


def test_an_interrupt_ends_with_130_and_no_word(catch, capsys, monkeypatch):
  def interrupted(*_):
    raise KeyboardInterrupt

  monkeypatch.setattr(evaluation, '_play', interrupted)
  assert cli.main(['evaluate', str(catch)]) == 130
  assert capsys.readouterr() == ('', '')
