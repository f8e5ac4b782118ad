"""C++ output to descriptor 2: what is suppressed and what is shown."""

import os
import subprocess
import sys

import pytest

from seed_acme import types
from seed_acme.programs.system import native_output


def test_the_lines_that_are_shown_come_after_all_in_their_order(capfd):
  with native_output.held_back(lambda written: written.replace(b'noise\n', b'')):
    os.write(2, b'noise\none\nnoise\ntwo\n')
    assert not capfd.readouterr().err
  assert capfd.readouterr().err == 'one\ntwo\n'
  os.write(2, b'later\n')
  assert capfd.readouterr().err == 'later\n'


@pytest.mark.parametrize(
  'error, is_shown', [(None, False), (types.UserError('x'), False), (ValueError('x'), True)]
)
def test_noise_is_shown_after_all_where_something_unforeseen_happens(error, is_shown, capfd):
  try:
    with native_output.without_noise():
      os.write(2, b'noise\n')
      if error:
        raise error
  except (types.UserError, ValueError):
    pass
  assert ('noise' in capfd.readouterr().err) == is_shown


def _imported(tmp_path, says):
  """Returns standard error of a process that imports a `tensorflow` which prints this."""
  (tmp_path / 'tensorflow.py').write_text(f'import os\nos.write(2, {says!r})\n')
  code = (
    'from seed_acme.programs.system import native_output\n'
    f'import sys; sys.path.insert(0, {str(tmp_path)!r})\n'
    'native_output.import_tensorflow()\n'
  )
  run = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
  return run.stderr


def test_only_what_every_import_says_is_kept_back(tmp_path):
  says = b'E x.cc] Unable to register cuDNN factory: y\nE x.cc] a fault\nno line'
  assert _imported(tmp_path, says) == 'E x.cc] a fault\nno line'


def test_the_tensorflow_that_is_installed_is_imported_silently_and_without_optional_packages():
  code = """if True:
    import sys
    from seed_acme.programs.system import processes
    import gc
    at_first = gc.get_stats()[2]['collections']
    processes.load_tensorflow()
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
