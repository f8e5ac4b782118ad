"""Atari with V-trace and the deep residual network of IMPALA, 200e6 frames."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.configs import atari_vtrace


def experiment() -> config_lib.ExperimentConfig:
  """Espeholt et al. 2018, appendix G; the same as `atari_vtrace` except for the network."""
  shallow = atari_vtrace.experiment()
  return dataclasses.replace(
    shallow,
    name='atari_vtrace_deep',
    network=dataclasses.replace(shallow.network, torso='impala_resnet'),
  )
