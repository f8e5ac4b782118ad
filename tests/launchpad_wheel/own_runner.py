"""Runs test modules of the wheel itself: `python -m tests.launchpad_wheel.own_runner MODULE ...`.

Ends with the exit code of the first one that fails.
"""

import runpy
import sys
import types

import courier.python.status


def _run(name):
  if name.startswith('courier.'):
    # The place where courier's own test imports it from. It has the name of TensorFlow's module, so
    # it is neither for users nor for tests that load TensorFlow.
    package = types.ModuleType('pybind11_abseil')
    package.status = courier.python.status
    sys.modules['pybind11_abseil'] = package
    sys.modules['pybind11_abseil.status'] = courier.python.status
  sys.argv[:] = [name]
  try:
    runpy.run_module(name, run_name='__main__', alter_sys=True)
  except SystemExit as end:
    if end.code:
      raise


if __name__ == '__main__':
  for module in sys.argv[1:]:
    _run(module)
