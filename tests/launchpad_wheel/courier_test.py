"""The courier of the wheel, where it is what `import courier` finds."""

import pathlib

_CASES = pathlib.Path(__file__).parent / 'courier_cases.py'


def test_its_cases_pass(run_module):
  done = run_module('pytest', '-q', '-p', 'no:cacheprovider', '-p', 'no:xdist', str(_CASES))
  assert done.returncode == 0, done.stdout[-5000:]
