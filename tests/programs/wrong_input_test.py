"""Wrong input gives at most four lines with the fix and exit code 2, and changes no file."""

import dataclasses
import importlib.util
import os
import shutil
import signal
import socket
import sys

import numpy as np
import psutil
import pytest

from seed_acme.configs import registry
from seed_acme.programs import cli
from seed_acme.progress import counting
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import run_directory
from seed_acme.storage import run_locks
from seed_acme.storage import saved_config

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]


@pytest.fixture(scope='module')
def folder(runs):
  """Makes a working folder with what a small finished run leaves in it, `old`."""
  folder = runs.folder()
  run = run_directory.create(folder / 'old')
  config = dataclasses.replace(registry.load('catch_vtrace'), total_steps=500)
  saved_config.save(config, run.config)
  counts = counting.Counts(
    agent_steps=512, frames=512, updates=7, episodes=50, trained_steps=500, wall_s=3.0
  )
  meta = {'counts': counts._asdict(), 'resumptions': 0}
  checkpoint_writer.save(run.checkpoints, 7, {'w': np.zeros(200)}, meta, keep=3)
  return folder


def _expect_words(stdout, stderr, words):
  # A trial that takes longer than 3 s on a busy machine prints progress.
  lines = [line for line in stderr.splitlines() if not line.startswith('Trying environment ')]
  assert 1 <= len(lines) <= 4, stderr
  assert lines[0].startswith('error: ')
  assert 'Traceback' not in stderr + stdout
  for word in words:
    assert word in stderr, stderr


@pytest.fixture(name='refuse')
def _refuse(folder, monkeypatch, capsys):
  """`refuse(arguments, words)`: runs the command line in this process, which saves a start, and
  returns its standard output."""
  handlers = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)}
  monkeypatch.chdir(folder)
  monkeypatch.setattr(sys, 'path', list(sys.path))

  def refuse(arguments, words, code=2):
    before = psutil.Process().children(recursive=True)
    capsys.readouterr()
    assert cli.main(list(arguments)) == code
    said = capsys.readouterr()
    _expect_words(*said, words)
    assert set(psutil.Process().children(recursive=True)) <= set(before)
    return said.out

  yield refuse
  for number, handler in handlers.items():
    signal.signal(number, handler)


def _port_in_use(request):
  holder = socket.socket()
  request.addfinalizer(holder.close)
  holder.bind(('127.0.0.1', 0))
  holder.listen()
  return holder.getsockname()[1]


@pytest.mark.parametrize(
  'arguments, words',
  [
    (['--config=catch_vtrac'], ['catch_vtrac', 'catch_vtrace']),
    (['--config=missing.py'], ['missing.py', 'does not exist']),
    (['--config.num_actor=3'], ['num_actor', '--config.num_actors']),
    (['--config.num_actors=three'], ['num_actors', 'three']),
    (['--config.num_actors=0'], ['num_actors', '>= 1']),
    (['--config.learner.training_devices=tpu:0'], ['tpu:0', 'training_devices', 'gpu:0']),
    (['--config.learner.inference_devices=cpu:0,cpu:1,cpu:2'], ['inference_devices', 'num_actors']),
    (['--config.environment.id=catsh'], ['catsh', 'catch']),
    (['--config.environment.id=CartPole-v9'], ['CartPole-v9']),
    (['--config.environment.id=nowhere:make'], ['nowhere']),
    (['--config.environment.settings', 'row', '10'], ['row', 'rows']),
    (['--config.transport.kind=http'], ['http', 'grpc']),
    (['--config.transport.host=203.0.113.7'], ['203.0.113.7', 'transport.host']),
    (['--config.transport.port=99999'], ['99999', 'transport.port']),
    (['--config.initial_checkpoint=nothing'], ['nothing', 'no checkpoint']),
    (['--launch=local'], ['local_mp']),
    (['--run_dir=/proc/run'], ['/proc/run']),
    ([f'--run_dir={256 * "x"}'], ['the path ', '... (', 'is too long', '255 bytes']),
    ([f'--run_dir=runs/{86 * "日"}'], ['is too long', '255 bytes']),
    ([f'--config={256 * "x"}.py'], ['is too long']),
    ([f'--config.initial_checkpoint={256 * "x"}'], ['is too long']),
    (['--run_dir=old/config.json'], ['old/config.json']),
  ],
)
def test_wrong_arguments(refuse, folder, digest, arguments, words):
  before = digest(folder / 'old')
  refuse(['train', *arguments], words)
  assert digest(folder / 'old') == before
  assert not (folder / 'runs').exists()


