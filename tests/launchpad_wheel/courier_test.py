"""The courier of Launchpad's wheel, as installed by the set-up."""

from concurrent import futures
import contextlib
import gc
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time

import courier
from courier.python import messages
from courier.python import threads
import grpc
import numpy as np
import portpicker
import psutil
import pytest

pytestmark = pytest.mark.timeout(120)

_CALL = '/courier.Courier/Call'


@pytest.fixture
def serve():
  """Starts a server of functions, with keyword arguments of `courier.Server`, and returns it."""
  servers = []

  def start(functions, **arguments):
    server = courier.Server(**arguments)
    for name, function in functions.items():
      server.Bind(name, function)
    server.Start()
    servers.append(server)
    return server

  yield start
  for server in servers:
    server.Stop()


@pytest.fixture
def echo(serve):
  """A client of a server whose `echo` returns its argument."""
  return courier.Client(serve({'echo': lambda x: x}).address, call_timeout=60)


def _run(code, **variables):
  """Runs code in a process of its own; returns its output and exit code."""
  done = subprocess.run(
    [sys.executable, '-c', code],
    env={**os.environ, **variables},
    stdout=subprocess.PIPE,
    text=True,
    timeout=60,
    check=False,
  )
  return done.stdout.strip(), done.returncode


# Values that it transports.


@pytest.mark.parametrize(
  'array',
  [
    np.arange(12, dtype=np.int16).reshape(3, 4),
    np.arange(12.0).reshape(3, 4)[:, ::2],
    np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3)),
    np.array(3.5, np.float32),
    np.zeros((0, 5)),
    np.array([True, False]),
    np.array(['a', 'bc']),
    np.array([{'x': 1}, None], dtype=object),
    np.array([(1, 2.0)], dtype=[('a', 'i4'), ('b', 'f8')]),
  ],
  ids=lambda array: f'{array.dtype}{array.shape}',
)
def test_arrays_arrive_as_they_were_and_can_be_written_to(echo, array):
  received = echo.echo({'x': [array]})['x'][0]
  assert received.dtype == array.dtype and received.shape == array.shape
  np.testing.assert_array_equal(received, array)
  received[...] = received  # a read-only view of the message would raise
  assert received.flags.writeable


def test_large_arrays_beside_each_other(echo):
  arrays = [np.full((2**21,), i, np.float32) for i in range(4)]  # 8 MB each, beyond gRPC's default
  for sent, received in zip(arrays, echo.echo(arrays)):
    np.testing.assert_array_equal(received, sent)


def test_an_array_is_not_copied_into_the_pickle():
  array = np.zeros(10**6, np.uint8)
  message = messages.encode(array)
  assert len(message) < array.nbytes + 1000
  assert len(pickle.dumps(array)) > array.nbytes  # as it would be if it were pickled with its data


@pytest.mark.parametrize('value', [None, 3, 'ü', b'\0', (1, [2], {'a': {4}}), float('inf')])
def test_values_arrive_as_they_were(echo, value):
  assert echo.echo(value) == value


def test_functions_of_main_and_lambdas_are_carried(echo):
  assert echo.echo(lambda x: x + 1)(2) == 3


def test_what_a_script_has_defined_is_carried_without_tensorflow_or_reverb(serve):
  client_code = """
import courier, sys
class Point:
  def __init__(self, x):
    self.x = x
def double(x):
  return 2 * x
client = courier.Client(sys.argv[1], call_timeout=30)
print(client.apply(double, 4), client.coordinate(Point(5)))
print({"tensorflow", "reverb", "pybind11_abseil"} & set(sys.modules))
"""
  functions = {'apply': lambda f, x: f(x), 'coordinate': lambda point: point.x}
  address = serve(functions).address
  assert _run(client_code.replace('sys.argv[1]', repr(address))) == ('8 5\nset()', 0)


def test_compressed_calls(serve):
  client = courier.Client(serve({'total': lambda x: int(x.sum())}).address, compress=True)
  assert client.total(np.ones(10**5, np.int64)) == 10**5


# Errors.


def test_an_exception_of_a_method_arrives_as_its_traceback(serve):
  def divide(x):
    return x / 0

  client = courier.Client(serve({'divide': divide}).address)
  with pytest.raises(courier.StatusNotOk, match=r'ZeroDivisionError: division by zero') as caught:
    client.divide(1)
  assert 'return x / 0' in caught.value.message
  assert caught.value.code == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize('length', [10_000, 200_000])
