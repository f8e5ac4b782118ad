"""Training on two hosts, or on two devices, equals training on one."""

import collections

import numpy as np
import pytest

from tests import learner_processes
from tests.learning import divided_learner

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# Relative to the largest element of each array. Hosts and devices add up in another order, and Adam
# divides by the size of the gradient, so the difference grows with the number of updates.
_TOLERANCE = 2e-4
_METRIC_TOLERANCE = 5e-3  # for means of numbers near 0


@pytest.fixture(scope='module')
def hosts(tmp_path_factory):
  """Returns the results of each host as `{'CASE/KIND': {name: array}}`."""
  folder = tmp_path_factory.mktemp('weights')
  learner_processes.run(divided_learner.__file__, [folder], timeout_s=800)
  return [_by_kind(np.load(folder / f'{index}.npz')) for index in (0, 1)]


def _by_kind(archive):
  kinds = collections.defaultdict(dict)
  for path in archive.files:
    case, kind, name = path.split('/', 2)
    kinds[f'{case}/{kind}'][name] = archive[path]
  return kinds


def _difference(one, other):
  return np.max(np.abs(one - other), initial=0) / max(np.max(np.abs(one), initial=0), 1e-6)


def _expect_equal(alone, divided):
  assert alone.keys() == divided.keys()
  differing = {
    name: difference
    for name in alone
    if (difference := _difference(alone[name], divided[name]))
    > (_METRIC_TOLERANCE if name.startswith('metric/') else _TOLERANCE)
  }
  assert not differing


@pytest.mark.parametrize('case', divided_learner.ON_HOSTS)
def test_two_hosts_learn_what_one_does(hosts, case):
  """Compares weights, targets, statistics, learnt multipliers, the optimiser's moments, priorities
  in the order of the unrolls, and metrics, with samples whose masks differ, minibatches that mix
  them, and uneven shares."""
  alone, together = hosts[0][f'{case}/alone'], hosts[0][f'{case}/hosts']
  if 'priorities' in alone:  # each host has those of its own sample
    each = [of[f'{case}/hosts']['priorities'] for of in hosts]
    together = {**together, 'priorities': np.concatenate(each, axis=1)}
  _expect_equal(alone, together)


@pytest.mark.parametrize('case', divided_learner.CASES)
def test_two_devices_learn_what_one_does(hosts, case):
  _expect_equal(hosts[0][f'{case}/alone'], hosts[1][f'{case}/devices'])


@pytest.mark.parametrize('case', divided_learner.ON_HOSTS)
def test_hosts_have_the_same_bits(hosts, case):
  """Otherwise they would drift apart."""
  one, other = (of[f'{case}/hosts'] for of in hosts)
  for name in one.keys() - {'priorities'}:
    np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize('case', divided_learner.CASES)
def test_the_updates_change_far_more_than_the_division_does(hosts, case):
  """Otherwise the comparisons would prove nothing."""
  alone, before = hosts[0][f'{case}/alone'], hosts[0][f'{case}/before']
  assert alone.keys() > before.keys()
  changes = [
    _difference(alone[name], before[name])
    for name in before
    if name.startswith('acting/') and not name.endswith('weight:0')
  ]
  assert min(changes) > 10 * _TOLERANCE
