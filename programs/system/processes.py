"""Functions for every process of a run: its kind of node, its end with its parent, its failures.

Imports neither Launchpad nor TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os
import pathlib
import shlex
import signal
import traceback
from typing import Any

from seed_acme import types
from seed_acme.files import disk
from seed_acme.files import local
from seed_acme.libraries import matplotlib_loading
from seed_acme.libraries import parent_process
from seed_acme.libraries import tensorflow_loading
from seed_acme.programs.system import descriptors
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory

NODE_VARIABLE = 'SEED_ACME_NODE'  # kind of node, for the account of CPU-seconds
SAVING_VARIABLE = 'SEED_ACME_SAVING_S'  # whole seconds that saving the replay memory may take
_PARENT_VARIABLE = 'SEED_ACME_PARENT'  # pid of the process that this one must not outlive

_HAS_BEGUN = 'has_begun'  # in failure.json: see `types.OtherNodeFailed`
_OF_ANOTHER = 'is_of_another'  # in failure.json: the cause is another node's failure
LAUNCHER = 'launcher'  # node name and log file of the process that starts the others
# Nodes that do without setuptools; workers keep it, because their environments may need it.
_WITHOUT_SETUPTOOLS = (LAUNCHER, 'learner', 'replay', 'actor_supervisor')
USER_ERROR_EXIT = 2
FAILURE_EXIT = 1
OTHER_NODE_EXIT = 3  # only for separately started nodes


def environment(node: str, parent_pid: int) -> dict[str, str]:
  """Returns the environment variables with which a node of this kind is started."""
  return {
    NODE_VARIABLE: node,
    _PARENT_VARIABLE: str(parent_pid),
    **tensorflow_loading.variables(),
    'GRPC_VERBOSITY': os.environ.get('GRPC_VERBOSITY', 'ERROR'),
    'GRPC_ENABLE_FORK_SUPPORT': '0',
    # Launchpad and TensorFlow import distutils. setuptools would replace Python's by its own, which
    # costs half a CPU-second in each process.
    'SETUPTOOLS_USE_DISTUTILS': 'stdlib' if node in _WITHOUT_SETUPTOOLS else 'local',
    'PYTHONUNBUFFERED': '1',
    # For the log, independently of the terminal, because a path may have any character.
    'PYTHONIOENCODING': 'utf-8:backslashreplace',
    **matplotlib_loading.BACKEND,
  }


def environment_elsewhere(node: str, saving_s: int) -> dict[str, str]:
  """Returns `environment` for a node on a host of its own, which has no parent of this run."""
  variables = environment(node, 0)
  del variables[_PARENT_VARIABLE]
  return {**variables, SAVING_VARIABLE: str(saving_s)}


def saving_seconds() -> int:
  """Returns the extra seconds that this run's nodes may take to end."""
  return int(os.environ.get(SAVING_VARIABLE, '0'))


def set_tensorflow_defaults() -> None:
  """Sets the defaults in a process not started with `environment`, before TensorFlow loads."""
  for name, value in environment('', 0).items():
    if name.startswith(('TF', 'GRPC_')):
      os.environ.setdefault(name, value)


def load_tensorflow(owns_process: bool = True) -> None:
  """Sets the defaults and imports TensorFlow, as `tensorflow_loading.load` does."""
  set_tensorflow_defaults()
  tensorflow_loading.load(owns_process)


def end_with_parent() -> None:
  """Makes the kernel kill this process when its parent ends in any way.

  Call it on the main thread before heavy imports. Does nothing if no parent is set.
  """
  parent = os.environ.get(_PARENT_VARIABLE)
  if not parent:
    return
  parent_process.die_with_it()
  if os.getppid() != int(parent):  # the parent ended before the call above
    os._exit(FAILURE_EXIT)


@contextlib.contextmanager
def reported_failures(run: run_directory.RunDirectory, node: str, log: str) -> Iterator[None]:
  """Writes the first failure of a run to failure.json, and raises SystemExit instead.

  node: `learner/0`, as the user sees it; log: its file within the run's logs. The traceback goes to
    the node's own output.
  """
  try:
    yield
  except Exception as error:  # reported, and the process ends
    descriptors.release_reserve()
    shortage = descriptors.explain(error)
    record = failure_record(run, node, error, log)
    if shortage:
      record |= {'message': shortage, 'is_user_error': False}
    if isinstance(error, types.OtherNodeFailed):
      record |= {_OF_ANOTHER: True, _HAS_BEGUN: error.has_begun}
    _write_failure(run, record)
    if not isinstance(error, (types.UserError, types.Failure)) and not disk.is_full(error):
      traceback.print_exc()
    raise SystemExit(USER_ERROR_EXIT if record['is_user_error'] else FAILURE_EXIT) from error