def test_of_a_long_exception_the_end_arrives(serve, length):
  def fail():
    raise ValueError('ü' * length + 'the end')

  client = courier.Client(serve({'fail': fail}).address)
  with pytest.raises(courier.StatusNotOk, match='the end') as caught:
    client.fail()
  assert caught.value.code == grpc.StatusCode.INVALID_ARGUMENT


def test_a_method_that_wants_to_exit_fails_and_its_server_goes_on(serve):
  client = courier.Client(serve({'leave': lambda: sys.exit(3), 'stay': lambda: 1}).address)
  with pytest.raises(courier.StatusNotOk, match='SystemExit'):
    client.leave()
  assert client.stay() == 1


def test_an_unknown_method_is_named(echo):
  with pytest.raises(courier.StatusNotOk, match='method missing not found') as caught:
    echo.missing()
  assert caught.value.code == grpc.StatusCode.NOT_FOUND


def test_what_cannot_be_pickled_fails_on_its_own_side(serve):
  client = courier.Client(serve({'lock': threading.Lock, 'one': lambda *_: 1}).address)
  for call in (lambda: client.one(threading.Lock()), client.lock):
    with pytest.raises(courier.StatusNotOk, match='cannot pickle') as caught:
      call()
    assert caught.value.code == grpc.StatusCode.INVALID_ARGUMENT
  with pytest.raises(courier.StatusNotOk, match='arguments of one cannot be pickled'):
    client.futures.one(threading.Lock()).result(30)
  assert client.one() == 1


def test_what_is_too_large_is_refused_in_words(echo, monkeypatch):
  monkeypatch.setattr(messages, 'MAX_BYTES', 2000)
  with pytest.raises(courier.StatusNotOk, match=r'arguments of echo have .* bytes') as caught:
    echo.echo(bytes(3000))
  assert caught.value.code == grpc.StatusCode.RESOURCE_EXHAUSTED
  assert echo.echo(bytes(1000)) == bytes(1000)


def test_a_result_that_is_too_large_is_refused_in_words(serve, monkeypatch):
  client = courier.Client(serve({'much': lambda: bytes(3000)}).address)
  monkeypatch.setattr(messages, 'MAX_BYTES', 2000)
  with pytest.raises(courier.StatusNotOk, match=r'result of much has .* bytes'):
    client.much()


def _damaged():
  whole = messages.encode(('echo', [np.arange(100)], {}))
  huge = b'\xff' * 8 + whole[8:]
  return [b'', b'x', bytes(8), huge, whole[:20], whole[:-1], whole + b'x', whole[::-1]]


@pytest.mark.parametrize('message', _damaged(), ids=len)
def test_a_damaged_message_is_an_error_and_the_server_goes_on(echo, message):
  with pytest.raises(messages.BadMessage):
    messages.decode(message)
  with grpc.insecure_channel(echo.address) as channel:
    with pytest.raises(grpc.RpcError) as caught:
      channel.unary_unary(_CALL)(message, metadata=courier.python.credentials.metadata())
  assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
  assert 'the call cannot be read' in caught.value.details()
  assert echo.echo(1) == 1


def test_a_call_of_another_form_is_an_error(echo):
  with grpc.insecure_channel(echo.address) as channel:
    with pytest.raises(grpc.RpcError) as caught:
      message = messages.encode('no method')
      channel.unary_unary(_CALL)(message, metadata=courier.python.credentials.metadata())
  assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_result_that_means_nothing_here_is_an_error(serve):
  class Elsewhere:
    def __reduce__(self):
      return exec, ('import module_that_is_not_here',)

  client = courier.Client(serve({'get': Elsewhere}).address)
  for call in (client.get, lambda: client.futures.get().result(30)):
    with pytest.raises(courier.StatusNotOk, match='module_that_is_not_here') as caught:
      call()
    assert caught.value.code == grpc.StatusCode.DATA_LOSS


# Authentication.


class _Trap:
  """An object that creates a file when it is unpickled."""

  def __init__(self, path):
    self._path = path

  def __reduce__(self):
    return pathlib.Path.touch, (self._path,)


