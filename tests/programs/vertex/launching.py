"""Arguments of a launch on Vertex AI, and a dry run with them."""

import json
import os
import pathlib
import subprocess
import sys
from typing import NamedTuple

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
  done = subprocess.run(
    [
      pathlib.Path(sys.executable).with_name('seed-acme'),
      *VERTEX,
      *CLOUD,
      '--dry_run',
      f'--out={folder}',
      *arguments,
    ],
    cwd=parent,
    capture_output=True,
    text=True,
    timeout=HANG_S,
    check=False,
    env={**os.environ, 'HOME': str(parent)},
  )
  assert done.returncode == 0, done.stderr
  assert not done.stderr, done.stderr
  assert sorted(path.name for path in parent.iterdir()) == ['out'], 'it left files'
  return DryRun(folder, done.stdout)
