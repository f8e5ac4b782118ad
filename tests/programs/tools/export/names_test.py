"""The names that an exported policy's signature has for the tensors of an observation."""

import pytest
import tensorflow as tf

from seed_acme.programs.tools.export import exported_policy


@pytest.mark.parametrize(
  'keys',
  [('a', 'b'), ('größe', 'weiß'), ('ö', 'ü'), ('a', 'A', 'A_'), ('a b', 'a_b', 'a-b'), ('',)],
)
def test_every_key_has_a_name_that_a_saved_model_takes(keys, tmp_path):
  specs = {key: tf.TensorSpec((None, 2), tf.float32) for key in keys}
  names = exported_policy.named('observation', specs)
  step = tf.function(lambda **given: given, autograph=False).get_concrete_function(
    **{name: tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in names.items()}
  )
  tf.saved_model.save(tf.Module(), str(tmp_path), signatures={'step': step})
  signature = tf.saved_model.load(str(tmp_path)).signatures['step']
  given = {name: tf.fill((1, 2), float(i)) for i, name in enumerate(names)}
  assert len(given) == len(keys)
  got = signature(**given)
  assert {name: got[name][0, 0] for name in names} == {name: x[0, 0] for name, x in given.items()}