@pytest.mark.parametrize('metadata', [(), (('courier-token', 'guess'),), (('courier-token', ''),)])
def test_nothing_is_unpickled_of_a_call_without_the_token(echo, tmp_path, metadata):
  message = messages.encode(('echo', [_Trap(tmp_path / 'sprung')], {}))
  with grpc.insecure_channel(echo.address) as channel:
    for method in (_CALL, '/courier.Courier/ListMethods'):
      with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary(method)(message, metadata=metadata)
      assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
      assert 'COURIER_TOKEN' in caught.value.details()
  assert not (tmp_path / 'sprung').exists()
  echo.echo(_Trap(tmp_path / 'sprung'))  # shows that the trap works
  assert (tmp_path / 'sprung').exists()


def test_a_token_of_ones_own(serve):
  with courier.credentials('this run'):
    server = serve({'one': lambda: 1})
    admitted = courier.Client(server.address)
  stranger = courier.Client(server.address)
  assert admitted.one() == 1
  assert courier.list_methods(admitted) == ['one']
  for call in (stranger.one, stranger.futures.one().result, lambda: courier.list_methods(stranger)):
    with pytest.raises(courier.StatusNotOk, match='COURIER_TOKEN') as caught:
      call()
    assert caught.value.code == grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize('token', ['', 'ü', 'a\nb'])
def test_a_token_that_cannot_be_one_is_refused(token, monkeypatch):
  with pytest.raises(ValueError, match='the token (is empty|must consist)'):
    with courier.credentials(token):
      pass
  monkeypatch.setenv('COURIER_TOKEN', token)
  with pytest.raises(ValueError, match='COURIER_TOKEN (is empty|must consist)'):
    courier.Server().Start()


def test_child_processes_share_the_token_and_others_have_another(echo):
  code = (
    f'import courier; print(courier.Client("{echo.address}", call_timeout=30).echo("from a child"))'
  )
  assert _run(code) == ('from a child', 0)
  stranger = f'import os; os.environ.pop("COURIER_TOKEN"); {code}'
  assert _run(stranger)[1] == 1


def _listens_at(port):
  return {
    connection.laddr.ip
    for connection in psutil.Process().net_connections('tcp')
    if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
  }


def test_it_listens_on_this_machine_alone(serve):
  addresses = _listens_at(serve({}).port)
  assert addresses and addresses <= {'127.0.0.1', '::1', '::ffff:127.0.0.1'}


def test_it_listens_elsewhere_where_that_is_asked_for(serve, monkeypatch):
  monkeypatch.setenv('COURIER_HOST', '0.0.0.0')
  assert _listens_at(serve({}).port) & {'0.0.0.0', '::'}


def test_a_port_in_use_is_named(serve):
  port = serve({}).port
  second = courier.Server(port=port)
  with pytest.raises(OSError, match=f'localhost:{port}: the port is in use'):
    second.Start()


# Ends of servers and clients.


_SERVER = """
import courier, sys, time
server = courier.Server(port=int(sys.argv[1]))
server.Bind('sleep', time.sleep)
server.Bind('one', lambda: 1)
server.Start()
print('started', flush=True)
server.Join()
"""


@contextlib.contextmanager
def _server_process(port):
  process = subprocess.Popen(
    [sys.executable, '-c', _SERVER, str(port)], stdout=subprocess.PIPE, text=True
  )
  with process:
    try:
      assert process.stdout.readline() == 'started\n'
      yield process
    finally:
      process.kill()


def test_the_loss_of_a_server_is_an_error_and_its_return_is_noticed():
  port = portpicker.pick_unused_port()
  client = courier.Client(f'localhost:{port}')  # without a timeout
  with _server_process(port) as first:
    assert client.one() == 1
    under_way = client.futures.sleep(600)
    time.sleep(0.3)  # until the call has arrived
    first.send_signal(signal.SIGKILL)
    with pytest.raises(courier.StatusNotOk) as caught:
      under_way.result(60)
  assert caught.value.code == grpc.StatusCode.UNAVAILABLE
  with _server_process(port):
    assert client.futures.one().result(60) == 1


def test_a_client_may_go_in_the_callback_of_its_last_call(serve):
  client = courier.Client(serve({'one': lambda: 1}).address)
  result = client.futures.one()
  gone = threading.Event()
  clients = [client]

  def forget(_):
    clients.clear()
    gone.set()

  result.add_done_callback(forget)
  del client
  assert result.result(30) == 1 and gone.wait(30)


def test_calls_under_way_are_answered_when_a_server_stops(serve):
  begun, go_on = threading.Event(), threading.Event()

  def wait():
    begun.set()
    return go_on.wait(30)

  server = serve({'wait': wait})
  client = courier.Client(server.address)
  result = client.futures.wait()
  assert begun.wait(30)
  threading.Timer(0.3, go_on.set).start()
  server.Stop()
  assert result.result(30)


