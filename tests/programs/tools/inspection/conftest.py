"""Fixtures of the tests of `inspect`."""

import json
import os

import pytest
import reverb

from seed_acme.files import local
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.tools.inspection import command as inspect_command
from seed_acme.replay import tables as tables_lib
from seed_acme.storage import run_directory
from tests.programs.tools.inspection import queues


@pytest.fixture(scope='module')
def ours():
  """Serves a full queue of 4, and a mirror of 3 items."""
  served = queues.serve(
    queues.queue('unrolls'),
    reverb.Table(
      tables_lib.MIRROR,
      queues.UNIFORM(),
      queues.FIFO(),
      16,
      reverb.rate_limiters.MinSize(1),
      signature=queues.SIGNATURE,
    ),
  )
  queues.insert(served.address, 'unrolls', 4)
  queues.insert(served.address, tables_lib.MIRROR, 3)
  yield served
  served.server.stop()


@pytest.fixture
def foreign():
  """Serves two queues with two items each, and no mirror."""
  served = queues.serve(queues.queue('a'), queues.queue('b'))
  for table in ('a', 'b'):
    queues.insert(served.address, table, 2)
  yield served
  served.server.stop()


@pytest.fixture
def inspect(capsys, monkeypatch, tmp_path):
  """`inspect(**arguments)` -> its output, from this process and an empty folder."""
  monkeypatch.chdir(tmp_path)
  before = dict(os.environ)

  def run(**arguments):
    given = inspect_command.InspectArguments(**{'interval': 0.1, **arguments})
    found = inspect_command.inspect(given)
    if isinstance(found, command_lib.Answer):  # for sampled items
      assert found.exit_code == 0
      return json.dumps(found.record) if given.json else found.text
    assert found == 0
    return capsys.readouterr().out

  yield run
  os.environ.clear()
  os.environ.update(before)


@pytest.fixture
def run_folder(tmp_path):
  run = run_directory.create(tmp_path / 'run')
  local.write_json(run.config, {})
  return run
