"""Fixtures of the Vertex AI tests."""

import pytest

from seed_acme.programs.vertex import missing as vertex_missing
from seed_acme.programs.vertex import stage as cloud_stage


@pytest.fixture
def docker(tmp_path, monkeypatch):
  """Installs a `docker` that answers like version 28 and records its calls."""
  folder = tmp_path / 'bin'
  folder.mkdir()
  (folder / 'docker').write_text(
    '#!/bin/sh\n'
    f'echo "$@" >> {folder}/calls\n'
    'case $1 in push) echo "1: digest: sha256:0123 size: 2206"; exit ${PUSH_EXIT:-0};; esac\n'
  )
  (folder / 'docker').chmod(0o755)
  monkeypatch.setenv('PATH', f'{folder}:/usr/bin:/bin')
  return folder / 'calls'


@pytest.fixture
def without_docker(monkeypatch):
  monkeypatch.setattr(vertex_missing, 'has_docker', lambda: False)


@pytest.fixture
def empty_images(monkeypatch):
  """Leaves out of the images the packages, on which nothing else of a job depends."""
  monkeypatch.setattr(cloud_stage, 'stage_package', lambda folder: folder.mkdir())
  monkeypatch.setattr(cloud_stage, 'stage_launchpad', lambda folder: None)
