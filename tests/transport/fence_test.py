"""The connections that a fence admits, with real sockets.

All connections here use the loopback interface, which a fence admits. These tests therefore make it
expect another number for that interface, and 127.0.0.2 acts as another host.
"""

import contextlib
import itertools
import socket
import threading

import pytest

from seed_acme.transport import fence as fence_lib
from tests.transport import serving

pytestmark = pytest.mark.timeout(60)

_REFUSED_S = 0.3  # by then the kernel has answered a local connect, if it does at all
_ADMITTED_S = 20.0
_MANY = tuple(f'10.1.{i}.{j}' for i, j in itertools.product(range(2), range(200)))


@pytest.fixture
def loopback_is_a_network(monkeypatch):
  monkeypatch.setattr(fence_lib, '_LOOPBACK_INTERFACE', 1 << 20)
  monkeypatch.setattr(fence_lib, '_is_this_machine', lambda peer, own: False)


@pytest.fixture
def listen():
  """`listen(address='127.0.0.1')`; '::' includes IPv4."""
  with contextlib.ExitStack() as stack:

    def start(address='127.0.0.1'):
      if address == '::':
        return stack.enter_context(
          socket.create_server(
            (address, 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=16
          )
        )
      return stack.enter_context(socket.create_server((address, 0)))

    yield start


def _put_around(fence, port, danger):
  fence.put_around(port, danger, fence.look_up())


def _port(listener):
  return listener.getsockname()[1]


def _connect(listener, to='127.0.0.1', source='', timeout_s=_ADMITTED_S):
  address = (source, 0) if source else None
  return socket.create_connection((to, _port(listener)), timeout_s, address)


def _is_answered(listener, **how):
  try:
    _connect(listener, timeout_s=_REFUSED_S, **how).close()
  except TimeoutError:
    return False
  return True


def _carries_data(listener, **how):
  with _connect(listener, **how) as caller, listener.accept()[0] as called:
    for sender, receiver in ((caller, called), (called, caller)):
      sender.sendall(b'x' * 100_000)
      left = 100_000
      while left:
        left -= len(receiver.recv(left))
  return True


@pytest.mark.parametrize('address', ['127.0.0.1', '::'])
def test_this_machine_goes_in_and_out(listen, address):
  listener = listen(address)
  _put_around(fence_lib.Fence(), _port(listener), fence_lib.ENDS_RUN)
  assert _carries_data(listener)
  assert address == '127.0.0.1' or _carries_data(listener, to='::1')


@pytest.mark.parametrize('address', ['0.0.0.0', '::'])
def test_others_are_not_answered(listen, loopback_is_a_network, address):
  listener = listen(address)
  assert _carries_data(listener)
  _put_around(fence_lib.Fence(), _port(listener), fence_lib.ENDS_RUN)
  assert not _is_answered(listener)
  assert address == '0.0.0.0' or not _is_answered(listener, to='::1')


@pytest.mark.parametrize('hosts', [('127.0.0.2',), (*_MANY, '127.0.0.2', 'fd00::1')])
@pytest.mark.parametrize('address', ['0.0.0.0', '::'])
def test_only_hosts_on_the_list_get_in(listen, loopback_is_a_network, address, hosts):
  listener = listen(address)
  _put_around(fence_lib.Fence(hosts), _port(listener), fence_lib.ENDS_RUN)
  assert _carries_data(listener, source='127.0.0.2')
  assert not _is_answered(listener, source='127.0.0.3')
  assert address == '0.0.0.0' or not _is_answered(listener, to='::1')


@pytest.mark.parametrize('hosts', [('::1',), (*_MANY, '::2', '1::', '[::1]')])
def test_hosts_of_ipv6_get_in(listen, loopback_is_a_network, hosts):
  listener = listen('::')
  _put_around(fence_lib.Fence(hosts), _port(listener), fence_lib.ENDS_RUN)
  assert _carries_data(listener, to='::1')
  assert not _is_answered(listener)


def test_without_a_fence_everybody_gets_in(listen, loopback_is_a_network):
  listener = listen()
  _put_around(fence_lib.Fence(hosts=None), _port(listener), fence_lib.ENDS_RUN)
  assert _carries_data(listener)


def test_other_ports_stay_as_they_are(listen, loopback_is_a_network):
  fenced, other = listen(), listen()
  with _connect(other) as early, other.accept()[0] as called:
    _put_around(fence_lib.Fence(), _port(fenced), fence_lib.ENDS_RUN)
    assert _carries_data(other)
    called.sendall(b'x')
    assert early.recv(1) == b'x'


def test_who_came_before_the_fence_is_shut_out_and_who_may_come_stays(
  listen, loopback_is_a_network
):
  listener = listen()
  stranger, friend = _connect(listener), _connect(listener, source='127.0.0.2')
  late = _connect(listener)
  called = [listener.accept()[0] for _ in range(2)]  # the third one waits to be accepted

  def accept():
    called.append(listener.accept()[0])

  accepting = threading.Timer(0.1, accept)
  accepting.start()
  _put_around(fence_lib.Fence(('127.0.0.2',)), _port(listener), fence_lib.RUNS_CODE)
  accepting.join()
  assert called[0].recv(1) == called[2].recv(1) == b''
  assert stranger.recv(1) == late.recv(1) == b''
  friend.sendall(b'x')
  assert called[1].recv(1) == b'x'
  for one in (stranger, friend, late, *called):
    one.close()


def test_names_are_looked_up_again(listen, loopback_is_a_network, monkeypatch):
  answers = {'learner-1': ['127.0.0.2']}

  def look_up(host, port, **how):
    if host not in answers:
      raise socket.gaierror(socket.EAI_NONAME, 'unknown')
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, '', (one, 0)) for one in answers[host]]

  monkeypatch.setattr(fence_lib, '_LOOK_UP_S', 0.01)
  monkeypatch.setattr(fence_lib.socket, 'getaddrinfo', look_up)
  listener = listen()

  def reaches(source):
    with socket.socket() as caller:
      caller.settimeout(_REFUSED_S)
      caller.bind((source, 0))
      return caller.connect_ex(listener.getsockname()) == 0

  _put_around(fence_lib.Fence(('learner-1', 'learner-2')), _port(listener), fence_lib.RUNS_CODE)
  assert reaches('127.0.0.2') and not reaches('127.0.0.3')
  answers['learner-2'] = ['127.0.0.3']  # its host has started
  serving.eventually(lambda: reaches('127.0.0.3'))
  answers['learner-1'] = ['127.0.0.4']
  serving.eventually(lambda: reaches('127.0.0.4') and not reaches('127.0.0.2'))
  answers.clear()  # the name server is down
  for _ in range(3):
    assert reaches('127.0.0.4') and reaches('127.0.0.3') and not reaches('127.0.0.2')
  threads = [thread for thread in threading.enumerate() if thread.name == 'fence']
  listener.close()
  answers['learner-1'] = ['127.0.0.5']
  for thread in threads:
    thread.join(_ADMITTED_S)
    assert not thread.is_alive()


