"""Unusual machines: behind a proxy, with an odd profile, in a container."""

import signal

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def _machine(monkeypatch):
  for name in ('http_proxy', 'https_proxy'):
    monkeypatch.setenv(name, 'http://10.255.255.1:9')  # a proxy that never answers
  monkeypatch.setenv('MPLBACKEND', 'Qt4Agg')
  monkeypatch.setenv('LC_ALL', 'C')
  monkeypatch.setenv('PYTHONIOENCODING', 'ascii')
  # `import seed_acme` has set some of these in the tests' process.
  for name in ('HOME', 'no_grpc_proxy', 'no_proxy', 'NO_PROXY', 'GRPC_ENABLE_FORK_SUPPORT'):
    monkeypatch.delenv(name, raising=False)


def test_a_run_is_looked_into_hung_up_drawn_and_evaluated(runs):
  folder, run_dir = runs.folder(), 'größe eins'
  run = runs.train(
    runs.endless, '--config.replay.separate_process=True', run_dir=run_dir, folder=folder
  )
  run.wait_for_updates()
  inspect = runs.start('inspect', f'--run_dir={run_dir}', '--json', folder=folder)
  assert inspect.wait() == 0 and '"unrolls"' in inspect.stdout, inspect.stderr
  run.process.send_signal(signal.SIGHUP)
  assert run.wait() == 129, run.stderr
  assert run.summary()['status'] == 'stopped' and run.nodes() == []
  plot = runs.start('plot', run_dir, '--out=figure.png', folder=folder)
  assert plot.wait() == 0 and (folder / 'figure.png').exists(), plot.stderr
  evaluate = runs.start('evaluate', run_dir, '--episodes=2', folder=folder)
  assert evaluate.wait() == 0, evaluate.stderr
