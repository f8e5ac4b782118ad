"""Training on several hosts equals training on one."""

import numpy as np
import pytest

from tests import learner_processes
from tests.learning import host_weights

pytestmark = pytest.mark.slow

_NAMES = ('catch_vtrace', 'cartpole_ppo', 'catch_r2d2', 'pendulum_sac')
# Relative to the largest element of each array. The hosts add up in another order, and Adam divides
# by the size of the gradient: after 50 updates the largest difference in weights and moments was
# 4e-5.
_TOLERANCE = 2e-4
_METRIC_TOLERANCE = 5e-3  # for means of numbers near 0; the largest difference was 7e-4


@pytest.fixture(
  scope='module',
  params=[*((name, 1) for name in _NAMES), ('pendulum_sac', 2)],
  ids=lambda case: '-'.join(map(str, case)),
)
def found(request, tmp_path_factory):
  """Returns `{kind: {name: array}}` of each of two hosts; the second has only one kind."""
  folder = tmp_path_factory.mktemp('weights')
  name, num_devices = request.param
  learner_processes.run(host_weights.__file__, [name, folder, num_devices])
  return [_by_kind(np.load(folder / f'{index}.npz')) for index in (0, 1)]


def _by_kind(archive):
  kinds = {}
  for path in archive.files:
    kind, _, name = path.partition('/')
    kinds.setdefault(kind, {})[name] = archive[path]
  return kinds


def _difference(one, other):
  return np.max(np.abs(one - other), initial=0) / max(np.max(np.abs(one), initial=0), 1e-6)


@pytest.mark.timeout(400)
def test_two_hosts_learn_what_one_does(found):
  """Compares weights, targets, statistics, learnt multipliers, the optimiser's moments, and
  metrics, with samples whose masks differ, minibatches that mix them, and uneven shares."""
  alone, together = found[0]['alone'], found[0]['hosts']
  if 'priorities' in alone:  # each host has those of its own sample
    together['priorities'] = np.concatenate([of['hosts']['priorities'] for of in found], axis=1)
  assert alone.keys() == together.keys() > found[0]['before'].keys()
  differing = {
    name: difference
    for name in alone
    if (difference := _difference(alone[name], together[name]))
    > (_METRIC_TOLERANCE if name.startswith('metric/') else _TOLERANCE)
  }
  assert not differing


def test_hosts_have_the_same_bits(found):
  """Otherwise they would drift apart."""
  one, other = found[0]['hosts'], found[1]['hosts']
  for name in one.keys() - {'priorities'}:
    np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_the_updates_change_far_more_than_the_hosts_do(found):
  """Otherwise the comparison would prove nothing."""
  alone, before = found[0]['alone'], found[0]['before']
  changes = [
    _difference(alone[name], before[name])
    for name in before
    if name.startswith('acting/') and not name.endswith('weight:0')
  ]
  assert min(changes) > 10 * _TOLERANCE
