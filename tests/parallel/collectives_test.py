import contextlib
import json
import socket
import threading

import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.parallel import collectives
from tests import learner_processes
from tests.parallel import exchanging_host


@pytest.fixture(scope='module')
def exchanged(tmp_path_factory):
  folder = tmp_path_factory.mktemp('hosts')
  # A company's proxy, which hosts must bypass among each other.
  proxies = dict.fromkeys(('http_proxy', 'https_proxy'), 'http://127.0.0.1:9')
  learner_processes.run(exchanging_host.__file__, [folder], environment=proxies)
  return [json.loads(path.read_text()) for path in sorted(folder.glob('*.json'))]


@pytest.mark.slow
def test_both_hosts_have_the_leaves_of_both_in_order(exchanged):
  expected = exchanging_host.expected(2)
  for found in exchanged:
    assert found['types'] == [x.dtype.name for x in expected]
    assert found['joined'] == [x.tolist() for x in expected]


@pytest.mark.slow
def test_means_are_over_the_hosts(exchanged):
  assert [found['means'] for found in exchanged] == [[[[0.5, 0.5], [0.5, 0.5]], 5.0]] * 2


@pytest.mark.slow
def test_facts_and_reports_are_told_to_all(exchanged):
  for found in exchanged:
    assert found['facts'] == [[[0, 5], [1, 5]], [[2**40], [2**40 + 1]]]
    assert found['reports'] == [[{'of': 0, 'text': ''}, {'of': 1, 'text': 'ä' * 1000}], [1, 1]]


@pytest.mark.slow
def test_strangers_do_not_reach_the_servers_that_run_what_they_are_sent(exchanged):
  assert [found['reached'] for found in exchanged] == [{'127.0.0.1': True, '127.0.0.3': False}] * 2


@pytest.mark.slow
def test_the_chiefs_arrays_reach_the_others(exchanged):
  assert [found['of_chief'] for found in exchanged] == [[7.0, [[0, 1, 2], [3, 4, 5]]]] * 2


@pytest.mark.slow
def test_operations_leave_no_threads_behind(exchanged):
  """TensorFlow's own time-outs keep a thread for each operation."""
  assert max(found['more_threads'] for found in exchanged) < 20


@pytest.mark.slow
def test_a_host_that_hangs_is_given_up_in_time(exchanged):
  assert exchanged[0]['of_hanging'] == (
    f'learner/1 was lost, or did not answer within {exchanging_host.TIMEOUT_S:g} s '
    '(learner.host_timeout_s)'
  )


@pytest.mark.slow
def test_a_host_may_be_given_longer(exchanged):
  assert [found['of_slow'] for found in exchanged] == ['answered', None]


@pytest.mark.parametrize(
  'timeout_s, words',
  [(600.0, 'did not answer within 600 s'), (None, 'within 5 s (learner.host_timeout_s)')],
)
def test_a_silent_host_is_reported_with_the_limit_that_it_had(timeout_s, words):
  with contextlib.ExitStack() as listening:
    own, other = (
      listening.enter_context(socket.create_server(('127.0.0.1', 0))).getsockname()[1]
      for _ in range(2)
    )
    group = collectives.Group(0, [f'127.0.0.1:{own}', f'127.0.0.1:{other}'], timeout_s=5.0)
    with pytest.raises(collectives.HostLost) as caught, group.watched(), group.timed(timeout_s):
      raise tf.errors.DeadlineExceededError(None, None, 'given up')
  assert str(caught.value).endswith(words)


def test_a_host_that_gives_up_and_takes_long_to_end_has_gone():
  """Hosts wait for others that have gone to come again, and fail with those that hang."""
  with contextlib.ExitStack() as listening:
    own, other = (
      listening.enter_context(socket.create_server(('127.0.0.1', 0), backlog=100)) for _ in range(2)
    )
    addresses = [f'127.0.0.1:{one.getsockname()[1]}' for one in (own, other)]
    ends = threading.Timer(2.5, other.close)  # as one does on a busy machine
    ends.start()
    group = collectives.Group(0, addresses, timeout_s=600.0)
    with pytest.raises(collectives.HostGone, match='learner/1 has died'), group.watched():
      raise tf.errors.UnavailableError(None, None, 'Collective ops is aborted')
    ends.join()


def test_a_host_that_never_comes_is_a_failure():
  assert issubclass(collectives.HostLost, types.Failure)
  # No other host is to blame if one is silent, or never came.
  assert issubclass(collectives.HostGone, collectives.HostLost)
  assert issubclass(collectives.HostGone, types.OtherNodeFailed)
  assert not issubclass(collectives.HostLost, types.OtherNodeFailed)
  with contextlib.ExitStack() as bound:  # ports that nobody listens on, and no other test can
    addresses = []
    for _ in range(2):
      one = bound.enter_context(socket.socket())
      one.bind(('127.0.0.1', 0))
      addresses.append(f'127.0.0.1:{one.getsockname()[1]}')
    group = collectives.Group(0, addresses, timeout_s=1.0)
    assert group.is_chief and group.absent() == [0, 1]


def test_a_host_may_have_an_address_of_ipv6():
  with socket.create_server(('::1', 0), family=socket.AF_INET6) as listener:
    address = f'[::1]:{listener.getsockname()[1]}'
    assert collectives.Group(0, [address, address], 1.0).absent() == []
