"""Rewrites `recorded.json`: python -m tests.topology.record [NAME ...]

Do that only if the topology of a run, or the text of a refusal, is meant to change, and say why in
the commit. The diff shows the changes. With names of cases it prints those and writes nothing.
"""

from __future__ import annotations

import sys

from tests.topology import cases
from tests.topology import recording
from tests.topology import today


def main() -> None:
  names = sys.argv[1:] or list(cases.CASES)
  made = {}
  for name in names:
    case = cases.CASES[name]
    made[name] = recording.of(case, today.describe(case))
  if sys.argv[1:]:
    print(recording.text(made), end='')
  else:
    recording.PATH.write_text(recording.text(made), encoding='utf-8')


if __name__ == '__main__':
  main()
