"""The addresses of a program's nodes."""

from concurrent import futures
import contextlib
import socket

import grpc
import pytest

from seed_acme.programs.graph import program_graph


def test_nobody_is_given_a_port_that_was_chosen_and_a_server_listens_there():
  with contextlib.closing(program_graph.kept_port()) as kept:
    port = kept.getsockname()[1]
    with socket.socket() as other, pytest.raises(OSError, match='in use'):
      other.bind(('localhost', port))
    for host in ('localhost', '127.0.0.1', '0.0.0.0'):
      server = grpc.server(futures.ThreadPoolExecutor(1), options=[('grpc.so_reuseport', 0)])
      assert server.add_insecure_port(f'{host}:{port}') == port
      server.start()
      server.stop(None).wait()
