"""How a run has ended, by what its processes and its checkpoints say."""

import dataclasses

import numpy as np
import pytest

from seed_acme.configs import registry
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.system import processes
from seed_acme.storage import checkpoint
from seed_acme.storage import files
from seed_acme.storage import run_directory


@dataclasses.dataclass
class _Attempt:
  stop_signal: int | None = None
  is_stopped: bool = False
  cpu_s: dict = dataclasses.field(default_factory=dict)


@pytest.mark.parametrize(
  'attempt, code, status_updates, exit_code, status',
  [
    (_Attempt(), 0, 7, 0, 'finished'),
    (_Attempt(), 0, 9, 1, 'failed'),
    (_Attempt(15, True), 0, 7, 143, 'stopped'),
    (_Attempt(15, True), 0, 9, 1, 'stopped'),
    (_Attempt(None, True), 0, 9, 1, 'stopped'),
    (_Attempt(), 1, 9, 1, 'failed'),
  ],
)
def test_an_orderly_end_is_one_after_which_nothing_is_lost(
  tmp_path, attempt, code, status_updates, exit_code, status
):
  run = run_directory.create(tmp_path / 'run')
  counts = {'updates': 7, 'agent_steps': 70}
  checkpoint.save(run.checkpoints, 7, {'w': np.zeros(2)}, {'counts': counts}, keep=1)
  files.write_json(run.status, {'updates': status_updates, 'agent_steps': 70, 'status': 'running'})
  outcome = lifecycle._conclude(registry.load('catch_vtrace'), run, attempt, code, None, print)
  assert (outcome.exit_code, outcome.summary['status']) == (exit_code, status)
  assert outcome.summary['lost_updates'] == status_updates - 7
  if status_updates > 7 and code == 0:
    assert '2 updates and 0 steps are lost' in outcome.failure['message']
    assert processes.read_failure(run) == outcome.failure