@pytest.mark.parametrize(
  'arguments, words',
  [
    (['--config=memory_chain_vtrace'], ['memory_chain', '--config.initial_checkpoint=RUN']),
    (['--config.seed=2'], ['seed: 1 -> 2']),
    (['--config.total_steps=-5'], ['total_steps', '-5']),
    (['--config.unknown=1'], ['unknown']),
  ],
)
def test_a_run_that_cannot_be_resumed_so(refuse, folder, digest, arguments, words):
  before = digest(folder / 'old')
  refuse(['train', '--run_dir=old', *arguments], words)
  assert digest(folder / 'old') == before


@pytest.mark.parametrize('part', ['transport', 'replay'])
def test_a_port_in_use(refuse, folder, digest, request, part):
  before = digest(folder / 'old')
  port = _port_in_use(request)
  refuse(
    ['train', '--run_dir=old', '--config.total_steps=1000', f'--config.{part}.port={port}'],
    [str(port), f'{part}.port'],
  )
  assert digest(folder / 'old') == before


def test_a_folder_of_something_else(refuse, folder):
  (folder / 'thesis').mkdir()
  (folder / 'thesis' / 'chapter.tex').write_text('all my work')
  refuse(['train', '--run_dir=thesis'], ['thesis', 'chapter.tex'])
  assert os.listdir(folder / 'thesis') == ['chapter.tex']


def test_without_a_whole_checkpoint_nothing_is_changed_and_the_end_is_a_failure(
  refuse, folder, digest
):
  shutil.copytree(folder / 'old', folder / 'cut')
  for path in (folder / 'cut' / 'checkpoints').glob('*/arrays.npz'):
    path.write_bytes(path.read_bytes()[:-100])
  before = digest(folder / 'cut')
  refuse(['train', '--run_dir=cut', '--config.total_steps=1000'], ['arrays.npz', 'corrupt'], code=1)
  assert digest(folder / 'cut') == before


def test_a_run_that_is_being_trained(refuse, folder, digest):
  run = run_directory.create(folder / 'busy')
  (folder / 'busy' / 'config.json').write_bytes((folder / 'old' / 'config.json').read_bytes())
  with run_locks.trains(run):
    before = digest(folder / 'busy')
    said = refuse(['train', '--run_dir=busy'], ['busy', f'process {os.getpid()}'])
    assert digest(folder / 'busy') == before
  assert said == ''


def test_a_package_that_is_missing(refuse, monkeypatch):
  find = importlib.util.find_spec
  monkeypatch.setattr(
    importlib.util,
    'find_spec',
    lambda name, *rest: None if name == 'gymnasium' else find(name, *rest),
  )
  refuse(
    ['train', '--config.environment.id=gymnasium:CartPole-v1'],
    ['gymnasium', "pip install -e '.[gymnasium]'"],
  )


@pytest.mark.parametrize(
  'arguments, words',
  [
    (['evaluate', 'nothing'], ['nothing', 'runs/latest']),
    (['evaluate', 'old', '--episodes=0'], ['episodes', '>= 1']),
    (['evaluate'], ['runs/latest']),
    (['evaluate', 256 * 'x'], ['is too long']),
    (['plot', 256 * 'x'], ['is too long']),
    (['plot'], ['runs/latest']),
    (['plot', 'nothing'], ['nothing']),
    (['trane'], ['trane', 'train']),
  ],
)
def test_wrong_arguments_of_the_other_commands(refuse, arguments, words):
  refuse(arguments, words)


def test_a_command_ends_so_too(runs, folder):
  """Runs in a process of its own, to include the interpreter's output at exit."""
  run = runs.start('train', '--config.environment.id=catsh', folder=folder)
  assert run.wait() == 2, run.stdout + run.stderr
  _expect_words(run.stdout, run.stderr, ['catsh', 'catch'])
  assert run.nodes() == []
