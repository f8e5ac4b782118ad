"""Settings that have to stand before TensorFlow is loaded, for every test."""
import os

for _name, _value in {
    'TF_CPP_MIN_LOG_LEVEL': '2',
    'TF_ENABLE_ONEDNN_OPTS': '1',  # as in every process of a run
    'TF_NUM_INTRAOP_THREADS': '1',  # small networks, and two cores at most
    'TF_NUM_INTEROP_THREADS': '1',
    'GRPC_VERBOSITY': 'ERROR',
}.items():
  os.environ.setdefault(_name, _value)
