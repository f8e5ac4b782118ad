"""docs/papers.md: its tables are recomputed here, and its formulas match the code."""

import math
import re

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme.agents.on_policy import algorithm as algorithm_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import resolve
from seed_acme.configs import registry as configs
from seed_acme.learning import objectives
from seed_acme.networks import image_torsos
from seed_acme.networks import torsos
from tests import pages

_PAGE = (pages.ROOT / 'docs/papers.md').read_text()
_WITHIN, _OUTSIDE, _ADAM = 'RMSProp, within the root', 'RMSProp, outside the root', 'Adam'
_N = 640


def _table(mark):
  """Returns the cells of the table after `<!-- mark -->`."""
  lines = _PAGE.partition(f'<!-- {mark} -->\n\n')[2].partition('\n\n')[0].splitlines()
  assert len(lines) > 4, f'docs/papers.md has no table {mark!r}'
  return [[cell.strip() for cell in line.strip('|').split('|')] for line in lines[2:]]


def _number(text):
  return float(re.search(r'[\d,]+(?:\.\d+)?(?:e-?\d+)?', text.replace('`', ''))[0].replace(',', ''))


def _converted(kind, epsilon, n):
  """Returns `epsilon` here for the epsilon of a loss that is a sum over n steps."""
  return {_WITHIN: epsilon / n**2, _OUTSIDE: (epsilon / n) ** 2, _ADAM: epsilon / n}[kind]


@pytest.mark.parametrize('row', _table('sums'), ids=lambda row: row[0])
def test_the_table_of_sums(row):
  _, size, norm, there, norm_here, epsilon_here = row
  num_steps, batch_size = map(int, size.split('×'))
  kind, _, epsilon = there.rpartition(', ')
  n = num_steps * batch_size
  assert _number(norm_here) == pytest.approx(_number(norm) / n)
  assert _number(epsilon_here) == pytest.approx(_converted(kind, float(epsilon), n), rel=2e-3)


def test_the_row_of_impala_is_the_shipped_configuration():
  row = _table('sums')[0]
  agent = configs.load('atari_vtrace').agent
  assert f'{agent.unroll_length} × {agent.batch_size}' == row[1]
  assert agent.optimizer.max_gradient_norm == _number(row[4])
  assert agent.optimizer.epsilon == pytest.approx(_number(row[5]), rel=2e-3)


def _steps(optimizer, gradients):
  """Returns a variable after each of these gradients. optimizer: fields of its configuration."""
  variable = tf.Variable(np.zeros(gradients.shape[1], np.float32))
  config = config_lib.OptimizerConfig(learning_rate=0.1, **optimizer)
  stepper = objectives.Stepper(agent_lib.Objective([variable], config))
  positions = []
  for gradient in gradients:
    stepper.apply([tf.constant(gradient, tf.float32)], tf.constant(0.1))
    positions.append(variable.numpy())
  return np.array(positions)


def _gradients(scale=1.0):
  """Returns gradients of a mean, from far below an epsilon of 1e-2 to far above it."""
  random = np.random.default_rng(3)
  return scale * random.normal(size=(6, 5)) * np.array([1e-5, 1e-3, 1e-2, 0.1, 10.0])


@pytest.mark.parametrize('name, kind', [('adam', _ADAM), ('rmsprop', _WITHIN)])
def test_a_mean_with_what_is_converted_takes_the_steps_of_a_sum(name, kind):
  summed = _steps({'name': name, 'epsilon': 0.01, 'max_gradient_norm': 40.0}, _gradients(_N))
  here = {'name': name, 'epsilon': _converted(kind, 0.01, _N), 'max_gradient_norm': 40.0 / _N}
  np.testing.assert_allclose(_steps(here, _gradients()), summed, rtol=1e-4)
  for field, value in (('epsilon', 0.01), ('max_gradient_norm', 40.0)):
    changed = _steps({**here, field: value}, _gradients())
    assert not np.allclose(changed, summed, rtol=0.01), f'{field} makes no difference'


def _torch_rmsprop(gradients, epsilon, decay=0.99):
  """Computes PyTorch's formula: epsilon outside the root, and the mean square starts at 0."""
  position, square = np.zeros(gradients.shape[1]), np.zeros(gradients.shape[1])
  positions = []
  for gradient in gradients:
    square = decay * square + (1 - decay) * gradient**2
    position = position - 0.1 * gradient / (np.sqrt(square) + epsilon)
    positions.append(position)
  return np.array(positions)


def test_rmsprop_has_epsilon_within_the_root_and_starts_at_0():
  gradients = _gradients()
  variable, mean_square, momentum = (tf.Variable(np.zeros(5, np.float32)) for _ in range(3))
  for gradient in gradients:  # TensorFlow 1's operation
    tf.raw_ops.ResourceApplyRMSProp(
      var=variable.handle,
      ms=mean_square.handle,
      mom=momentum.handle,
      lr=0.1,
      rho=0.99,
      momentum=0.0,
      epsilon=1e-4,
      grad=tf.constant(gradient, tf.float32),
    )
  ours = _steps({'name': 'rmsprop', 'epsilon': 1e-4, 'max_gradient_norm': 0.0}, gradients)
  np.testing.assert_allclose(ours[-1], variable, rtol=1e-5)


