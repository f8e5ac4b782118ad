"""Published points: read from CSV, refused with the bad line, drawn as markers."""

import pytest

from seed_acme import types
from seed_acme.programs.pictures import drawing
from seed_acme.programs.pictures import plot
from seed_acme.programs.pictures import published


def test_rows_of_equal_label_belong_together_and_are_sorted(tmp_path):
  path = tmp_path / 'points.csv'
  path.write_text('label,steps,return,source\nA,2e6,7.5,page 3\nB,10,-1,\nA,1000000,5,page 3\n')
  first, second = published.read(path)
  assert (first.label, first.steps.tolist(), first.returns.tolist()) == ('A', [1e6, 2e6], [5, 7.5])
  assert (second.label, second.steps.tolist(), second.returns.tolist()) == ('B', [10], [-1])


def test_a_spreadsheets_mark_at_the_beginning_is_no_part_of_a_column(tmp_path):
  path = tmp_path / 'points.csv'
  path.write_text('label,steps,return\nA,1,2\n', encoding='utf-8-sig')
  assert published.read(path)[0].label == 'A'


@pytest.mark.parametrize(
  'text, message',
  [
    ('label,step,return\nA,1,2\n', 'has no column steps: '),
    ('', 'has no column label, steps, return'),
    ('label,steps,return\n', 'has no points'),
    ('label,steps,return\nA,1,2\nA,many,2\n', "line 3: .*'many'"),
    ('label,steps,return\nA,1,nan\n', "line 2: .*'nan'"),
    ('label,steps,return\nA,-1,2\n', "line 2: .*'-1'"),
    ('label,steps,return\n,1,2\n', 'line 2'),
    ('label,steps,return\nA,1\n', 'line 2: .*None'),
  ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
  path = tmp_path / 'points.csv'
  path.write_text(text)
  with pytest.raises(types.UserError, match=message):
    published.read(path)


def test_a_missing_file_and_a_binary_one_are_named(tmp_path):
  with pytest.raises(types.UserError, match='cannot read .*none.csv'):
    published.read(tmp_path / 'none.csv')
  (tmp_path / 'binary.csv').write_bytes(bytes(range(256)))
  with pytest.raises(types.UserError, match='cannot read .*binary.csv'):
    published.read(tmp_path / 'binary.csv')


def test_points_are_marks_over_steps_and_stand_in_the_legend(tmp_path, monkeypatch):
  run = tmp_path / 'run'
  run.mkdir()
  (run / 'config.json').write_text('{}')
  (run / 'metrics.csv').write_text(
    'agent_steps,wall_s,episode/return\n100,1,0.0\n200,2,1.0\n300,3,2.0\n'
  )
  path = tmp_path / 'points.csv'
  path.write_text('label,steps,return\nBook,1500,40\n')
  figures = []
  write = drawing.write
  monkeypatch.setattr(
    drawing, 'write', lambda figure, out: figures.append(figure) or write(figure, out)
  )
  plot.plot([run], tmp_path / 'plot.png', path)
  steps, wall = figures[0].axes
  [marks] = [line for line in steps.lines if line.get_label() == 'Book']
  assert marks.get_linestyle() == 'None' and marks.get_xydata().tolist() == [[1500, 40]]
  assert steps.get_ylim()[1] > 40 and steps.get_xlim()[1] > 1500
  assert 'Book' not in [line.get_label() for line in wall.lines]
  assert 'Book' in [text.get_text() for text in figures[0].legends[0].get_texts()]
