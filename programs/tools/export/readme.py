"""The README.md of an exported policy: how to call it, and what goes in and out."""

from __future__ import annotations

from typing import Any

from dm_env import specs as dm_specs
import numpy as np
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.programs.tools.export import exported_policy

_TEXT = """# Policy of {environment}

A TensorFlow SavedModel that chooses actions. It needs TensorFlow {version} or later and no other
package. It was exported from `{run_dir}`.
Its checkpoint had trained for {checkpoint_agent_steps:,} agent steps, in {checkpoint_updates:,}
updates. Actions are {manner}.

```python
import numpy as np
import tensorflow as tf

policy = tf.saved_model.load('.')  # this folder
rows = 4                           # environments that act together; any number
state = policy.initial_state(rows)
reward, discount = np.zeros(rows, np.float32), np.ones(rows, np.float32)
is_first = np.ones(rows, bool)     # an episode begins in every row
while True:
  action, state = policy.step(observation, reward, discount, is_first, state)
  # Convert `action` to the environments' units, see below, and step them. They set observation,
  # reward, discount and is_first.
```

* **observation** has the structure, types and shapes of the table. B is the number of rows.
* **reward, discount** are what the previous action brought. The discount is 0 where that ended the
  episode, else 1. Some networks take them as input.
* **is_first** is true in rows where an episode begins. There state and reward are forgotten.
* **state** is a dict of tensors. Hand in what the last call has returned. It holds the recurrent
  state and the previous action.

| argument or result | shape | type | values |
|---|---|---|---|
{table}

The signatures `initial_state` and `step` take and return these tensors by the names of the table.
They are for TensorFlow Serving and for other languages.

## Units

Observations and actions are in the units of the training, and no value is checked.

* **Continuous actions** `a` are in [-1, 1]. An environment whose actions lie between other bounds
  gets `low + (a + 1) / 2 * (high - low)`, where `low` and `high` are the bounds of its own action
  space.
* **Choices** count from 0, in actions and in observations. If the environment's own space has a
  `start`, as `Discrete(3, start=10)` has, add it to the action, and take it off the observation. A
  choice outside the table's values reaches the network as a row of zeros.
* **With the setting `action_bins`** an action is a choice among numbers in [-1, 1], which
  `seed_acme.envs.action_scaling.value_table` returns. The formula above applies to these numbers.

Where `seed_acme` is installed, its environments take and return these units:

```python
from seed_acme.config import EnvironmentConfig
from seed_acme.envs import registry

environments = registry.make({environment_config!r}, rows, seed=1)
```
"""


def text(
  record: dict[str, Any],
  policy: exported_policy.ExportedPolicy,
  spec: types.EnvironmentSpec,
  environment_config: config_lib.EnvironmentConfig,
) -> str:
  """Returns the text. record: as `saved_model.export` returns it."""
  step = policy.step.get_concrete_function()
  action = step.structured_outputs[0]
  tensors = {
    **exported_policy.named('observation', policy.observation),
    'reward': tf.TensorSpec([None], tf.float32),
    'discount': tf.TensorSpec([None], tf.float32),
    'is_first': tf.TensorSpec([None], tf.bool),
    **{f'state_{name}': tensor for name, tensor in policy.state.items()},
    **exported_policy.named('action', action),
  }
  leaves = {
    **exported_policy.named('observation', spec.observation),
    **exported_policy.named('action', spec.action),
  }
  manner = (
    'those that evaluation plays, greedy ones as a rule'
    if record['greedy']
    else 'drawn from the policy, as in training'
  )
  return _TEXT.format(
    **record,
    environment_config=environment_config,
    manner=manner,
    version='.'.join(tf.__version__.split('.')[:2]),
    table='\n'.join(
      f'| `{name}` | {_shape(tensor)} | {tensor.dtype.name} | {_values(leaves.get(name))} |'
      for name, tensor in tensors.items()
    ),
  )


def _shape(spec: tf.TensorSpec) -> str:
  return '[' + ', '.join('B' if size is None else str(size) for size in spec.shape) + ']'


def _values(spec: dm_specs.Array | None) -> str:
  """Returns the bounds of an array, `0 ... 2`; nothing if it has none or the bounds are unknown."""
  if not isinstance(spec, dm_specs.BoundedArray):
    return ''
  return f'{_bound(spec.minimum)} ... {_bound(spec.maximum)}'


def _bound(bound: np.ndarray) -> str:
  """Returns one number if it is the same for all elements, else those of the first and last."""
  different = np.unique(bound)
  if len(different) == 1:
    return str(different[0])
  text = np.array2string(bound.ravel(), separator=', ', threshold=8)
  return ' '.join(text.split())
