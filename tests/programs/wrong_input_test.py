"""Wrong input gives at most four lines with the fix and exit code 2, and changes no file."""

import os
import pathlib
import signal
import socket
import sys

import psutil
import pytest

from seed_acme.programs import cli
from seed_acme.storage import run_directory

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]


@pytest.fixture(scope='module')
def folder(runs):
  """Makes a working folder with a small finished run in it, `old`."""
  folder = runs.folder()
  run = runs.train(
    '--config.total_steps=500', '--launch=single_process', run_dir='old', folder=folder
  )
  assert run.wait() == 0, run.stderr
  return folder


def _expect_refusal(run, *words, code=2):
  assert run.wait() == code, run.stdout + run.stderr
  _expect_words(run.stdout, run.stderr, words)
  assert run.nodes() == []


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
  """`refuse(arguments, words)`: runs the command line in this process, which saves a start."""
  handlers = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)}
  monkeypatch.chdir(folder)
  monkeypatch.setattr(sys, 'path', list(sys.path))

  def refuse(arguments, words):
    before = psutil.Process().children(recursive=True)
    capsys.readouterr()
    assert cli.main(list(arguments)) == 2
    _expect_words(*capsys.readouterr(), words)
    assert set(psutil.Process().children(recursive=True)) <= set(before)

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
    (['--config=memory_chain_vtrace'], ['memory_chain', '--run_dir']),
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


def test_a_folder_of_something_else(runs, folder):
  (folder / 'thesis').mkdir()
  (folder / 'thesis' / 'chapter.tex').write_text('all my work')
  _expect_refusal(runs.train(run_dir='thesis', folder=folder), 'thesis', 'chapter.tex')
  assert os.listdir(folder / 'thesis') == ['chapter.tex']


def test_without_a_whole_checkpoint_nothing_is_changed_and_the_end_is_a_failure(
  runs, folder, digest
):
  for path in (folder / 'old' / 'checkpoints').glob('*/arrays.npz'):
    path.write_bytes(path.read_bytes()[:-100])
  before = digest(folder / 'old')
  resumed = runs.start('train', '--run_dir=old', '--config.total_steps=1000', folder=folder)
  _expect_refusal(resumed, 'arrays.npz', 'corrupt', code=1)
  _expect_refusal(runs.start('evaluate', 'old', folder=folder), 'corrupt', code=1)
  assert digest(folder / 'old') == before


def test_a_run_that_is_being_trained(runs, folder, digest):
  run = run_directory.create(folder / 'busy')
  (folder / 'busy' / 'config.json').write_bytes((folder / 'old' / 'config.json').read_bytes())
  before = digest(folder / 'busy' / 'logs')
  with run_directory.lock(run):
    _expect_refusal(
      runs.start('train', '--run_dir=busy', folder=folder), 'busy', f'process {os.getpid()}'
    )
  assert digest(folder / 'busy' / 'logs') == before


def test_a_package_that_is_missing(runs, folder):
  hidden = pathlib.Path(folder) / 'hidden'
  hidden.mkdir()
  (hidden / 'experiment.py').write_text(
    'import importlib.util\n'
    'find = importlib.util.find_spec\n'
    'importlib.util.find_spec = (\n'
    '    lambda name, *rest: None if name == "gymnasium" else find(name, *rest))\n'
    'from seed_acme.configs import catch_vtrace\n'
    'def experiment():\n'
    '  return catch_vtrace.experiment()\n'
  )
  _expect_refusal(
    runs.start(
      'train',
      '--config=hidden/experiment.py',
      '--config.environment.id=gymnasium:CartPole-v1',
      folder=folder,
    ),
    'gymnasium',
    "pip install -e '.[gymnasium]'",
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
  _expect_refusal(
    runs.start('train', '--config.environment.id=catsh', folder=folder), 'catsh', 'catch'
  )
