"""Tables with the settings that the agent asks for."""

import numpy as np
import pytest

from seed_acme import core
from seed_acme import types
from seed_acme.replay import tables

_EXAMPLE = types.Unroll(
  (),
  types.AgentInput(*[np.zeros(3, np.float32)] * 5),
  types.AgentOutput(np.zeros(3, np.int32), np.zeros((3, 2), np.float32)),
  np.zeros(3, np.int64),
)
_QUEUE = core.ReplaySpec()
_UNIFORM = core.ReplaySpec('uniform', capacity=50, min_size=20, ratio=0.5)
_PRIORITIZED = core.ReplaySpec(
  'prioritized', capacity=50, min_size=20, ratio=0.5, priority_exponent=0.7
)


def _make(queue_size, unrolls_per_item, spec=_QUEUE):
  return tables.make_tables(spec, 8, queue_size, unrolls_per_item, _EXAMPLE, 'items')


@pytest.mark.parametrize(
  'queue_size, unrolls_per_item, items',
  [(64, 1, 64), (64, 16, 4), (10, 4, 3), (1, 4, 1), (4, 4, 1)],
)
def test_a_queue_holds_at_least_the_wanted_unrolls(queue_size, unrolls_per_item, items):
  info = _make(queue_size, unrolls_per_item)[0].info
  assert info.name == tables.UNROLLS
  assert info.max_size == items
  assert info.signature.outputs.prediction.shape == (unrolls_per_item, 3, 2)


def test_a_queue_hands_out_every_item_once_in_order():
  info = _make(8, 1)[0].info
  assert info.max_times_sampled == 1
  assert info.sampler_options.fifo
  assert info.remover_options.fifo
  assert info.rate_limiter_info.min_size_to_sample == 1


@pytest.mark.parametrize('spec', [_QUEUE, _UNIFORM])
def test_beside_it_is_a_small_table_to_look_at(spec):
  unrolls, mirror = (table.info for table in _make(8, 1, spec))
  assert mirror.name == tables.MIRROR
  assert mirror.sampler_options.uniform
  assert mirror.max_times_sampled == 0  # inspections may sample as often as they like
  assert mirror.signature == unrolls.signature


def test_a_memory_samples_by_priority_and_forgets_the_oldest():
  info = _make(8, 1, _PRIORITIZED)[0].info
  assert info.max_size == 50
  assert info.max_times_sampled == 0
  assert info.sampler_options.prioritized.priority_exponent == pytest.approx(0.7)
  assert info.remover_options.fifo
  assert _make(8, 1, _UNIFORM)[0].info.sampler_options.uniform


def test_the_rate_limiter_holds_the_ratio_within_two_batches():
  limiter = _make(8, 1, _PRIORITIZED)[0].info.rate_limiter_info
  assert limiter.samples_per_insert == 0.5
  assert limiter.min_size_to_sample == 20
  assert (limiter.min_diff, limiter.max_diff) == (10 - 16, 10 + 16)
