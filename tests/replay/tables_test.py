"""Tables as the agent wants them."""
import numpy as np
import pytest

from seed_acme import types
from seed_acme.agents import base
from seed_acme.replay import tables

_EXAMPLE = types.Unroll((), types.AgentInput(*[np.zeros(3, np.float32)] * 5),
                        types.AgentOutput(np.zeros(3, np.int32), np.zeros((3, 2), np.float32)),
                        np.zeros(3, np.int64))


def _make(queue_size, unrolls_per_item, kind='queue'):
  return tables.make_tables(base.ReplaySpec(kind), queue_size, unrolls_per_item, _EXAMPLE)


@pytest.mark.parametrize('queue_size, unrolls_per_item, items', [
    (64, 1, 64), (64, 16, 4), (10, 4, 3), (1, 4, 1), (4, 4, 1)])
def test_a_queue_holds_at_least_the_wanted_unrolls(queue_size, unrolls_per_item, items):
  (table,) = _make(queue_size, unrolls_per_item)
  info = table.info
  assert info.name == tables.UNROLLS
  assert info.max_size == items
  assert info.signature.outputs.prediction.shape == (unrolls_per_item, 3, 2)


def test_a_queue_hands_out_every_item_once_in_order():
  info = _make(8, 1)[0].info
  assert info.max_times_sampled == 1
  assert info.sampler_options.fifo
  assert info.remover_options.fifo
  assert info.rate_limiter_info.min_size_to_sample == 1


def test_an_unknown_kind_is_refused():
  with pytest.raises(ValueError, match='stack'):
    _make(8, 1, kind='stack')
