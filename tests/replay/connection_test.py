import pytest
import reverb

from seed_acme.replay import connection


@pytest.mark.parametrize('name', ['http_proxy', 'https_proxy', 'grpc_proxy'])
def test_a_server_is_reached_past_the_proxy_of_the_machine(monkeypatch, name):
  server = reverb.Server([reverb.Table.queue('t', 10)])
  monkeypatch.setenv(name, 'http://127.0.0.1:9')
  monkeypatch.setenv('no_grpc_proxy', 'db.example.com')
  # Any address other than 127.0.0.1 counts as another host.
  client = connection.client(f'127.0.0.2:{server.port}')
  assert list(client.server_info(timeout=20)) == ['t']
