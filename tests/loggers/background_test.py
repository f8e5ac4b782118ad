"""Jobs in a background thread: their order, failures, and an end that does not wait for ever."""

import threading

from seed_acme.loggers import background


def test_jobs_are_done_in_order_and_a_failure_is_told():
  done, failures = [], []
  sender = background.Background('test', failures.append)
  sender.put(lambda: done.append(1))
  sender.put(lambda: {}['missing'])
  sender.put(lambda: done.append(2))
  assert sender.close(timeout_s=60)
  assert done == [1, 2]
  assert [type(failure) for failure in failures] == [KeyError]


def test_neither_putting_nor_closing_waits_for_a_job_that_hangs(monkeypatch):
  monkeypatch.setattr(background, '_CAPACITY', 2)
  hangs, goes_on = threading.Event(), threading.Event()
  sender = background.Background('test', lambda error: None)
  sender.put(lambda: (hangs.set(), goes_on.wait()))
  assert hangs.wait(60)
  for _ in range(5):
    sender.put(lambda: None)
  assert sender.num_dropped == 3
  assert not sender.close(timeout_s=0.01)
  goes_on.set()
