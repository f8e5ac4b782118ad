"""Messages arrive complete, and the end of the stream is noticed."""

import socket
import threading

import numpy as np
import pytest

from seed_acme.envs.interpreters import messages


@pytest.fixture
def pair():
  ends = socket.socketpair()
  yield ends
  for end in ends:
    end.close()


def test_headers_and_arrays_come_back(pair):
  big = np.random.default_rng(1).integers(0, 256, (300, 84, 84), np.uint8)  # larger than a buffer
  arrays = [
    big,
    np.float32(2.5),
    np.zeros((0, 3), np.int64),
    np.arange(12, dtype=np.float64).reshape(3, 4).T,  # not contiguous
    np.array([True, False]),
  ]
  sending = threading.Thread(target=messages.send, args=(pair[0], {'do': 'step', 'é': 1}, arrays))
  sending.start()
  header, received = messages.receive(pair[1])
  sending.join()
  assert header == {'do': 'step', 'é': 1}
  for sent, got in zip(arrays, received, strict=True):
    assert got.dtype == np.asarray(sent).dtype and got.shape == np.shape(sent)
    np.testing.assert_array_equal(got, sent)


def test_arrays_are_the_receivers_own(pair):
  for value in (1, 2):
    messages.send(pair[0], {}, [np.full(3, value)])
  first = messages.receive(pair[1])[1][0]
  first += 10
  np.testing.assert_array_equal(messages.receive(pair[1])[1][0], 2)
  np.testing.assert_array_equal(first, 11)


def test_a_closed_end_is_noticed_by_both_sides(pair):
  pair[0].close()
  with pytest.raises(messages.Closed):
    messages.receive(pair[1])
  with pytest.raises(messages.Closed):
    for _ in range(100):
      messages.send(pair[1], {}, [np.zeros(100_000)])


def test_half_a_message_is_no_message(pair):
  pair[0].sendall(b'\1\0\0')
  pair[0].close()
  with pytest.raises(messages.Closed):
    messages.receive(pair[1])


def test_no_answer_ends_with_the_time_out(pair):
  pair[1].settimeout(0.01)
  with pytest.raises(TimeoutError):
    messages.receive(pair[1])
