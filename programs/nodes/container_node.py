"""A node on a host of its own, started by Launchpad's entry point of a container (Vertex AI).

There is no launcher, no front end and no shared disk. The learner keeps the run in its bucket and
does the front end's work; the other nodes join the learner and keep nothing. A node exits with 0 if
the run is over, and with 143 if it was stopped earlier, because Vertex AI takes 0 for success.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import os
import pathlib
import signal
import sys
import tempfile
import threading
from typing import Any, TextIO, TypeVar

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.loggers import terminal
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.front_end import bucket_folder
from seed_acme.programs.front_end import cpu_record
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.front_end import stall
from seed_acme.programs.front_end import summary as summary_lib
from seed_acme.programs.nodes import actor_supervisor
from seed_acme.programs.nodes import end_notice
from seed_acme.programs.nodes import lives
from seed_acme.programs.nodes import new_start
from seed_acme.programs.nodes import node as node_lib
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.storage import bucket_copy
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from seed_acme.transport import grpc_client
from seed_acme.transport import joining
from seed_acme.transport import wire

_Sections = TypeVar('_Sections', bound=sections_lib.NodeSections)
_LEARNER = 'learner/0'
_LONGEST_GAP_S = 2 * bucket_copy.PERIOD_S  # between two updates of the progress
_STOPPED_EXIT = 128 + signal.SIGTERM


class InContainer(lives.OnOwnHost):
  """A node's life in a container. Only Vertex AI starts or ends it, and there is no fence."""

  def __init__(self, stop: threading.Event):
    super().__init__(stop, admitted=None)

  def live(self, node: node_lib.Node[Any]) -> None:
    """See `node.Life`. There is no terminal that could hang up."""
    getattr(self, node.sections.kind)(node)

  def learner(self, node: node_lib.Node[sections_lib.LearnerSections]) -> None:
    """Trains. The first learner host has the run in its bucket; the others keep nothing."""
    train = _train_beside_chief if node.sections.place.index else _train_with_run
    again = new_start.after_loss_of_another(self.stop)
    with again if node.links.exchange else contextlib.nullcontext():
      _run(node, train)

  def replay(self, node: node_lib.Node[sections_lib.ReplaySections]) -> None:
    """Serves replay until it is stopped."""
    _run(node, _serve_replay)

  def actor(self, node: node_lib.Node[sections_lib.ActorSections]) -> None:
    """Acts until the run is over."""
    _run(node, _act)

  def end_program(self) -> None:
    """Does nothing: the learner tells the other nodes itself and ends with 0, which makes the job a
    success for Vertex AI; Launchpad's stop would cancel the job."""

  @contextlib.contextmanager
  def ended_at_once(self, links: node_lib.Links[str]) -> Iterator[None]:
    """Yields unchanged: the node may end only after the run is copied to its bucket."""
    del links
    yield


def _train_beside_chief(node: node_lib.Node[sections_lib.LearnerSections]) -> bool:
  with _failures(node.folder, node.name):
    with _stopped_at_once(node.life.stop):
      processes.load_tensorflow()
      from seed_acme.programs.nodes import learner_node
    return learner_node.run(node)


def _train_with_run(node: node_lib.Node[sections_lib.LearnerSections]) -> bool:
  run, sections, stop = node.folder, node.sections, node.life.stop
  config = saved_config.from_json(sections.record)
  with _also_written_to(run.logs / _LEARNER), _mirrored(run, sections.learner, stop) as news:
    try:
      with _stopped_at_once(stop):
        lifecycle.check_resume(config, run)
        saved_config.save(config, run.config)
        processes.load_tensorflow()
        from seed_acme.programs.nodes import learner_node
    except lifecycle.RunFinished as finished:  # it was restarted all the same
      print(f'The run is over: {finished}', flush=True)
      summary_lib.complete(config, run, finished.last, _show)
      end_notice.serve(sections, node.links.token, node.links.port, stop)
      return True
    how = summary_lib.FAILED
    try:
      is_over = learner_node.run(node)
      how = summary_lib.FINISHED if is_over else summary_lib.STOPPED
      return is_over
    finally:
      with contextlib.suppress(OSError):  # nobody reads the log any more
        news.show()
      summary = summary_lib.summarise(config, run, news.cpu_s, how)
      summary_lib.write(run, summary, _show)
      lost = summary_lib.lost_text(summary)
      if lost:
        _show(f'Lost: {lost}')
      # A stop that could not save is a failure; what an earlier start has lost is not.
      if lost and how != summary_lib.FAILED and news.trains:
        raise types.TrainingFailed(lost)


def _serve_replay(node: node_lib.Node[sections_lib.ReplaySections]) -> bool:
  with _failures(node.folder, node.name):
    with _stopped_at_once(node.life.stop):
      processes.load_tensorflow()
      from seed_acme.programs.nodes import replay_service
    replay_service.serve(node)
  return False


def _act(node: node_lib.Node[sections_lib.ActorSections]) -> bool:
  with _failures(node.folder, node.name):
    with _stopped_at_once(node.life.stop):
      links = dataclasses.replace(node.links, start=_join(node))
    return actor_supervisor.Supervisor(dataclasses.replace(node, links=links)).run()


