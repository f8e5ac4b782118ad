"""`python forking.py MODULE`: forks while gRPC channels are open, as starting video encoders and
simulators does, and prints the kinds of child processes that failed.

MODULE: imported first.
"""

from concurrent import futures
import contextlib
import importlib
import multiprocessing
import os
import pty
import queue
import subprocess
import sys

NUM_FORKS = 40
_NUM_CHANNELS = 3
_LIMIT_S = 60
_WORDS = b'x' * 200_000  # more than a pipe holds


def _serve(grpc):
  """Starts an echo server; returns it and its port."""

  class Echo(grpc.GenericRpcHandler):
    def service(self, handler_call_details):
      return grpc.stream_stream_rpc_method_handler(lambda requests, context: requests)

  server = grpc.server(futures.ThreadPoolExecutor(_NUM_CHANNELS))
  server.add_generic_rpc_handlers((Echo(),))
  port = server.add_insecure_port('localhost:0')
  server.start()
  return server, port


def _echo(grpc, port):
  """Returns a function that sends once over its own channel and waits for the answer."""
  outbox = queue.SimpleQueue()
  channel = grpc.insecure_channel(f'localhost:{port}')
  replies = channel.stream_stream('/echo')(iter(outbox.get, None))

  def call():
    outbox.put(b'')
    next(replies)

  return call


def _subprocess():
  child = subprocess.Popen(
    ['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=os.setpgrp
  )
  said, _ = child.communicate(_WORDS, timeout=_LIMIT_S)
  return child.returncode == 0 and said == _WORDS


def _multiprocessing():
  context = multiprocessing.get_context('fork')
  here, there = context.Pipe(duplex=False)
  child = context.Process(target=there.send, args=('a word',))
  child.start()
  said = here.recv() if here.poll(_LIMIT_S) else None
  child.join(_LIMIT_S)
  return child.exitcode == 0 and said == 'a word'


def _terminal():
  pid, terminal = pty.fork()
  if pid == 0:
    os.execvp('echo', ['echo', 'a word'])
  said = b''
  with open(terminal, 'rb', buffering=0) as output, contextlib.suppress(OSError):
    while more := output.read(100):  # the end of a terminal raises an error
      said += more
  return os.waitpid(pid, 0)[1] == 0 and said.strip() == b'a word'


def main(module):
  importlib.import_module(module)
  import grpc

  server, port = _serve(grpc)
  calls = [_echo(grpc, port) for _ in range(_NUM_CHANNELS)]
  for fork in (_subprocess, _multiprocessing, _terminal):
    for _ in range(NUM_FORKS):
      for call in calls:
        call()
      if not fork():
        print(fork.__name__)
  print('done', flush=True)
  del server
  os._exit(0)


if __name__ == '__main__':
  main(*sys.argv[1:])
