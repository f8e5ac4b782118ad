"""Arguments of a launch on Vertex AI, and a dry run with them."""

import contextlib
import io
import json
import pathlib
import signal
from typing import NamedTuple

import pytest

from seed_acme.programs import cli

VERTEX = ('train', '--launch=vertex_ai', '--config=catch_vtrace')
CLOUD = ('--cloud.project=my-project-123', '--cloud.bucket=gs://bucket')
HANG_S = 600.0


class DryRun(NamedTuple):
  folder: pathlib.Path
  stdout: str

  def spec(self):
    return json.loads((self.folder / 'job.json').read_text())


def dry_run(parent, *arguments):
  """Makes a dry run that writes only `out` into this folder."""
  folder = parent / 'out'
  out, error = io.StringIO(), io.StringIO()
  with (
    pytest.MonkeyPatch.context() as patch,
    contextlib.redirect_stdout(out),
    contextlib.redirect_stderr(error),
  ):
    patch.chdir(parent)
    patch.setenv('HOME', str(parent))
    patch.setattr(signal, 'signal', lambda *_: None)
    code = cli.main([*VERTEX, *CLOUD, '--dry_run', f'--out={folder}', *arguments])
  assert code == 0, error.getvalue()
  # On a busy machine the trial says after a few seconds that it is under way.
  lines = error.getvalue().splitlines()
  assert all(line.startswith('Trying environment') for line in lines), error.getvalue()
  assert sorted(path.name for path in parent.iterdir()) == ['out'], 'it left files'
  return DryRun(folder, out.getvalue())
