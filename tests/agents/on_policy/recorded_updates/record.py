"""Writes `recorded.json`, or compares two commits bit for bit.

  python -m tests.agents.on_policy.recorded_updates.record

rewrites the recording with the current results. Do that only if an update is meant to change, and
say why in the commit. Cases that are the same within the test's tolerance keep their numbers, so a
diff shows the others.

To compare two commits on one machine, run each from the root of its own checkout with the same
virtual environment; copy this folder into the older one if it is missing there:

  python -m tests.agents.on_policy.recorded_updates.record --checksums=../new.json
  cd ../before && python -m tests.agents.on_policy.recorded_updates.record --checksums=../old.json
  cmp ../old.json ../new.json

Such a file has a checksum of every bit of each loss, metric, gradient and changed variable. Its
updates are traced, as in a run. TensorFlow uses one thread here, because several threads add up a
sum in no fixed order. `--eager` leaves out the tracing, which takes half a minute. If two commits
differ without it and agree with it, TensorFlow's graph optimiser has made the difference.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
from typing import Any

for _name in ('TF_NUM_INTRAOP_THREADS', 'TF_NUM_INTEROP_THREADS'):
  os.environ[_name] = '1'
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')  # as in every process of a run

import tensorflow as tf  # noqa: E402 - after its settings

import seed_acme  # noqa: E402
from tests.agents.on_policy.recorded_updates import cases  # noqa: E402
from tests.agents.on_policy.recorded_updates import recording  # noqa: E402
from tests.agents.on_policy.recorded_updates import updates  # noqa: E402


def main() -> None:
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawTextHelpFormatter
  )
  parser.add_argument('--checksums', metavar='FILE', default='')
  parser.add_argument('--eager', action='store_true')
  arguments = parser.parse_args()
  print(f'The code of {pathlib.Path(seed_acme.__file__).parent}', file=sys.stderr)
  if arguments.checksums:
    tf.config.run_functions_eagerly(arguments.eager)
    made = {name: updates.checksums(case) for name, case in cases.CASES.items()}
    text = json.dumps(made, indent=1) + '\n'
    pathlib.Path(arguments.checksums).write_text(text, encoding='utf-8')
    return
  tf.config.run_functions_eagerly(True)
  before = recording.load() if recording.PATH.exists() else {}
  found = {name: updates.numbers(case) for name, case in cases.CASES.items()}
  recording.save({name: _kept(before.get(name), now) for name, now in found.items()})


def _kept(before: dict[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
  """Returns the recorded numbers if `now` equals them within the tolerance, else `now`."""
  return now if before is None or recording.differences(before, now) else before


if __name__ == '__main__':
  main()
