"""Links out of a run folder are refused; the folder itself may be a link."""

import pytest

from seed_acme import types
from seed_acme.programs.front_end import bucket_folder
from seed_acme.storage import opening
from seed_acme.storage import run_directory


@pytest.mark.parametrize(
  'name',
  ['config.json', 'metrics.csv', 'checkpoints/000000000001', 'checkpoints/000000000001/meta.json'],
)
def test_a_link_out_of_the_folder_is_refused_before_it_is_read_or_written(tmp_path, name):
  run = run_directory.create(tmp_path / 'run')
  run.config.write_text('{}')
  target = tmp_path / 'outside'
  target.write_text('mine')
  link = run.path / name
  link.parent.mkdir(exist_ok=True)
  link.unlink(missing_ok=True)
  link.symlink_to(target)
  for use in (
    run_directory.create,
    opening.open_run,
    lambda path: bucket_folder.opened(str(path)).__enter__(),
  ):
    with pytest.raises(types.UserError, match='out of the run folder') as error:
      use(run.path)
    assert str(link) in str(error.value)
  assert target.read_text() == 'mine'


def test_links_within_it_to_it_and_beside_its_own_files_are_fine(tmp_path):
  run = run_directory.create(tmp_path / 'run')
  run.config.write_text('{}')
  (run.path / 'plot.png').symlink_to(run.config)
  (run.path / 'notes').symlink_to('/etc')
  (tmp_path / 'latest').symlink_to(run.path)
  assert opening.open_run(tmp_path / 'latest').path == run.path