def failure_record(
  run: run_directory.RunDirectory, node: str, error: BaseException, log: str
) -> dict[str, Any]:
  """Returns the record of an error for failure.json."""
  message = full_disk(run, error) if disk.is_full(error) else describe(error)
  return _record(run, node, message, log, isinstance(error, types.UserError))


def full_disk(run: run_directory.RunDirectory, error: BaseException | None = None) -> str:
  """Describes which disk is full, what is lost, what is kept, and how to continue."""
  saved = checkpoint.newest(run.checkpoints)
  kept = 'no checkpoint was saved'
  if saved is not None:
    kept = f'checkpoint {saved.name} is kept, what was learnt after it is lost'
  return (
    f'{disk.describe(run.path, error)}: {kept}. Make room there, then go on with: '
    f'seed-acme train {shlex.quote(f"--run_dir={run.name}")}'
  )


def is_of_another(failure: dict[str, Any] | None) -> bool:
  """Whether the failure was caused by another node, without which this node could continue."""
  return bool(failure and failure.get(_OF_ANOTHER))


def is_of_another_that_was_met(failure: dict[str, Any] | None) -> bool:
  """Whether another node caused the failure before this one had begun to train."""
  return failure is not None and is_of_another(failure) and not failure[_HAS_BEGUN]


def describe(error: BaseException) -> str:
  """Returns the error as text; errors of other packages get the name of their type."""
  if type(error).__module__.startswith('seed_acme.'):
    return str(error)
  text = str(error)
  if text.startswith('Graph execution error'):  # TensorFlow names the place first, then the reason
    text = text.rpartition('\nNode: ')[2].partition('\n')[2].strip()
  return f'{type(error).__name__}: {text}'


def describe_exit(code: int) -> str:
  """Describes how a process ended, by its return code."""
  return f'killed by {signal.Signals(-code).name}' if code < 0 else f'exit code {code}'


def report_failure(
  run: run_directory.RunDirectory,
  node: str,
  message: str,
  log: str,
  is_user_error: bool = False,
  is_cause: bool = False,
) -> None:
  """Writes failure.json unless there is an earlier failure, because the first one is the cause.

  is_cause: this failure is the cause, even if another node's (such as a lost connection) was first.
  """
  _write_failure(run, _record(run, node, message, log, is_user_error), is_cause)


def _record(
  run: run_directory.RunDirectory, node: str, message: str, log: str, is_user_error: bool
) -> dict[str, Any]:
  return {
    'node': node,
    'message': message,
    'is_user_error': is_user_error,
    'log': str(run.logs / log),
  }


def _write_failure(
  run: run_directory.RunDirectory, record: dict[str, Any], is_cause: bool = False
) -> None:
  earlier = read_failure(run)
  if earlier is not None and not (is_cause and earlier['node'] != record['node']):
    return
  try:
    local.write_json(run.failure, record, keeps_first=not is_cause)
  except types.Failure:
    disk.release_reserve(run.path)
    # If there is still no room, the front end finds out that the disk is full.
    with contextlib.suppress(types.Failure):
      local.write_json(run.failure, record, keeps_first=not is_cause)


def clear_failure(run: run_directory.RunDirectory) -> None:
  """Deletes failure.json before a run starts, and reserves disk space for the next one."""
  run.failure.unlink(missing_ok=True)
  disk.reserve(run.path)


def read_failure(run: run_directory.RunDirectory) -> dict[str, Any] | None:
  """Returns the record that `report_failure` wrote, or None."""
  return local.read_json(run.failure) if run.failure.exists() else None


def configure_tensorflow(num_threads: int) -> None:
  """Sets TensorFlow's threads before its first operation. 0 = TensorFlow's choice."""
  import tensorflow as tf  # not at the top, because actors and front ends import this module

  if num_threads and not tf.config.threading.get_intra_op_parallelism_threads():
    tf.config.threading.set_intra_op_parallelism_threads(num_threads)
    tf.config.threading.set_inter_op_parallelism_threads(2)  # inference and training
  for gpu in tf.config.list_physical_devices('GPU'):
    tf.config.experimental.set_memory_growth(gpu, True)


def is_alive(pid: int) -> bool:
  """Whether a process is running (a zombie is not)."""
  status = pathlib.Path(f'/proc/{pid}/stat')
  try:
    return status.read_text().rpartition(')')[2].split()[0] not in 'ZX'
  except OSError:
    return False
