"""DeepMind's own Launchpad wheel, installed instead of the one built from it."""

from importlib import metadata

import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import launchpad_wheel
from seed_acme.programs.system import versions
from seed_acme.transport import transports
from tests import sources


def _install(monkeypatch, version):
  of_others = metadata.version

  def find(name):
    if name != launchpad_wheel.DISTRIBUTION:
      return of_others(name)
    if version is None:
      raise metadata.PackageNotFoundError(name)
    return version

  monkeypatch.setattr(metadata, 'version', find)


def _serve():
  config = config_lib.TransportConfig(kind='courier')
  return transports.serve(config, None, 0, 1, 1, None)


def test_the_one_that_set_up_has_made_is_right():
  assert launchpad_wheel.describe() == (True, launchpad_wheel.VERSION)
  line = f'dm-launchpad=={launchpad_wheel.VERSION}'
  assert line in (sources.ROOT / 'constraints.txt').read_text().splitlines()
  assert not versions.find('dm-launchpad==0.5.1').fix


@pytest.mark.parametrize('version, words', [('0.5.1', "DeepMind's wheel"), (None, 'not installed')])
def test_another_one_is_named_with_the_script_that_makes_the_right_one(monkeypatch, version, words):
  _install(monkeypatch, version)
  found = versions.find('dm-launchpad==0.5.1')
  assert words in found.detail and 'scripts/launchpad_wheel.py' in found.fix
  with pytest.raises(types.UserError, match=rf'{words}.*scripts/launchpad_wheel\.py'):
    _serve()
