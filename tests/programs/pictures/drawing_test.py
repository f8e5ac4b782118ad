"""The look that all figures have in common: nothing is cut off, and no labels overlap."""

import errno
import itertools
import os

import pytest

from seed_acme import types
from seed_acme.programs.pictures import drawing


def test_a_long_title_stays_inside_the_figure():
  figure = drawing.new_figure(6, 4)
  figure.subplots()
  drawing.title(figure, ', '.join(f'a_configuration_{i} on suite:some_level_{i}' for i in range(4)))
  figure.canvas.draw()
  box = figure.texts[0].get_window_extent()
  assert box.x0 >= 0 and box.x1 <= figure.bbox.width


@pytest.mark.parametrize('out', ['noext', '.', 'a.d/plot'])
def test_a_figure_without_an_ending_is_refused_instead_of_written_elsewhere(
  out, tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(types.UserError, match='give it an ending'):
    drawing.write(drawing.new_figure(1, 1), out)
  assert list(tmp_path.iterdir()) == []


def test_labels_of_a_logarithmic_axis_do_not_overlap():
  figure = drawing.new_figure(9, 5)
  panel = figure.subplots()
  panel.plot([190, 12_500], [170_000, 1_400_000])
  panel.set_xscale('log')
  drawing.logarithmic(panel.xaxis)
  figure.canvas.draw()
  labels = [label for label in panel.get_xticklabels(which='both') if label.get_text()]
  shown = [label for label in labels if 190 <= label.get_position()[0] <= 12_500]
  assert [label.get_text() for label in shown] == ['200', '500', '1k', '2k', '5k', '10k']
  boxes = [label.get_window_extent() for label in shown]
  assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_a_letter_that_the_font_lacks_is_no_warning(tmp_path, recwarn):
  figure = drawing.new_figure(4, 3)
  figure.suptitle('日本')
  drawing.write(figure, tmp_path / 'plot.png')
  assert not recwarn.list


def test_a_full_disk_is_a_failure_and_leaves_the_picture_that_was_there(tmp_path, monkeypatch):
  figure = drawing.new_figure(1, 1)
  out = drawing.write(figure, tmp_path / 'plot.png')
  whole = out.read_bytes()

  def fill_the_disk(path, **options):
    path.write_bytes(whole[:20])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

  monkeypatch.setattr(figure, 'savefig', fill_the_disk)
  with pytest.raises(types.Failure, match=r'cannot write the plot .*/plot\.png: .*make room there'):
    drawing.write(figure, out)
  assert out.read_bytes() == whole and list(tmp_path.iterdir()) == [out]


def test_a_format_that_is_unknown_leaves_nothing_behind(tmp_path):
  with pytest.raises(types.UserError, match=r'cannot write the plot .*/plot\.nothing: .*nothing'):
    drawing.write(drawing.new_figure(1, 1), tmp_path / 'plot.nothing')
  assert list(tmp_path.iterdir()) == []