def test_a_method_may_stop_its_own_server():
  server = courier.Server()

  def stop():
    threading.Thread(target=server.Stop).start()
    return 'stopped'

  server.Bind('stop', stop)
  server.Start()
  assert courier.Client(server.address).stop() == 'stopped'
  server.Join()


def test_neither_stop_nor_the_end_of_a_process_waits_for_a_method_that_hangs():
  code = """
import courier, threading
server = courier.Server()
begun = threading.Event()
def hang():
  begun.set()
  threading.Event().wait()
server.Bind('hang', hang)
server.Start()
client = courier.Client(server.address)
result = client.futures.hang()
begun.wait()
server.Stop()
try:
  result.result(30)
except courier.StatusNotOk as error:
  print(error.code.name)
"""
  said, code = _run(code)
  assert said in ('CANCELLED', 'UNAVAILABLE') and code == 0


def test_a_pending_call_does_not_hold_up_the_end_of_its_process(serve):
  go_on = threading.Event()
  server = serve({'wait': lambda: go_on.wait(100)})
  code = (
    f'import courier; client = courier.Client("{server.address}"); f = client.futures.wait(); '
    'print("ends", flush=True)'
  )
  assert _run(code) == ('ends', 0)
  go_on.set()


def test_a_cancelled_call_whose_result_comes_later_harms_nobody(serve, capfd):
  go_on = threading.Event()
  client = courier.Client(serve({'wait': lambda: go_on.wait(30), 'one': lambda: 1}).address)
  results = [client.futures.wait() for _ in range(20)]
  for result in results[:10]:
    assert result.cancel()
  go_on.set()
  for result in results[10:]:
    assert result.cancel() or result.result(30)  # at the moment that it arrives
  for result in results[:10]:
    with pytest.raises(futures.CancelledError):
      result.result(30)
  assert client.one() == 1
  assert 'Traceback' not in capfd.readouterr().err


def test_a_timeout_is_one_without_a_server():
  client = courier.Client(f'localhost:{portpicker.pick_unused_port()}', call_timeout=0.2)
  for call in (client.one, lambda: client.futures.one().result(30)):
    with pytest.raises(courier.StatusNotOk, match='Deadline Exceeded') as caught:
      call()
    assert caught.value.code == grpc.StatusCode.DEADLINE_EXCEEDED


# Threads.


def test_any_number_of_calls_may_wait_for_each_other(serve):
  num_calls = 60
  barrier = threading.Barrier(num_calls)
  client = courier.Client(
    serve({'meet': lambda: barrier.wait(60) >= 0}, thread_pool_size=2).address
  )
  meetings = [client.futures.meet() for _ in range(num_calls)]
  assert all(meeting.result(60) for meeting in meetings)


def test_threads_that_are_not_kept_end():
  pool = threads.CallThreads(num_kept=3)
  barrier = threading.Barrier(12)
  others = threading.enumerate()

  def of_pool():
    return [thread for thread in threading.enumerate() if thread not in others]

  def wait_for(number):
    give_up = time.monotonic() + 30
    while len(of_pool()) != number:
      assert time.monotonic() < give_up, of_pool()
      time.sleep(0.01)

  for _ in range(3):
    futures.wait([pool.submit(barrier.wait, 30) for _ in range(12)])
    wait_for(3)
  assert pool.submit(lambda: 5).result(30) == 5
  with pytest.raises(ZeroDivisionError):
    pool.submit(lambda: 1 // 0).result(30)
  pool.shutdown()
  wait_for(0)
  with pytest.raises(RuntimeError, match='ended'):
    pool.submit(print)


def test_a_server_that_has_ended_leaves_no_threads_and_no_arguments(serve):
  class Argument:
    pass

  others = threading.enumerate()
  server = serve({'take': lambda x: None})
  courier.Client(server.address).take(Argument())
  courier.Client(server.address).take(None)
  gc.collect()
  assert not [o for o in gc.get_objects() if isinstance(o, Argument)]
  server.Stop()
  give_up = time.monotonic() + 30
  while any(t.name == 'courier' and t not in others for t in threading.enumerate()):
    assert time.monotonic() < give_up
    time.sleep(0.01)


def test_a_client_can_be_sent_to_another_process(echo):
  again = pickle.loads(pickle.dumps(echo))
  assert again.address == echo.address and again.echo(2) == 2
