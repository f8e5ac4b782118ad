"""A learner host that replaces its process, and one that must not."""

import json
import subprocess
import sys

import pytest

_HOST = """
import json, os, pathlib, signal, socket, sys, threading
from seed_acme import types
from seed_acme.programs.nodes import new_start

starts = pathlib.Path('starts')
known = starts.read_text().splitlines() if starts.exists() else []
ports = {os.stat(f'/proc/self/fd/{fd}').st_mode & 0o170000 == 0o140000
         for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{fd}')}
is_ignored = signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
found = {'arguments': sys.argv[1:], 'has_port': any(ports), 'is_ignored': is_ignored,
         'alarm_s': signal.alarm(0)}
starts.write_text('\\n'.join([*known, json.dumps(found)]))
kept = socket.create_server(('localhost', 0))
kept.set_inheritable(True)
stop = threading.Event()
if sys.argv[1] == 'stopped':
  stop.set()
cause = types.Failure('wrong') if sys.argv[1] == 'failure' else types.OtherNodeFailed('it died')
with new_start.after_loss_of_another(stop):
  signal.signal(signal.SIGTERM, signal.SIG_IGN)
  signal.alarm(100)
  if known:
    raise SystemExit(7)
  raise SystemExit(1) from cause
"""


_RECORDING_HOST = """
import json, pathlib, threading, time
from seed_acme import config, types
from seed_acme.programs.nodes import container_node, new_start
from seed_acme.storage import run_directory

starts = pathlib.Path('starts')
known = starts.read_text().splitlines() if starts.exists() else []
run = run_directory.create('run')
with new_start.after_loss_of_another(threading.Event()):
  news = container_node._News(run, config.LearnerConfig())
  news.begin()
  news.show()
  found = {'recorded_s': news.cpu_s['learner'], 'used_s': time.process_time()}
  starts.write_text('\\n'.join([*known, json.dumps(found)]))
  if len(known) == 2:
    raise SystemExit(7)
  raise SystemExit(1) from types.OtherNodeFailed('it died')
"""


def _run(folder, how, host=_HOST):
  """Returns the exit code, and what each start has recorded."""
  (folder / 'host.py').write_text(host)
  done = subprocess.run(
    [sys.executable, 'host.py', how, '--more=1'],
    cwd=folder,
    stdin=subprocess.DEVNULL,
    capture_output=True,
    text=True,
    timeout=120,
    check=False,
  )
  assert not done.stderr
  starts = [json.loads(line) for line in (folder / 'starts').read_text().splitlines()]
  return done.returncode, starts


def test_a_host_left_alone_becomes_a_new_process_with_nothing_of_the_old_one(tmp_path):
  code, starts = _run(tmp_path, 'left')
  assert code == 7
  fresh = {'arguments': ['left', '--more=1'], 'has_port': False, 'is_ignored': False, 'alarm_s': 0}
  assert starts == [fresh, fresh]


@pytest.mark.parametrize('how', ['failure', 'stopped'])
def test_a_host_that_fails_itself_or_is_stopped_ends(tmp_path, how):
  code, starts = _run(tmp_path, how)
  assert code == 1 and len(starts) == 1


def test_the_cpu_seconds_of_a_process_that_was_replaced_are_counted_once(tmp_path):
  code, starts = _run(tmp_path, 'left', _RECORDING_HOST)
  assert code == 7 and len(starts) == 3
  for earlier, start in zip(starts, starts[1:]):
    assert earlier['recorded_s'] < start['recorded_s'] <= start['used_s']
