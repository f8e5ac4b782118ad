import pytest

from tests.programs.cluster import clusters


@pytest.fixture(scope='module')
def make_cluster(runs):
  return lambda **settings: clusters.Cluster(runs, runs.folder(), **settings)
