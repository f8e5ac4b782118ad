"""The stand-in for Google Cloud Storage keeps objects apart that are written at the same time."""

from concurrent import futures

from tests import fake_gcs


def test_objects_that_are_written_at_once_have_their_own_contents(tmp_path):
  objects = fake_gcs.Objects(tmp_path)

  def write_and_read(name):
    for number in range(200):
      content = f'{name} {number}'.encode() * 1000
      objects.write('bucket', name, content)
      assert objects.read('bucket', name) == content

  with futures.ThreadPoolExecutor(4) as pool:
    list(pool.map(write_and_read, 'abcd'))
