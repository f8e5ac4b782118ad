"""Network namespaces. Tests are skipped only if the kernel does not permit them."""

import os
import shutil

import pytest

from tests.scale import namespaces


@pytest.fixture
def make_network():
  """`make_network(number)`, called once: that many hosts, removed after the test."""
  assert shutil.which('ip'), 'this test needs the command ip: apt-get install iproute2'
  name = f'seedacme{os.getpid()}probe'
  probe = namespaces.ip('netns', 'add', name)
  if probe.returncode != 0:
    assert os.environ.get('SEED_ACME_NETNS') != 'required', f'no network namespace: {probe.stderr}'
    pytest.skip(f'network namespaces are not permitted here: {probe.stderr.strip()}')
  namespaces.must('netns', 'del', name)
  made = []

  def make(number):
    made.append(namespaces.Network(number))
    made[-1].make()
    return made[-1]

  yield make
  for network in made:
    network.remove()
