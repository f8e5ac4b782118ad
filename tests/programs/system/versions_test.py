"""Tests that compare installed packages with the required versions."""

import pytest

from seed_acme.programs.system import versions


@pytest.mark.parametrize(
  'line, is_right',
  [('numpy>=1.0', True), ('numpy<1.0', False), ('no-such-package-at-all==1', False)],
)
def test_versions_are_held_against_the_requirement(line, is_right):
  found = versions.find(line)
  assert bool(found.fix) != is_right
  assert ('needs' in found.detail) != is_right


def test_what_is_declared_is_installed_here():
  assert {'numpy', 'tensorflow', 'dm-launchpad'} <= {found.name for found in versions.declared()}
  assert not [found for found in versions.declared() if found.fix]
