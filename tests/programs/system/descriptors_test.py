"""A process that serves a port raises its descriptor limit, and reports when none is left."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

from seed_acme import types
from seed_acme.programs.system import descriptors

_NODE = """
import pathlib, resource, sys
from seed_acme.files import local
from seed_acme.storage import run_directory
from seed_acme.programs.system import descriptors, processes

resource.setrlimit(resource.RLIMIT_NOFILE, (32, 64))
run = run_directory.RunDirectory(pathlib.Path(sys.argv[1]))
with processes.reported_failures(run, 'learner/0', 'learner/0'):
  descriptors.prepare()
  assert resource.getrlimit(resource.RLIMIT_NOFILE) == (64, 64)
  taken = []
  try:
    while True:
      taken.append(open('/dev/null'))
  except OSError:
    pass
  assert len(taken) > 40
  local.write_json(run.status, {})
"""


def test_a_process_without_descriptors_says_so_and_may_be_started_again(tmp_path: pathlib.Path):
  node = subprocess.run([sys.executable, '-c', _NODE, str(tmp_path)], capture_output=True)
  assert node.returncode == 1, node.stderr.decode()
  failure = json.loads((tmp_path / 'failure.json').read_text())
  assert 'no file descriptor is left of the 64' in failure['message']
  assert 'status.json' in failure['message']
  assert not failure['is_user_error']


@pytest.mark.parametrize(
  'error', [OSError(2, 'No such file'), types.UserError('no such game'), RuntimeError('NaN')]
)
def test_other_errors_are_not_explained_by_descriptors(error):
  assert not descriptors.explain(error)


def test_a_library_that_ran_out_of_descriptors_is_understood():
  error = RuntimeError('open /runs/events: Too many open files')
  assert '/runs/events: Too many open files' in descriptors.explain(error)
