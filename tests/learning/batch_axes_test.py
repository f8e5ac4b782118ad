import numpy as np
import tree

from seed_acme import types
from seed_acme.learning import batch_axes


def test_rows_are_time_major_and_the_rest_is_not():
  state = {'h': np.zeros((4, 3)), 'c': np.zeros(4)}
  rows = types.AgentInput(*[np.zeros((5, 4))] * 4, observation=(np.zeros((5, 4, 2)),))
  outputs = types.AgentOutput(np.zeros((5, 4)), types.QOutput(np.zeros((5, 4, 6))))
  sample = types.Sample(
    types.Unroll(state, rows, outputs, np.zeros((5, 4))),
    keys=np.zeros(4),
    probabilities=np.zeros(4),
  )
  axes = batch_axes.of_sample(sample)
  tree.map_structure(lambda axis, x: _is(x.shape[axis], 4), axes, sample)
  assert axes.unroll.inputs.observation == (1,)
  assert axes.unroll.initial_state == {'h': 0, 'c': 0}


def _is(value, expected):
  assert value == expected
