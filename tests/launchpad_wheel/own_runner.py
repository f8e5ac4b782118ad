"""Runs a test of the wheel's own: `python -m tests.launchpad_wheel.own_runner MODULE`."""

import runpy
import sys
import types

import courier.python.status

if __name__ == '__main__':
  name = sys.argv.pop(1)
  if name.startswith('courier.'):
    # Where courier's own test looks for it. Of the name of TensorFlow's module, so not for users,
    # nor for a test that loads TensorFlow.
    package = types.ModuleType('pybind11_abseil')
    package.status = courier.python.status
    sys.modules['pybind11_abseil'] = package
    sys.modules['pybind11_abseil.status'] = courier.python.status
  sys.argv[0] = name
  runpy.run_module(name, run_name='__main__', alter_sys=True)
