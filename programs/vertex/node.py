"""A node on a host of its own, started by Launchpad's entry of a container (Vertex AI).

No launcher, no front end and no shared disk: the learner keeps the run in its bucket and does
what the front end does elsewhere; the other nodes join the learner and keep nothing.
"""
from __future__ import annotations

from collections.abc import Iterator
import contextlib
import dataclasses
import os
import pathlib
import signal
import sys
import tempfile
import time

from seed_acme import config as config_lib
from seed_acme import mirror as mirror_lib
from seed_acme import plot
from seed_acme import run_directory
from seed_acme import saved_config
from seed_acme import types
from seed_acme.inference import grpc_transport
from seed_acme.inference import membership
from seed_acme.loggers import terminal
from seed_acme.programs import bucket_run
from seed_acme.programs import node_settings
from seed_acme.programs import processes
from seed_acme.programs import summary as summary_lib
from seed_acme.programs import training_run


@contextlib.contextmanager
def folder(run_dir: run_directory.RunDirectory, node: str) -> Iterator[run_directory.RunDirectory]:
  """A folder of this host for what a node writes into its run; says why the node failed."""
  with tempfile.TemporaryDirectory(prefix='seed_acme_', ignore_cleanup_errors=True) as path:
    local = dataclasses.replace(run_dir, path=pathlib.Path(path))
    for part in (local.logs, local.checkpoints):
      part.mkdir()
    try:
      yield local
    except SystemExit:
      failure = processes.read_failure(local)
      if failure is not None:
        print(f'error in {node}: {failure["message"]}', file=sys.stderr, flush=True)
      raise


@contextlib.contextmanager
def bucket(config: config_lib.ExperimentConfig,
           run: run_directory.RunDirectory) -> Iterator[None]:
  """Around the learner: fetches the run, checks that it can go on, and copies it meanwhile."""
  news = _News(run)
  mirror = mirror_lib.Mirror(run, on_round=news.show, on_failure=_end_this_process)
  with processes.reported_failures(run, 'learner/0', 'learner/0'):
    mirror.start()
  with bucket_run.closing(mirror):
    with processes.reported_failures(run, 'learner/0', 'learner/0'):
      training_run.check_resume(config, run)
      saved_config.save(config, run.config)
    try:
      yield
    finally:
      news.show()
      _summarise(config, run)


class _News:
  """What a front end would show, on the node's own output: it ends up in the cloud's log."""

  def __init__(self, run: run_directory.RunDirectory):
    self._run = run
    self._progress = terminal.Progress(sys.stdout)
    self._num_notices = 0

  def show(self) -> None:
    """Called now and then."""
    if self._run.notices.exists():
      lines = self._run.notices.read_text(encoding='utf-8').splitlines()
      for line in lines[self._num_notices:]:
        print(f'Notice: {line}', flush=True)
      self._num_notices = len(lines)
    status = training_run.read_status(self._run)
    if status:
      self._progress.update(status)


def _summarise(config: config_lib.ExperimentConfig, run: run_directory.RunDirectory) -> None:
  """summary.json and the plot; of the CPU-seconds, those of this node only are known."""
  status = training_run.read_status(run)
  how = status.get('status', training_run.FAILED)
  if run.failure.exists() or how not in (training_run.FINISHED, training_run.STOPPED):
    how = training_run.FAILED
  earlier = training_run.earlier_cpu_seconds(run)
  run_directory.write_json(run.summary, summary_lib.summarise(
      config, status, {'learner': time.process_time()}, how, earlier))
  if how == training_run.FINISHED:
    with contextlib.suppress(types.UserError):  # no episode has ended: there is no curve
      plot.plot([str(run.path)], str(run.plot))


def _end_this_process(error: Exception) -> None:
  print(f'error in learner/0: {error}', file=sys.stderr, flush=True)
  os.kill(os.getpid(), signal.SIGTERM)


def join(config: config_lib.ExperimentConfig, token: str, name: str, address: str) -> int:
  """Waits for the learner; returns how often this node was started before."""
  settings = node_settings.of(name.partition('/')[0], config)
  member = grpc_transport.GrpcMember(
      address, token, membership.hello(name, settings), config.actor.connect_timeout_s)
  try:
    return member.join()
  finally:
    member.close()
