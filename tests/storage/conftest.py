"""Fixtures of the storage tests."""

import pytest

from seed_acme.storage import bucket_copy
from seed_acme.storage import run_directory
from tests.storage import copies


@pytest.fixture
def url(tmp_path):
  return f'file://{tmp_path}/bucket/run'


@pytest.fixture
def make_copy(url, tmp_path):
  """`make_copy(name)`: a run on a host of that name, kept in the bucket, not started."""

  def make_one(name='host', period_s=copies.PERIOD_S, **arguments):
    run = run_directory.RunDirectory(tmp_path / name, bucket=url)
    return run, bucket_copy.Mirror(run, period_s=period_s, **arguments)

  return make_one
