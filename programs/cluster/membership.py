"""How a node that was started separately, on any host, joins its run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import logging
import pathlib
import sys
import tempfile
from typing import TypeVar

from seed_acme import core
from seed_acme import types
from seed_acme.programs.building import sections as sections_lib
from seed_acme.storage import run_directory
from seed_acme.transport import grpc_client
from seed_acme.transport import joining

_T = TypeVar('_T')


def member(
  sections: sections_lib.ActorSections | sections_lib.ReplaySections, token: str, learner: str
) -> grpc_client.GrpcMember:
  """Returns the connection by which this node talks to its learner host."""
  logging.basicConfig(format=f'{sections.name}: %(message)s', level=logging.WARNING)
  hello = joining.hello(sections.name, sections.shared)
  return grpc_client.GrpcMember(learner, token, hello, sections.actor.connect_timeout_s)


def explained(call: Callable[[], _T], learner: str) -> _T:
  """Calls `call`, and turns a refusal by the learner into a `types.UserError` with the fix.

  learner: its address.
  """
  try:
    return call()
  except core.Refused as error:
    reason = str(error)
    mend = (
      'use the same token on every host'
      if 'token' in reason
      else 'start every node with the same --config and cluster file'
    )
    raise types.UserError(f'the learner at {learner} refuses this node: {reason}: {mend}') from None


@contextlib.contextmanager
def local_folder() -> Iterator[run_directory.RunDirectory]:
  """Makes a temporary run folder of this host, for the files that nodes write into theirs."""
  with tempfile.TemporaryDirectory(prefix='seed_acme_', ignore_cleanup_errors=True) as path:
    folder = run_directory.RunDirectory(pathlib.Path(path))
    folder.logs.mkdir()
    folder.checkpoints.mkdir()
    yield folder


def say(name: str, text: str) -> None:
  """Prints a line with the node's name to standard error, which nodes of one host may share."""
  print(f'{name}: {text}', file=sys.stderr, flush=True)