def _run(node: node_lib.Node[_Sections], body: Callable[[node_lib.Node[_Sections]], bool]) -> None:
  """Calls `body` with a temporary run folder of this host, for the files that a node writes.

  `body` returns whether the run is over. If it is not, the node was stopped, and its process exits
  with the code for that.
  """
  try:
    with tempfile.TemporaryDirectory(prefix='seed_acme_', ignore_cleanup_errors=True) as path:
      run = dataclasses.replace(node.folder, path=pathlib.Path(path))
      for part in (run.logs, run.checkpoints):
        part.mkdir()
      is_over = body(dataclasses.replace(node, folder=run))
  finally:
    # After SIGTERM, Launchpad has set an alarm that would kill the interpreter while it exits.
    signals.ignore(signal.SIGTERM, signal.SIGALRM)
  if not is_over:
    raise SystemExit(_STOPPED_EXIT)


@contextlib.contextmanager
def _stopped_at_once(stop: threading.Event) -> Iterator[None]:
  """Makes SIGTERM end this node wherever it waits, because it has nothing to save yet."""

  def end() -> None:
    signals.set_event(stop)
    signals.leave(_STOPPED_EXIT)

  with signals.replaced(signal.SIGTERM, end):
    if stop.is_set():
      raise SystemExit(_STOPPED_EXIT)
    yield


@contextlib.contextmanager
def _failures(run: run_directory.RunDirectory, node: str) -> Iterator[None]:
  """Acts as `processes.reported_failures`, and also prints why the node failed."""
  try:
    with processes.reported_failures(run, node, node):
      yield
  except SystemExit:
    failure = summary_lib.known_failure(run)
    if failure is not None:
      print(f'error in {node}: {failure["message"]}', file=sys.stderr, flush=True)
    raise


@contextlib.contextmanager
def _mirrored(
  run: run_directory.RunDirectory, learner: config_lib.LearnerConfig, stop: threading.Event
) -> Iterator[_News]:
  """Fetches the run, copies it periodically and at the end, and also after a failure."""
  news = _News(run, learner)
  mirror = bucket_copy.Mirror(run, on_round=news.show, on_failure=_end_this_process)
  with _failures(run, _LEARNER), _stopped_at_once(stop):
    mirror.start()
  try:
    with bucket_folder.closing(mirror), _failures(run, _LEARNER):
      news.begin()
      yield news
  except (types.UserError, types.Failure) as error:  # all other exceptions are SystemExit by now
    print(f'error in {_LEARNER}: {error}', file=sys.stderr, flush=True)
    raise SystemExit(
      processes.USER_ERROR_EXIT if isinstance(error, types.UserError) else processes.FAILURE_EXIT
    ) from error


def _show(text: str) -> None:
  print(text, flush=True)


class _News:
  """The messages of a front end, printed to the node's output, which is the cloud's log.

  It also keeps the record of CPU-seconds. Only those of this node are known.
  """

  def __init__(self, run: run_directory.RunDirectory, learner: config_lib.LearnerConfig):
    self._run = run
    self._progress = terminal.Progress(sys.stdout)
    self._notices = summary_lib.Notices(run)
    self._earlier_s: float | None = None
    self._cpu: cpu_record.CpuRecord | None = None
    self._stall = stall.Stall(stall.limit_s(learner), _LONGEST_GAP_S)

  @property
  def cpu_s(self) -> dict[str, float]:
    """The CPU-seconds of all starts until the last call of `show`."""
    assert self._cpu is not None
    return self._cpu.seconds

  @property
  def trains(self) -> bool:
    """Whether this start has written a status."""
    return summary_lib.status_time_s(self._run) != self._earlier_s

  def begin(self) -> None:
    """Notes what is of an earlier start. Call it once the run is fetched."""
    self._earlier_s = summary_lib.status_time_s(self._run)
    self._cpu = cpu_record.CpuRecord(self._run)

  def show(self) -> None:
    """Prints new notices and the progress; called periodically."""
    if self._cpu is not None:
      self._cpu.update({'learner': new_start.cpu_s()})
    for line in self._notices.new():
      print(f'Notice: {line}', flush=True)
    status = summary_lib.read_progress(self._run, self._earlier_s)
    stalled = self._stall.look(status)
    self._progress.update({**status, 'stalled': stalled} if stalled else status)


@contextlib.contextmanager
def _also_written_to(path: pathlib.Path) -> Iterator[None]:
  """Copies this process's prints to a file, too.

  Output of C++ libraries is left out, because the pipe that would catch it could lose the last
  lines before a crash.
  """
  path.parent.mkdir(parents=True, exist_ok=True)
  streams = sys.stdout, sys.stderr
  with open(path, 'a', encoding='utf-8', buffering=1) as file:
    sys.stdout, sys.stderr = _Tee(sys.stdout, file), _Tee(sys.stderr, file)
    try:
      yield
    finally:
      sys.stdout, sys.stderr = streams


class _Tee:
  """A text stream that also writes to a file while that is open."""

  def __init__(self, stream: TextIO, file: TextIO):
    self._stream = stream
    self._file = file

  def write(self, text: str) -> int:
    if not self._file.closed:
      self._file.write(text)
    return self._stream.write(text)

  def __getattr__(self, name: str) -> Any:
    return getattr(self._stream, name)


def _end_this_process(error: Exception) -> None:
  with contextlib.suppress(OSError):  # nobody reads the log any more
    print(f'error in {_LEARNER}: {error}', file=sys.stderr, flush=True)
  os.kill(os.getpid(), signal.SIGTERM)


def _join(node: node_lib.Node[sections_lib.ActorSections]) -> wire.Start:
  """Waits for the learner; returns the number of this start of the actor."""
  sections, links = node.sections, node.links
  member = grpc_client.GrpcMember(
    links.address,
    links.token,
    joining.hello(node.name, sections.shared),
    sections.actor.connect_timeout_s,
  )
  try:
    return member.join()
  finally:
    member.close()
