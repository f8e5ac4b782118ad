"""The README.md of an exported policy: how to call it, and what goes in and out."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

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
  # Step the environments with `action`; they set observation, reward, discount and is_first.
```

* **observation** has the structure, types and shapes of the table. B is the number of rows.
* **reward, discount** are what the previous action brought. The discount is 0 where that ended the
  episode, else 1. Some networks take them as input.
* **is_first** is true in rows where an episode begins. There state and reward are forgotten.
* **state** is a dict of tensors. Hand in what the last call has returned. It holds the recurrent
  state and the previous action.

| argument or result | shape | type |
|---|---|---|
{table}

The signatures `initial_state` and `step` take and return these tensors by the names of the table.
They are for TensorFlow Serving and for other languages.
"""


def text(record: dict[str, Any], policy: exported_policy.ExportedPolicy) -> str:
  """Returns the text. record: as `saved_model.export` returns it."""
  step = policy.step.get_concrete_function()
  action = step.structured_outputs[0]
  tensors = {
    **exported_policy.named('observation', policy.observation),
    'reward': tf.TensorSpec([None], tf.float32),
    'discount': tf.TensorSpec([None], tf.float32),
    'is_first': tf.TensorSpec([None], tf.bool),
    **{f'state_{name}': spec for name, spec in policy.state.items()},
    **exported_policy.named('action', action),
  }
  manner = (
    'those that evaluation plays, greedy ones as a rule'
    if record['greedy']
    else 'drawn from the policy, as in training'
  )
  return _TEXT.format(
    **record,
    manner=manner,
    version='.'.join(tf.__version__.split('.')[:2]),
    table='\n'.join(
      f'| `{name}` | {_shape(spec)} | {spec.dtype.name} |' for name, spec in tensors.items()
    ),
  )


def _shape(spec: tf.TensorSpec) -> str:
  return '[' + ', '.join('B' if size is None else str(size) for size in spec.shape) + ']'
