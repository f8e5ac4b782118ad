"""One start of a launcher, which is a shell here."""

import subprocess
import time

import pytest

from seed_acme.files import local
from seed_acme.programs.front_end import attempt as attempt_lib
from seed_acme.programs.front_end import launcher_process
from seed_acme.programs.front_end import launches
from seed_acme.programs.system import processes
from seed_acme.storage import run_directory


class _Shown:
  """A progress that keeps what it was shown."""

  def __init__(self):
    self.statuses = []

  def update(self, status):
    self.statuses.append(dict(status))


@pytest.mark.parametrize(
  'writes, code, updates', [(True, 0, [None, 5]), (False, processes.FAILURE_EXIT, [None])]
)
def test_a_killed_launcher_is_judged_by_the_status_of_its_own_start(
  tmp_path, monkeypatch, writes, code, updates
):
  """The clock was set back between the two starts, so the later status has the earlier time."""
  run = run_directory.create(tmp_path / 'run')
  local.write_json(run.status, {'status': 'finished', 'time_s': time.time(), 'updates': 3})
  own = {'status': 'finished', 'time_s': time.time() - 3600, 'updates': 5}
  local.write_json(tmp_path / 'own.json', own)
  write = f'mv {tmp_path}/own.json {run.status}; ' if writes else ''

  def start(*_):
    return subprocess.Popen(['sh', '-c', f'{write}kill -9 $$'], start_new_session=True)

  monkeypatch.setattr(launcher_process, 'start', start)
  shown = _Shown()
  attempt = attempt_lib.Attempt(run, (), 0.0, launches.Life(progress=shown), 0.0)
  assert attempt.run() == code
  assert run.failure.exists() == bool(code)
  found = [status.get('updates') for status in shown.statuses]
  assert list(dict.fromkeys(found)) == updates
