"""In Launchpad nodes, which import TensorFlow inside app.run, tensors still compare by value."""

import os
import subprocess
import sys

import pytest

from seed_acme.programs.system import processes

_SCRIPT = """
from absl import app

def main(_):
  import tensorflow as tf
  unequal = tf.function(lambda x: tf.cast(x != 2, tf.int32), autograph=False)
  print(unequal(tf.constant([1, 2, 3])).numpy().tolist())

app.run(main)
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_tensors_compare_by_element_in_a_node():
  variables = {**os.environ, **processes.environment('learner', os.getpid())}
  output = subprocess.run(
    [sys.executable, '-c', _SCRIPT], env=variables, check=True, stdout=subprocess.PIPE, text=True
  ).stdout
  assert output.strip() == '[1, 0, 1]'