def test_the_square_of_an_epsilon_outside_the_root_is_near_it():
  """A single weight's steps are equal far above and far below, and at most 1.41 times as large."""
  for size in (1e-6, 1e-4, 1e-2, 0.1, 1.0, 1e3):
    gradient = np.array([[size]])
    here = {'name': 'rmsprop', 'epsilon': 0.01**2, 'max_gradient_norm': 0.0}
    ratio = (_steps(here, gradient) / _torch_rmsprop(gradient, 0.01)).item()
    root = 0.1 * size  # root of the mean square after one step
    assert ratio == pytest.approx((root + 0.01) / math.sqrt(root**2 + 0.01**2), rel=1e-4)
    assert 1 <= ratio < 1.4143
    if size in (1e-6, 1e3):
      assert ratio == pytest.approx(1, abs=1e-3)


def test_keras_has_epsilon_before_the_correction_of_the_bias_and_sonnet_after():
  """Compares the first update, with an epsilon as large as the gradient."""
  gradient = np.array([[1e-4]])
  variable = tf.Variable([0.0])
  keras = tf.keras.optimizers.Adam(0.1, epsilon=1e-4)
  keras.apply_gradients([(tf.constant(gradient[0], tf.float32), variable)])
  fields = {'name': 'adam', 'max_gradient_norm': 0.0}
  factor = 1 / math.sqrt(1 - 0.999)
  assert round(factor) == 32
  np.testing.assert_allclose(
    _steps({**fields, 'epsilon': 1e-4 * factor}, gradient)[0], variable, rtol=1e-3
  )
  assert 1 / math.sqrt(1 - 0.999**5_000) == pytest.approx(1, abs=5e-3)


@pytest.mark.parametrize('row', _table('halves'), ids=lambda row: row[0])
def test_the_table_of_halves(row):
  """Their coefficient times their loss equals `value_cost` times the value loss here."""
  _, form, coefficient, here = row
  targets, values = np.float32([1.0, -2.0, 0.5]), np.float32([0.0, 3.0, 0.25])
  theirs = {'½ e²': 0.5, 'e²': 1.0}[form] * np.mean((targets - values) ** 2)
  config = on_policy_config.OnPolicyConfig(value_cost=_number(here))
  ours = resolve.algorithm(config).value_loss(
    tf.constant(values), tf.constant(targets), tf.constant(values), tf.fill([3], True)
  )
  assert config.value_cost * float(ours) == pytest.approx(_number(coefficient) * theirs)


def test_normalised_advantages_divide_the_policy_loss_by_their_spread():
  random = np.random.default_rng(4)
  advantages = random.normal(0, 0.2, 40)
  advantages -= advantages.mean()
  log_prob = tf.constant(random.normal(-1, 0.3, 40), tf.float32)

  def loss(**fields):
    config = on_policy_config.OnPolicyConfig(policy_loss='vpg', **fields)
    return loss_lib.policy_loss(
      resolve.algorithm(config),
      algorithm_lib.Played(
        log_prob, tf.zeros([40]), tf.constant(advantages, tf.float32), tf.fill([40], True), None
      ),
    ).loss

  spread = np.std(advantages)
  assert spread < 0.3
  np.testing.assert_allclose(
    spread * loss(normalize_advantages=True), loss(normalize_advantages=False), rtol=1e-4
  )


def test_the_table_of_frames():
  for there, per_step, here in _table('frames'):
    amount, frames_per_step = _number(re.sub(r'`\w+`', '', there)), int(per_step)
    if 'total_steps' in here:
      expected = amount if 'which are steps' in there else amount / frames_per_step
    else:
      expected = amount * frames_per_step
    assert _number(here.partition('` ')[2]) == expected, there
  config = configs.load('atari_vtrace')  # for 200 million frames
  assert config.total_steps == _number(_table('frames')[0][2].partition('` ')[2])


def _first_weights(w_init):
  torso = image_torsos.NatureCNN(32, w_init=w_init)
  torso(tf.zeros([1, 84, 84, 4], tf.uint8))
  (weights,) = (v for v in torso.variables if v.shape == (8, 8, 4, 32))
  return float(tf.math.reduce_std(weights))


def test_the_table_of_first_weights():
  fan_in, fan_out = 8 * 8 * 4, 8 * 8 * 32
  rows = {row[0]: _number(row[2]) for row in _table('weights')}
  expected = {
    'Glorot, uniform': math.sqrt(2 / (fan_in + fan_out)),
    "PyTorch's default": math.sqrt(1 / (3 * fan_in)),
    'LeCun, normal': math.sqrt(1 / fan_in),
    'orthogonal, gain √2': math.sqrt(2 / fan_in),
  }
  assert rows == pytest.approx(expected, rel=3e-3)
  assert f'{fan_in}, and' in _PAGE and f'{fan_out:,}' in _PAGE
  for name, w_init in (
    ('Glorot, uniform', None),
    ('LeCun, normal', torsos.weight_initializer('lecun_normal')),
    ('orthogonal, gain √2', torsos.weight_initializer('orthogonal', math.sqrt(2))),
  ):
    assert _first_weights(w_init) == pytest.approx(rows[name], rel=0.03), name


def test_the_command_at_the_head_has_the_row_of_torchbeast():
  row = next(row for row in _table('sums') if row[0] == 'torchbeast')
  (block,) = (block for block in pages.blocks('bash') if block.page == 'docs/papers.md')
  assert f'optimizer.max_gradient_norm={row[4]}' in block.text
  assert f'optimizer.epsilon={row[5]}' in block.text
  assert configs.load('atari_vtrace').agent.optimizer.name == 'rmsprop'
