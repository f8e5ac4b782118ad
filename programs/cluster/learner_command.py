"""`seed-acme node learner`: the learner's node, which has the run folder and a front end."""

from __future__ import annotations

import json
import pathlib
import shlex
import sys
import threading
from typing import NamedTuple

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.cluster import host as cluster_host
from seed_acme.programs.cluster import membership
from seed_acme.programs.cluster import progress as cluster_progress
from seed_acme.programs.front_end import bucket_folder
from seed_acme.programs.front_end import launches
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.front_end import summary as summary_lib
from seed_acme.programs.front_end import train_command
from seed_acme.programs.nodes import end_notice
from seed_acme.programs.system import processes
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.storage import run_locks
from seed_acme.transport import patience


class Options(NamedTuple):
  """The options of `node` that the learner needs.

  learner_index: which learner host this is. run_dir: of the first learner host, the chief.
  saves_replay: whether the configuration as given saves replay memories, before the cluster file
    changes it.
  """

  config: config_lib.ExperimentConfig
  cluster: cluster_file.Cluster
  learner_index: int
  run_dir: str
  max_restarts: int
  json: bool
  saves_replay: bool


def run(options: Options) -> int:
  """Runs the learner until the run is over or stopped; returns the exit code."""
  config, cluster = options.config, options.cluster
  cluster_host.check_listens(cluster, options.learner_index)
  if options.learner_index:
    return _run_beside_chief(options)
  path = options.run_dir or str(
    pathlib.Path(run_directory.ROOT) / config.name / pathlib.Path(cluster.path).stem
  )
  with bucket_folder.opened(path) as run:
    assert run is not None
    try:
      config, folder = lifecycle.prepare(config, str(run.path), run.bucket)
    except lifecycle.RunFinished as error:
      return _end_again(run, options, error)
    return _run_in(folder, options._replace(config=config))


def _run_beside_chief(options: Options) -> int:
  """Runs a learner host that keeps nothing, because the chief has the run folder."""
  name, cluster = f'learner/{options.learner_index}', options.cluster
  own = cluster.learners[options.learner_index]
  membership.say(name, f'at {own}, beside the chief at {cluster.learner}')
  with membership.local_folder() as folder:
    supervision = launches.Supervision(show=lambda text: membership.say(name, text))
    outcome = _learn(folder, options, supervision)
    if outcome.failure is not None:
      membership.say('error', outcome.failure['message'])
    elif outcome.exit_code == 0:
      membership.say(name, 'the run is over')
  return _exit_code(outcome)


def _end_again(
  run: run_directory.RunDirectory, options: Options, reason: lifecycle.RunFinished
) -> int:
  """Ends a run that was already over.

  This happens if the learner was lost between its last checkpoint and its end, and a scheduler has
  restarted it. Writes the summary and tells the actors that the run is over.
  """
  config, cluster = options.config, options.cluster
  with run_locks.trains(run):
    summary = summary_lib.complete(config, run, reason.last, _show)
    if not options.json:
      print(
        f'Over: {reason}\nTelling the actors at {cluster.learner}, for up to '
        f'{patience.ABSENCE_S:g} s',
        flush=True,
      )
    [sections, *_] = sections_lib.split(config).learners
    end_notice.serve(sections, cluster.token, config.transport.port, threading.Event())
  print(json.dumps(summary) if options.json else _summary_text(summary, run), flush=True)
  return 0


def _run_in(folder: run_directory.RunDirectory, options: Options) -> int:
  config, cluster, progress = options.config, options.cluster, None
  if not options.json:
    print(
      f'{"Resuming" if folder.holds_run() else "Run"}: {train_command.shown(folder)}\n'
      f'Learner for {len(layout_lib.Layout.of(config).actors)} actors at {cluster.learner}, '
      f'listening on {cluster.listen}',
      flush=True,
    )
    progress = cluster_progress.ClusterProgress()
  if cluster.replay and options.saves_replay:
    _show(
      'Notice: checkpoints hold weights and counters only: the replay memory stays on '
      f'{cluster.replay}'
    )
  supervision = launches.Supervision(show=train_command.above(progress), progress=progress)
  outcome = _learn(folder, options, supervision)
  if progress is not None:
    progress.finish()
  if outcome.failure is not None or outcome.exit_code in (
    processes.FAILURE_EXIT,
    processes.USER_ERROR_EXIT,
  ):
    _show(summary_lib.failure_text(outcome.failure, folder))
  if outcome.summary:  # something was begun
    print(
      json.dumps(outcome.summary) if options.json else _summary_text(outcome.summary, folder),
      flush=True,
    )
  return _exit_code(outcome)


def _learn(
  folder: run_directory.RunDirectory, options: Options, supervision: launches.Supervision
) -> launches.Outcome:
  config, cluster = options.config, options.cluster
  # If one host fails, all end. A host that restarts at once may meet a host that is still shutting
  # down, so each restart of one host may cost every other host a start.
  meetings = options.max_restarts * len(cluster.learners)
  supervision = supervision._replace(max_restarts=options.max_restarts, max_meetings=meetings)
  launch = launches.load(launches.HOSTS, cluster.path, str(options.learner_index))
  return launch.start(launches.Run(config, folder), layout_lib.Layout.of(config), supervision)


def _exit_code(outcome: launches.Outcome) -> int:
  """Returns the exit code, which is a special one if another node has failed.

  A scheduler that limits the restarts of a node need then not count this one.
  """
  if outcome.exit_code == processes.FAILURE_EXIT and processes.is_of_another(outcome.failure):
    return processes.OTHER_NODE_EXIT
  return outcome.exit_code


def _summary_text(summary: dict, folder: run_directory.RunDirectory) -> str:
  text = f'{summary_lib.totals_text(summary)}\n'
  if lost := summary_lib.lost_text(summary):
    text += f'Lost: {lost}\n'
  is_finished = summary['status'] == lifecycle.FINISHED
  is_random = not summary['saved_updates']
  if checkpoint.newest(folder.checkpoints) is None or is_finished and is_random:
    return text.rstrip()  # nothing to evaluate or to resume
  if is_finished:
    return f'{text}Evaluate: seed-acme evaluate {shlex.quote(train_command.shown(folder))}'
  return f'{text}Resume: the same command again; the actors wait for it'


def _show(text: str) -> None:
  print(text, file=sys.stderr, flush=True)
