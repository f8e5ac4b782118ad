"""MemoryChain with R2D2: a task that needs a recurrent network, learnt from replay."""

import dataclasses

from seed_acme import config as config_lib
from seed_acme.configs import catch_r2d2


def experiment() -> config_lib.ExperimentConfig:
  """Values of `catch_r2d2` except for the lengths; returns are lower in training, which explores.

  Ends with a mean return of at least 0.9 over 200 greedy episodes (seeds 1, 2, 3).
  """
  catch = catch_r2d2.experiment()
  return dataclasses.replace(
    catch,
    name='memory_chain_r2d2',
    # The cue is asked for 10 rows after it was shown; 2 cues, so chance is a return of 0.
    environment=config_lib.EnvironmentConfig(
      id='memory_chain', settings={'length': 10, 'num_cues': 2}
    ),
    # Agent steps: two episodes of 12 rows, and one as burn-in.
    agent=dataclasses.replace(catch.agent, unroll_length=24, overlap=12),
  )
