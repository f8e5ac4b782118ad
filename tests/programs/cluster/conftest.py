import pytest
import yaml

from seed_acme.programs.cluster import manifest_command
from tests.programs.cluster import clusters
from tests.programs.cluster import manifests


@pytest.fixture(scope='module')
def make_cluster(runs):
  return lambda **settings: clusters.Cluster(runs, runs.folder(), **settings)


@pytest.fixture
def make_objects(capsys):
  """The objects of a manifest, by (kind, name)."""

  def objects(*overrides, **fields):
    assert manifest_command.write(*manifests.arguments(*overrides, **fields)) == 0
    made = list(yaml.safe_load_all(capsys.readouterr().out))
    by_name = {(one['kind'], one['metadata']['name']): one for one in made}
    assert len(by_name) == len(made)
    return by_name

  return objects
