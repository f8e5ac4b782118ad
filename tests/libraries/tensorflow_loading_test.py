"""TensorFlow is imported silently and without optional packages, whoever imports it."""

import os
import subprocess
import sys

import pytest


def _imported(tmp_path, says, load='tensorflow_loading.load()'):
  """Returns standard error of a process that imports a `tensorflow` which prints this."""
  source = f'import os, time\nos.write(2, {says!r})\ntime.sleep(0.3)\n'
  (tmp_path / 'tensorflow.py').write_text(source)
  code = (
    'from seed_acme.libraries import tensorflow_loading\n'
    f'import os, sys, threading; sys.path.insert(0, {str(tmp_path)!r})\n'
    f'{load}\n'
  )
  run = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  return run.stderr


def test_only_what_every_import_says_is_kept_back(tmp_path):
  says = b'E x.cc] Unable to register cuDNN factory: y\nE x.cc] a fault\nno line'
  assert _imported(tmp_path, says) == 'E x.cc] a fault\nno line'


def test_threads_that_need_it_at_once_leave_standard_error_as_it_was(tmp_path):
  load = """
start = threading.Barrier(32)
def wait_and_load():
  start.wait()
  tensorflow_loading.load()
sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=wait_and_load) for _ in range(32)]
for one in threads: one.start()
for one in threads: one.join()
os.write(2, b'later')
"""
  assert _imported(tmp_path, b'E x.cc] a fault\n', load) == 'E x.cc] a fault\nlater'


@pytest.mark.parametrize(
  'first_use', ['processes.load_tensorflow()', "bucket.read_bytes('/nowhere/x')"]
)
def test_the_tensorflow_that_is_installed_is_imported_silently_and_without_optional_packages(
  first_use,
):
  code = f"""if True:
    import sys
    from seed_acme.files import bucket
    from seed_acme.programs.system import processes
    import gc
    at_first = gc.get_stats()[2]['collections']
    {first_use}
    assert gc.isenabled() and gc.get_stats()[2]['collections'] == at_first
    assert gc.get_freeze_count() > 100_000
    from seed_acme.programs.nodes import learner_node
    for name in ('keras', 'h5py', 'scipy', 'googleapiclient'):
      assert name not in sys.modules, name
    import scipy
    import tensorflow as tf
    assert tf.keras.layers.Dense(3)(tf.ones([1, 2])).shape == (1, 3)
  """
  environment = {name: value for name, value in os.environ.items() if not name.startswith('TF_')}
  run = subprocess.run(
    [sys.executable, '-c', code], env=environment, capture_output=True, text=True, check=True
  )
  assert not run.stderr


def test_the_objects_of_a_users_process_are_still_collected():
  code = """if True:
    import gc, weakref
    from seed_acme.programs.system import processes
    class Map:
      pass
    made = Map()
    made.itself = made
    lives = weakref.ref(made)
    processes.load_tensorflow(owns_process=False)
    assert gc.isenabled() and lives() is not None
    del made
    gc.collect()
    assert lives() is None
  """
  subprocess.run([sys.executable, '-c', code], check=True)
