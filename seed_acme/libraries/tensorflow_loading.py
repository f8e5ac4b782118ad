"""Imports TensorFlow: quietly, and without what nothing here needs of it.

Imports no TensorFlow itself, because actors and front ends import this module.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
from typing import Any

from seed_acme.libraries import native_output

# `tf.keras` is imported only on use, and so is pandas with it; the old copy of Keras in TensorFlow
# would load h5py and scipy; Google's client is only for names of cluster machines.
_OPTIONAL = ('keras', 'h5py', 'scipy', 'googleapiclient')
# Lines that TensorFlow 2.15 prints on import: the first three always, the others without a GPU or
# TensorRT, which `seed-acme doctor` checks.
_OF_EVERY_IMPORT = (
  'Unable to register cuDNN factory',
  'Unable to register cuFFT factory',
  'Unable to register cuBLAS factory',
  'Could not find cuda drivers on your machine',
  'TF-TRT Warning: Could not find TensorRT',
)
# Standard error is redirected meanwhile, which two threads must not do at once.
_LOCK = threading.Lock()


def variables() -> dict[str, str]:
  """Returns environment variables that must be set before TensorFlow loads; the user's choice of
  the first two stands."""
  return {
    'TF_ENABLE_ONEDNN_OPTS': os.environ.get('TF_ENABLE_ONEDNN_OPTS', '1'),  # the default of 2.15
    'TF_CPP_MIN_LOG_LEVEL': os.environ.get('TF_CPP_MIN_LOG_LEVEL', '2'),
    # If TensorFlow is imported within absl's app.run, as in a Launchpad node, it would otherwise
    # set up its context before it knows that it is version 2, and `==` on tensors would compare
    # identity.
    'TF2_BEHAVIOR': '1',
  }


def load(owns_process: bool = True) -> Any:
  """Imports TensorFlow, unless it is imported, and returns it.

  Optional packages that TensorFlow would import are hidden during the import; they take a quarter
  of its CPU time. The garbage collector is off, because it would take a sixth and find nothing. The
  lines that TensorFlow prints on every machine are not shown.

  owns_process: whether nobody else's code runs in this process. The garbage collector then never
  walks over the imported objects, a quarter of a million, nor over any other that exists by now.
  """
  with _LOCK:
    if 'tensorflow' not in sys.modules:
      for name, value in variables().items():
        os.environ.setdefault(name, value)
      _load(owns_process)
  return importlib.import_module('tensorflow')


def _load(owns_process: bool) -> None:
  collects = gc.isenabled()
  gc.disable()
  hidden = [name for name in _OPTIONAL if name not in sys.modules]
  for name in hidden:
    sys.modules[name] = None  # type: ignore[assignment]
  try:
    with native_output.held_back(_without_words_of_every_import):
      importlib.import_module('tensorflow')
  finally:
    for name in hidden:
      del sys.modules[name]
    if owns_process:
      gc.freeze()
    if collects:
      gc.enable()


def _without_words_of_every_import(written: bytes) -> bytes:
  known = [words.encode() for words in _OF_EVERY_IMPORT]
  lines = written.splitlines(keepends=True)
  return b''.join(line for line in lines if not any(words in line for words in known))