def test_names_are_looked_up_before_the_port_is_open(listen, loopback_is_a_network, monkeypatch):
  real = socket.getaddrinfo

  def look_up(host, *rest, **how):
    return real('127.0.0.2' if host == 'learner-1' else host, *rest, **how)

  def refuse(host, *rest, **how):
    assert host != 'learner-1'
    return real(host, *rest, **how)

  monkeypatch.setattr(fence_lib.socket, 'getaddrinfo', look_up)
  fence = fence_lib.Fence(('learner-1', '127.0.0.4'))
  addresses = fence.look_up()
  listener = listen()
  monkeypatch.setattr(fence_lib.socket, 'getaddrinfo', refuse)
  with contextlib.ExitStack() as stack:
    # A host that is admitted by its name, and a stranger, have connected before.
    friend, stranger = (
      stack.enter_context(_connect(listener, source=source))
      for source in ('127.0.0.2', '127.0.0.3')
    )
    called = [stack.enter_context(listener.accept()[0]) for _ in range(2)]
    fence.put_around(_port(listener), fence_lib.RUNS_CODE, addresses)
    friend.sendall(b'x')
    assert called[0].recv(1) == b'x'
    assert called[1].recv(1) == b''
  assert _is_answered(listener, source='127.0.0.4')
  assert not _is_answered(listener, source='127.0.0.3')


@pytest.mark.parametrize(
  'danger, words',
  [
    (fence_lib.RUNS_CODE, 'can run code for whoever reaches it'),
    (fence_lib.ENDS_RUN, 'can end this run'),
  ],
)
def test_what_the_kernel_refuses_is_told(listen, monkeypatch, danger, words):
  told = []
  monkeypatch.setattr(fence_lib, '_SO_ATTACH_FILTER', 9999)
  listener = listen()
  _put_around(fence_lib.Fence(tell=told.append), _port(listener), danger)
  assert len(told) == 1 and told[0].startswith(f'port {_port(listener)} {words}:')
  assert _carries_data(listener)


def test_a_server_that_is_not_found_is_told(listen):
  told = []
  _put_around(fence_lib.Fence(tell=told.append), 1, fence_lib.RUNS_CODE)
  assert len(told) == 1 and told[0].startswith('port 1 can run code')


def test_a_name_that_is_unknown_here_is_told_of(listen):
  said = []
  listener = listen()
  _put_around(
    fence_lib.Fence(('nowhere.invalid', '127.0.0.1'), said.append), _port(listener), 'is open'
  )
  [message] = said
  assert 'the host nowhere.invalid is unknown here' in message
