import pytest
import yaml

from seed_acme.programs.tools.manifests import command as manifest_command
from tests.programs.tools.manifests import manifests


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
