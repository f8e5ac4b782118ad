"""An unusual machine: behind a proxy, with an odd profile, in a container."""


def enter(monkeypatch):
  """Changes the variables that programs started from now on inherit."""
  for name in ('http_proxy', 'https_proxy'):
    monkeypatch.setenv(name, 'http://10.255.255.1:9')  # a proxy that never answers
  monkeypatch.setenv('MPLBACKEND', 'Qt4Agg')
  monkeypatch.setenv('LC_ALL', 'C')
  monkeypatch.setenv('PYTHONIOENCODING', 'ascii')
  # `import seed_acme` has set some of these in the tests' process.
  for name in ('HOME', 'no_grpc_proxy', 'no_proxy', 'NO_PROXY', 'GRPC_ENABLE_FORK_SUPPORT'):
    monkeypatch.delenv(name, raising=False)
